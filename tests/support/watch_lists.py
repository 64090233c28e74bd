"""A watch list that is right, and what its reader says of one that is not."""

from __future__ import annotations

import pytest

from jobs.errors import UsageError
from scout.reading import parse

GOOD = """\
[[engine]]
name = "wheel"
family = "xllamacpp"
package = "xllamacpp"
trust = "package"
[[engine.build]]
rig = "cpu"
via = "wheel"

[[engine]]
name = "fork"
family = "llama.cpp"
repo = "Anbeeld/beellama.cpp"
branches = ["main"]
trust = "auto"
[[engine.build]]
rig = "olares-5090m"
via = "cmake"
cuda_arch = "120"

[[model]]
name = "tiny:q4"
package = "tiny-gguf"
version = "1.0"
sha256 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
model_class = "tiny"

[[stack]]
name = "tiny-fork"
engine = "fork"
target = "tiny:q4"
intent = { context = 2048, kv = "turbo3" }
flags = [
  "--spec-dflash-cross-ctx",
  "1024",
]
scenarios = ["decode-128"]
"""


def line_holding(text: str, words: str) -> int:
    return next(at for at, line in enumerate(text.split("\n"), 1) if words in line)


def refused(text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse(text, "list.toml")
    assert caught.value.exit_code == 2
    return caught.value
