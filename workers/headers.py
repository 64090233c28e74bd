"""Reads the header of a model file of this machine, once and bounded, for its row; runs nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.dialect.wire import plain
from jobs.errors import Permanent, Transient
from jobs.exchange import TWIN_KEY
from jobs.fit.joining import refuse_part, shape_from
from jobs.fit.stored import facts_stored, shape_stored
from jobs.gguf.facts import ModelFacts
from jobs.gguf.header import Header
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of
from jobs.tables import ModelFileRow

LONGEST_FAULT = 300


@dataclass(frozen=True)
class HeaderRead:
    """What a row keeps of a header; `fault` says why there is no shape."""

    facts: dict[str, Any] | None = None
    shape: dict[str, Any] | None = None
    fault: str = ""

    def put_in(self, row: ModelFileRow) -> None:
        """Store it with the model file."""
        row.facts, row.shape, row.header_fault = self.facts, self.shape, self.fault


def is_unread(row: ModelFileRow) -> bool:
    """Whether nobody has looked at this file's header yet."""
    return row.facts is None and row.shape is None and not row.header_fault


def read_local(paths: Sequence[Path], *, check: Callable[[], None]) -> HeaderRead:
    """The header of a model in one or several files; one that is no GGUF gives a fault, no error.

    `check` may raise to end the reading. Raises Transient where the disk does not answer.
    """
    facts: ModelFacts | None = None
    try:
        header = _header(paths[0], check)
        facts = facts_of(header)
        refuse_part(facts, len(paths))
        parts = [facts_of(_header(path, check)) for path in paths[1:]]
        shape = shape_from(header, facts, parts=parts)
        return HeaderRead(facts_stored(facts), shape_stored(shape))
    except OSError as fault:
        raise Transient(
            f"the model file cannot be read: {fault.strerror}", advice="Check the disk."
        ) from fault
    except Permanent as fault:
        words = plain(fault.detail)[:LONGEST_FAULT]
        return HeaderRead(facts=facts_stored(facts) if facts else None, fault=words)


def is_twin(path: Path, *, check: Callable[[], None]) -> bool:
    """Whether this file holds random weights of another model's shape; one that is no GGUF not.

    The tag lies behind the vocabulary, so that facts read from a header's first part do not know.
    """
    try:
        return TWIN_KEY in _header(path, check).keys
    except OSError as fault:
        raise Transient(
            f"the model file cannot be read: {fault.strerror}", advice="Check the disk."
        ) from fault
    except Permanent:
        return False


def _header(path: Path, check: Callable[[], None]) -> Header:
    with path.open("rb", buffering=0) as file:
        return read_header(
            lambda offset, length: os.pread(file.fileno(), length, offset),
            size_bytes=os.fstat(file.fileno()).st_size,
            depth=Depth.FULL,
            check=check,
        )
