"""The weights on this machine's disk, by digest: their room, their use, their end; fetches none.

What a living job needs and what a process reads is never taken away, and what a person added is
never pushed out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jobs.errors import JobFailure, Later, disk_full
from jobs.trees import remove
from workers.download_parts import BLOCK_BYTES, JOURNAL, NO_ROOM_FOR, PART, forget, part_of
from workers.store_name import store_name

SUFFIX = ".gguf"
PART_DAYS = 7
"""A part that nobody wanted for so long is swept."""

LEFTOVERS = (f"*{JOURNAL}*", "*.partial", ".*.incoming", ".adding-*")
LEAVING = ".leaving"
"""A set that is being removed; it is no longer there, whoever dies in the middle of it."""

BUSY_SECONDS = 30.0
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_DAY_SECONDS = 86400.0

Form = Literal["file", "set", "part"]


@dataclass(frozen=True)
class Entry:
    """One thing in the store; a set is the folder of a weight that comes in several files."""

    sha256: str
    form: Form
    size_bytes: int
    used_at: float


@dataclass(frozen=True)
class Store:
    """The folder and its rules.

    `kept` names the digests that no other weight may push out; `let_go` asks last whether one may
    go, and says to everybody that it is gone.
    """

    root: Path
    kept: Callable[[], Collection[str]]
    let_go: Callable[[str], bool]
    budget_bytes: int = 0
    min_free_bytes: int = 0
    block_bytes: int = BLOCK_BYTES
    say: Callable[[str], None] = field(default=lambda _words: None)

    @property
    def name(self) -> str:
        """What rows call this store."""
        return store_name(self.root)

    def whole(self) -> set[str]:
        """Digests of the files and sets that are all there."""
        return {entry.sha256 for entry in self.entries() if entry.form != "part"}

    def file(self, sha256: str) -> Path:
        """Where one file lies."""
        return self.root / f"{sha256}{SUFFIX}"

    def folder(self, sha256: str) -> Path:
        """Where the files of a set lie, under their own names."""
        return self.root / sha256

    def entries(self) -> list[Entry]:
        """What is there, the least recently used first."""
        found = [entry for path in self._paths() if (entry := _entry(path)) is not None]
        return sorted(found, key=lambda entry: (entry.used_at, entry.sha256))

    def alone_with(self, digests: Sequence[str]) -> AbstractContextManager[None]:
        """Nobody else fetches or removes these while the block runs; `Later` where one does."""
        return alone_with(self.root, digests)

    @contextmanager
    def room_kept(self, need_bytes: int, keep: Collection[str] = ()) -> Iterator[None]:
        """Room for `need_bytes` more; nobody else is given any while the block takes it.

        Removes the least recently used weights where that is enough, and nothing where it is not.
        """
        with self._one_reserves():
            self._make_room(need_bytes, keep)
            yield

    def remove(self, entry: Entry) -> bool:
        """Take one entry away, unless it is needed, read, or just being fetched."""
        try:
            with self.alone_with([entry.sha256]), _unread(self._files(entry)) as unread:
                if not unread or not self.let_go(entry.sha256):
                    return False
                self._delete(entry)
                return True
        except Later:
            return False

    def sweep(self, *, now: float | None = None) -> list[Entry]:
        """Remove parts that nobody has touched for `PART_DAYS`, and journals without a part."""
        before = (time.time() if now is None else now) - PART_DAYS * _DAY_SECONDS
        old = [each for each in self.entries() if each.form == "part" and each.used_at < before]
        gone = [entry for entry in old if self.remove(entry)]
        for path in self.root.glob(f".*{LEAVING}"):
            with contextlib.suppress(Later), self.alone_with([path.name[1 : -len(LEAVING)]]):
                remove(path)
        for pattern in LEFTOVERS:
            for path in self.root.glob(pattern):
                with contextlib.suppress(FileNotFoundError):
                    if path.lstat().st_mtime < before and not _has_part(path):
                        remove(path) if path.is_dir() else path.unlink()
        return gone

    def _make_room(self, need_bytes: int, keep: Collection[str]) -> None:
        missing = self._missing(need_bytes)
        if missing <= 0:
            return
        kept = {*self.kept(), *keep}
        spare = [entry for entry in self.entries() if entry.sha256 not in kept]
        if sum(entry.size_bytes for entry in spare) < missing:
            raise self._full(need_bytes, missing)
        for entry in spare:
            if missing > 0 and self.remove(entry):
                missing -= entry.size_bytes
                self.say(
                    f"removed the {entry.form} {entry.sha256[:12]} ({entry.size_bytes:,} bytes), "
                    "the least recently used"
                )
        missing = self._missing(need_bytes)
        if missing > 0:
            raise self._full(need_bytes, missing)

    def _missing(self, need_bytes: int) -> int:
        free = shutil.disk_usage(self.root).free
        missing = need_bytes + self.min_free_bytes - free
        if self.budget_bytes:
            used = sum(entry.size_bytes for entry in self.entries())
            missing = max(missing, used + need_bytes - self.budget_bytes)
        return missing

    def _full(self, need_bytes: int, missing: int) -> JobFailure:
        limit = f" within the budget of {self.budget_bytes:,}" if self.budget_bytes else ""
        return disk_full(
            f"{NO_ROOM_FOR}{need_bytes:,} bytes are needed{limit} beside the "
            f"{self.min_free_bytes:,} that stay free, {missing:,} are missing",
            phase="download",
            advice="`forkscout weights` shows what lies there; "
            "FORKSCOUT_WEIGHTS_BUDGET_BYTES is the budget",
        )

    @contextmanager
    def _one_reserves(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / ".room.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _paths(self) -> Iterator[Path]:
        with contextlib.suppress(FileNotFoundError):
            for each in os.scandir(self.root):
                if _DIGEST.fullmatch(each.name.partition(".")[0]):
                    yield Path(each.path)

    def _files(self, entry: Entry) -> list[Path]:
        if entry.form == "set":
            with contextlib.suppress(FileNotFoundError):
                return sorted(self.folder(entry.sha256).iterdir())
        return [self.file(entry.sha256)] if entry.form == "file" else []

    def _delete(self, entry: Entry) -> None:
        if entry.form == "part":
            forget(self.root, entry.sha256)
        elif entry.form == "file":
            self.file(entry.sha256).unlink(missing_ok=True)
        else:
            leaving = self.root / f".{entry.sha256}{LEAVING}"
            remove(leaving)
            with contextlib.suppress(FileNotFoundError):
                self.folder(entry.sha256).rename(leaving)
            remove(leaving)


@contextmanager
def being_read(paths: Sequence[Path]) -> Iterator[None]:
    """Nobody removes these files while the block runs; each counts as used now."""
    with ExitStack() as stack:
        for path in paths:
            file = stack.enter_context(path.open("rb"))
            fcntl.flock(file, fcntl.LOCK_SH)
            used(path)
        yield


def used(path: Path) -> None:
    """The file was used now; the modification time of a weight says nothing else."""
    os.utime(path)


@contextmanager
def _unread(paths: Sequence[Path]) -> Iterator[bool]:
    with ExitStack() as stack:
        for path in paths:
            try:
                fcntl.flock(stack.enter_context(path.open("rb")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except FileNotFoundError:
                continue
        yield True


def _has_part(journal: Path) -> bool:
    return part_of(journal.parent, journal.name.partition(".")[0]).exists()


def _entry(path: Path) -> Entry | None:
    sha256, _, suffix = path.name.partition(".")
    try:
        info = path.lstat()
        if not suffix and path.is_dir():
            inside = [file.stat() for file in path.iterdir()]
            size = sum(each.st_size for each in inside)
            used_at = max((each.st_mtime for each in inside), default=info.st_mtime)
            return Entry(sha256, "set", size, used_at)
    except FileNotFoundError:
        return None
    forms: dict[str, Form] = {SUFFIX: "file", PART: "part"}
    form = forms.get(f".{suffix}")
    return Entry(sha256, form, info.st_size, info.st_mtime) if form else None


@contextmanager
def alone_with(root: Path, digests: Sequence[str]) -> Iterator[None]:
    """The kernel drops the locks with their holder, so no dead process keeps one."""
    root.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for sha256 in sorted(set(digests)):
            lock = stack.enter_context((root / f".{sha256}.lock").open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Later(
                    f"another job is fetching the weights {sha256[:12]}",
                    wait_seconds=BUSY_SECONDS,
                    advice="this job is tried again when that one has ended",
                ) from error
        yield
