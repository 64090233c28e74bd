"""Reads a log that grows, in pieces; what is no UTF-8 becomes a replacement sign."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

CHUNK_BYTES = 2**20


class LogReader:
    """Reads what is added to a log, never more than a piece of it at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def new(self) -> Iterator[str]:
        """The text that came since last time, in pieces."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            while data := file.read(CHUNK_BYTES):
                self._offset += len(data)
                yield self._decoder.decode(data)
