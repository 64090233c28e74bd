"""A stretch of a file that moves forward only, within limits; it never fetches past what it may."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from jobs.errors import BadGguf
from jobs.gguf import limits

Fetch = Callable[[int, int], bytes]
"""`fetch(offset, length)`: exactly these bytes, fewer only where the file ends."""

_U64 = Struct("<Q")
_CHECK_EVERY = 65_536


class NoMore(Exception):
    """Reading on would need another fetch, and the caller asked for none."""


class Window:
    """Bytes of a file from its start on; each is asked for at most once, many never."""

    def __init__(self, fetch: Fetch, size_bytes: int | None, check: Callable[[], None]) -> None:
        self._fetch = fetch
        self._check = check
        self._buffer = b""
        self._base = 0
        self._at = 0
        self.size_bytes = size_bytes
        self.bytes_read = 0
        self.requests = 0
        self.may_fetch = True

    @property
    def position(self) -> int:
        """How far into the file we are."""
        return self._base + self._at

    def demand(self, length: int, what: str) -> None:
        """Refuse a length that neither the file nor our limits have room for; fetches nothing."""
        end = self.position + length
        if self.size_bytes is not None and end > self.size_bytes:
            raise BadGguf(f"{what} ends at byte {end}, the file at {self.size_bytes}")
        if end > limits.HEADER_BYTES:
            raise BadGguf(f"{what} takes the header past {limits.HEADER_BYTES} bytes")

    def take(self, length: int, what: str) -> bytes:
        """The next bytes."""
        self.demand(length, what)
        if self._at + length > len(self._buffer):
            self._load(length, what)
        start, self._at = self._at, self._at + length
        return self._buffer[start : self._at]

    def peek(self, length: int = 256) -> bytes:
        """Up to so many of the next bytes, as far as they are in hand."""
        return self._buffer[self._at : self._at + length]

    def skip(self, length: int, what: str) -> None:
        """Go past bytes; those not in hand yet are never fetched."""
        self.demand(length, what)
        self._at += length

    def skip_strings(self, count: int, what: str) -> None:
        """Go past so many strings."""
        unpack, longest = _U64.unpack_from, limits.STRING_BYTES
        while count:
            self.demand(8 * count, what)
            if self._at + 8 > len(self._buffer):
                self._load(8, what)
            buffer, at, last = self._buffer, self._at, len(self._buffer) - 8
            stride = min(count, _CHECK_EVERY)
            for left in range(stride, 0, -1):
                if at > last:
                    count -= stride - left
                    break
                length = unpack(buffer, at)[0]
                if length > longest:
                    raise BadGguf(f"{what} holds a text of {length} bytes")
                at += 8 + length
            else:
                count -= stride
            self._at = at
            self.demand(0, what)
            self._check()

    def _load(self, length: int, what: str) -> None:
        if not self.may_fetch:
            raise NoMore
        self._buffer, self._base, self._at = self._buffer[self._at :], self.position, 0
        while (missing := length - len(self._buffer)) > 0:
            self._check()
            start = self._base + len(self._buffer)
            chunk = limits.FIRST_FETCH_BYTES if not self.requests else limits.FETCH_BYTES
            room = limits.HEADER_BYTES if self.size_bytes is None else self.size_bytes
            wanted = min(max(chunk, missing), min(room, limits.HEADER_BYTES) - start)
            got = self._fetch(start, wanted)
            self.requests += 1
            self.bytes_read += len(got)
            if len(got) > wanted:
                raise BadGguf(f"{len(got)} bytes came where {wanted} were asked for")
            if len(got) < wanted:
                end = start + len(got)
                if self.size_bytes is not None or len(got) < missing:
                    raise BadGguf(f"the file is cut short: {what} is missing behind byte {end}")
                self.size_bytes = end
            self._buffer += got
