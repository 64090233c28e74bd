"""A file that is not whole yet, with a journal of the blocks that reached the disk.

hashlib cannot save its state, so a new process hashes what is there. It compares each block with
the journal on the way, and goes on behind the last one that is right: a torn or damaged block
costs its own bytes, not the whole file. The room of the whole file is taken at the start.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from jobs.errors import JobFailure
from jobs.model import Blame
from workers.artifacts import disk_full_is_infrastructure

BLOCK_BYTES = 16 * 2**20
READ_BYTES = 2**20
PART = ".part"
JOURNAL = ".journal"
NO_ROOM_FOR = "no room for the weights: "

_DIGEST_BYTES = 16


def part_of(root: Path, sha256: str) -> Path:
    """Where the bytes of a file wait until they are all there."""
    return root / f"{sha256}{PART}"


def journal_of(root: Path, sha256: str) -> Path:
    """The journal beside a part."""
    return root / f"{sha256}{JOURNAL}"


def forget(root: Path, sha256: str) -> None:
    """Remove a part and its journal."""
    part_of(root, sha256).unlink(missing_ok=True)
    journal_of(root, sha256).unlink(missing_ok=True)


def take_room(fd: int, size_bytes: int) -> None:
    """Make the disk promise an open file its size; some file systems promise nothing."""
    with disk_full_is_infrastructure(NO_ROOM_FOR, phase="download"):
        try:
            os.posix_fallocate(fd, 0, size_bytes)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise


class Part:
    """Bytes 0 to `offset` of a file are on disk and hashed. One holder at a time: see the lock."""

    def __init__(
        self, root: Path, sha256: str, size_bytes: int, *, block_bytes: int = BLOCK_BYTES
    ) -> None:
        self.root, self.sha256, self.size_bytes = root, sha256, size_bytes
        self.offset = 0
        self._block_bytes = block_bytes
        self._whole = hashlib.sha256()
        self._block = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._sealed = 0
        self._is_resumed = False
        self._head = json.dumps([1, sha256, size_bytes, block_bytes])
        self._fd = os.open(
            part_of(root, sha256), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )

    def close(self) -> None:
        """Keep what is journaled, give back the room of the rest; unread bytes are kept as well."""
        if self._fd < 0:
            return
        try:
            if self._is_resumed:
                os.ftruncate(self._fd, self._sealed)
        finally:
            os.close(self._fd)
            self._fd = -1
        if self._is_resumed and not self._sealed:
            forget(self.root, self.sha256)

    def resume(self) -> Iterator[int]:
        """Hash what an earlier process left; yields the offset reached now and then."""
        kept = 0
        for wanted in self._journaled():
            length = min(self._block_bytes, self.size_bytes - kept)
            if length <= 0:
                break
            whole, block = self._whole.copy(), hashlib.blake2b(digest_size=_DIGEST_BYTES)
            for chunk in self._read(kept, length):
                whole.update(chunk)
                block.update(chunk)
                length -= len(chunk)
                yield kept
            if length or block.hexdigest() != wanted:
                break
            self._whole = whole
            kept += min(self._block_bytes, self.size_bytes - kept)
            self.offset = self._sealed = kept
        self._write_journal(kept)
        self._is_resumed = True

    @property
    def lacking_bytes(self) -> int:
        """Room that is still to be taken; a process that was killed leaves its own."""
        return max(0, self.size_bytes - os.fstat(self._fd).st_size)

    def reserve(self) -> None:
        """Take the room of the whole file now, so that two downloads are not promised the same."""
        take_room(self._fd, self.size_bytes)

    def write(self, chunk: bytes) -> None:
        """Add bytes; more than the file's size is a fault of the caller."""
        view = memoryview(chunk)
        while view:
            room = self._block_bytes - self.offset % self._block_bytes
            piece = view[:room]
            with disk_full_is_infrastructure(NO_ROOM_FOR, phase="download"):
                self._put(piece)
            self._whole.update(piece)
            self._block.update(piece)
            self.offset += len(piece)
            view = view[len(piece) :]
            if self.offset % self._block_bytes == 0 or self.offset == self.size_bytes:
                self._seal()

    def restart(self) -> None:
        """Forget every byte."""
        self.offset = self._sealed = 0
        self._whole, self._block = hashlib.sha256(), hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._write_journal(0)

    def finish(self, target: Path) -> None:
        """Give the whole file its name, read-only; refuses and deletes other bytes."""
        found = self._whole.hexdigest()
        if self.offset != self.size_bytes or found != self.sha256:
            self._drop()
            raise JobFailure(
                f"the bytes that came have sha256 {found}, the hub promised {self.sha256}; "
                "they were deleted",
                failure_class="weights_sha256",
                blame=Blame.INFRASTRUCTURE,
                phase="verify",
                advice="the job is tried again by itself; a proxy on the way may change files",
            )
        os.ftruncate(self._fd, self.size_bytes)
        os.fsync(self._fd)
        part_of(self.root, self.sha256).rename(target)
        # Not before: a part that a dying process left read-only could not be opened again.
        os.fchmod(self._fd, 0o444)
        os.close(self._fd)
        self._fd = -1
        journal_of(self.root, self.sha256).unlink(missing_ok=True)

    def _put(self, piece: memoryview) -> None:
        done = 0
        while done < len(piece):
            done += os.pwrite(self._fd, piece[done:], self.offset + done)

    def _seal(self) -> None:
        """The block's bytes reach the disk before the journal says so."""
        with disk_full_is_infrastructure(NO_ROOM_FOR, phase="download"):
            os.fdatasync(self._fd)
            with journal_of(self.root, self.sha256).open("a", encoding="ascii") as journal:
                journal.write(f"{self._block.hexdigest()}\n")
        self._sealed = self.offset
        self._block = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def _journaled(self) -> list[str]:
        try:
            lines = journal_of(self.root, self.sha256).read_text("ascii").split("\n")
        except (OSError, UnicodeDecodeError):
            return []
        # The last piece lacks its line end: nothing, or what a dying process was writing.
        return lines[1:-1] if lines[0] == self._head else []

    def _write_journal(self, kept: int) -> None:
        blocks = -(-kept // self._block_bytes)
        lines = [self._head, *self._journaled()[:blocks]]
        path = journal_of(self.root, self.sha256)
        fresh = path.with_name(f"{path.name}.new")
        with disk_full_is_infrastructure(NO_ROOM_FOR, phase="download"):
            fresh.write_text("".join(f"{line}\n" for line in lines), "ascii")
            fresh.replace(path)

    def _read(self, start: int, length: int) -> Iterator[bytes]:
        while length and (chunk := os.pread(self._fd, min(READ_BYTES, length), start)):
            yield chunk
            start += len(chunk)
            length -= len(chunk)

    def _drop(self) -> None:
        self._sealed = 0
        with contextlib.suppress(OSError):
            self.close()
