"""The one file that tests of downloads bring, and what is left beside it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from support.weights_hub import sha256_of

WEIGHTS = random.Random(7).randbytes(3_000_000)
FILE = "sub/tiny-Q4_K_M.gguf"
SHA = sha256_of(WEIGHTS)
TOKEN = "hf_secret"
BLOCK_BYTES = 256 * 1024

Bring = Callable[..., tuple[Path, ...]]


def left(root: Path) -> list[str]:
    """Names of all but the locks."""
    return sorted(path.name for path in root.iterdir() if path.suffix != ".lock")
