"""What is still arriving in a bare repository: how much it may be, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jobs.errors import Permanent

FETCH_SECONDS = 300.0  # nobody else can fetch meanwhile
FETCH_BYTES_LIMIT = 512 * 2**20  # a first fetch of llama.cpp without contents is 15 MB


def drop_partial_packs(network: Path) -> None:
    """We hold the network's lock: what is still arriving belongs to a git that was stopped."""
    for path in (network / "objects" / "pack").glob("tmp_*"):
        path.unlink(missing_ok=True)


def bounded(network: Path, tick: Callable[[], None] | None) -> Callable[[], None]:
    """A tick that also ends a fetch which brings too much."""

    def watch() -> None:
        if tick is not None:
            tick()
        arriving = 0
        for path in (network / "objects" / "pack").glob("tmp_*"):
            arriving += path.stat().st_size if path.exists() else 0
        if arriving > FETCH_BYTES_LIMIT:
            raise Permanent(
                f"a repository sends more than {FETCH_BYTES_LIMIT} bytes of history",
                advice="Nothing of it was taken. Look at the repository by hand.",
            )

    return watch
