"""What is arriving in a bare repository: how much it may be, and how it is taken away again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from pathlib import Path

from jobs.errors import Permanent

FETCH_SECONDS = 300.0  # nobody else can fetch meanwhile
FETCH_BYTES_LIMIT = 512 * 2**20  # a first fetch of llama.cpp without contents is 15 MB


def drop_partial_packs(repository: Path) -> None:
    """We hold the repository's lock: what is still arriving belongs to a git that was stopped."""
    for path in (repository / "objects" / "pack").glob("tmp_*"):
        path.unlink(missing_ok=True)


@contextmanager
def arriving(repository: Path) -> Iterator[None]:
    """Whatever git leaves half done in here is gone when the block fails: it may fill the disk."""
    drop_partial_packs(repository)
    try:
        yield
    except BaseException:
        drop_partial_packs(repository)
        raise


def pack_names(repository: Path) -> set[str]:
    """The packs that are there."""
    return {path.stem for path in (repository / "objects" / "pack").glob("pack-*.pack")}


def drop_packs_but(repository: Path, kept: Set[str]) -> None:
    """Take away all packs but these; no ref may need any other."""
    for path in (repository / "objects" / "pack").glob("pack-*"):
        if path.name.partition(".")[0] not in kept:
            path.unlink(missing_ok=True)


def bounded(repository: Path, tick: Callable[[], None] | None) -> Callable[[], None]:
    """A tick that also ends a fetch which brings too much."""

    def watch() -> None:
        if tick is not None:
            tick()
        size = 0
        for path in (repository / "objects" / "pack").glob("tmp_*"):
            size += path.stat().st_size if path.exists() else 0
        if size > FETCH_BYTES_LIMIT:
            raise Permanent(
                f"a repository sends more than {FETCH_BYTES_LIMIT} bytes of history",
                advice="Nothing of it was taken. Look at the repository by hand.",
            )

    return watch
