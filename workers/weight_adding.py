"""Puts a person's own file into the weights store; what is no GGUF file is refused."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from jobs import clock
from jobs.config import Settings
from jobs.control import Control
from jobs.db import writing
from jobs.errors import UsageError
from jobs.store import catalog, weights
from jobs.terminal import printable
from workers.download_parts import take_room
from workers.headers import HeaderRead, read_local
from workers.weight_bringing import store_of
from workers.weights import digest_of

MAGIC = b"GGUF"
COPY_BYTES = 2**20
LONGEST_NAME = 80


@dataclass(frozen=True)
class Added:
    """A file that is in the store now, and the models it is."""

    sha256: str
    size_bytes: int
    models: tuple[str, ...]


def add_file(settings: Settings, database: Engine, path: Path, *, name: str = "") -> Added:
    """Copy a file into the store by its digest; a digest nobody knows becomes a model of `name`."""
    wanted = name or path.stem
    if not wanted or len(wanted) > LONGEST_NAME or printable(wanted) != wanted:
        raise UsageError(
            f"{printable(wanted)[:80]!r} is no name for a model",
            advice=f"pass --name with {LONGEST_NAME} printable characters at most",
        )
    store = store_of(settings, database)
    size_bytes = _checked(path)
    header = _readable(path)
    with tempfile.NamedTemporaryFile(prefix=".adding-", dir=store.root) as copy:
        with store.room_kept(size_bytes):
            take_room(copy.fileno(), size_bytes)
        with path.open("rb") as file:
            shutil.copyfileobj(file, copy, COPY_BYTES)
        copy.truncate()
        copy.flush()
        sha256 = digest_of(Path(copy.name), Control(), phase="verify")
        size_bytes = Path(copy.name).stat().st_size
        with store.alone_with([sha256]):
            target = store.file(sha256)
            if not target.exists():
                os.fchmod(copy.fileno(), 0o444)
                os.fsync(copy.fileno())
                os.link(copy.name, target)
    with writing(database) as session:
        if not weights.rows_with(session, sha256):
            values = {"model_class": wanted, "sha256": sha256, "size_bytes": size_bytes}
            catalog.upsert_model_file(session, wanted, now=clock.now(), values=values)
        for row in weights.rows_with(session, sha256):
            header.put_in(row)
            session.add(row)
        rows = weights.say_stored(session, sha256, size_bytes, store=store.name, now=clock.now())
        return Added(sha256, size_bytes, tuple(row.name for row in rows))


def _readable(path: Path) -> HeaderRead:
    """The header; a file of which no bench and no estimate could say what it is is refused."""
    found = read_local([path], check=_never)
    if found.fault:
        raise UsageError(
            f"{printable(str(path))[-120:]!r} is no model we can read: {found.fault}",
            advice="name a whole .gguf file; `forkscout gguf PATH` shows what is in it",
        )
    return found


def _never() -> None:
    """Nobody asks the reading to stop."""


def _checked(path: Path) -> int:
    named = repr(printable(str(path))[-120:])
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{named} is no file", advice="name a .gguf file")
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise UsageError(f"{named} is no GGUF file", advice="name a .gguf file")
            return file.seek(0, os.SEEK_END)
    except OSError as error:
        raise UsageError(
            f"{named} cannot be read: {error.strerror}", advice="check the path"
        ) from error
