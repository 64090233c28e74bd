"""Which repositories a text names."""

from __future__ import annotations

import time

import pytest

from scout.mentions import NAMES_LIMIT, named


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see https://github.com/TheTom/turbo.cpp/tree/x.", {"thetom/turbo.cpp"}),
        ("[x](https://github.com/a/b.git)", {"a/b"}),
        ("A fork of spiritbuun/buun-llama-cpp.", {"spiritbuun/buun-llama-cpp"}),
        ("Based on `a/b`, imported from **c/d**", {"a/b", "c/d"}),
        ("absorbs [e/f]", {"e/f"}),
        ("24/7 and/or common/arg.cpp", set()),
        ("https://github.com/-x/y https://github.com/../z", set()),
        ("notgithub.com/a/b", set()),
        ("", set()),
    ],
)  # fmt: skip
def test_links_and_words_of_descent(text: str, names: set[str]) -> None:
    """In small letters; a path or a fraction is no repository."""
    assert named(text) == names


def test_a_hostile_text_is_bounded() -> None:
    """Neither its length nor its number of names costs more than a moment."""
    started = time.monotonic()
    assert len(named(" ".join(f"github.com/a{n}/b" for n in range(10_000)))) == NAMES_LIMIT
    assert named("fork of " * 100_000 + "based on" + "`" * 1_000_000) == frozenset()
    assert time.monotonic() - started < 2
