"""Parts of a file on a web server, by ranged requests; takes no more than was asked for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx

from jobs.addresses import can_be_looked_up
from jobs.deadline import answered_within
from jobs.errors import BadGguf, Permanent, ScoutError, Transient, UsageError
from jobs.gguf.limits import FIRST_FETCH_BYTES
from jobs.reach import LookUp, leads_inside, look_up
from jobs.terminal import printable

CONNECT_SECONDS = 10.0
READ_SECONDS = 20.0
WHOLE_SECONDS = 120.0
MOST_REDIRECTS = 5

_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII)
_NONE_OF = re.compile(r"bytes \*/(\d{1,18})", re.ASCII)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_DOUBT = frozenset({408, 425, 429})
_FETCH = "Download the file and name its path."
_ADDRESS = "Write https://host/file.gguf."


def client(*, transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """A client that follows nothing by itself and asks for bytes as they lie."""
    return httpx.Client(
        transport=transport,
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        headers={"Accept-Encoding": "identity", "User-Agent": "forkscout"},
        follow_redirects=False,
    )


class RangedFile:
    """One file behind an address; its size and first bytes come with the first request.

    The token is sent to the host of the address only, never to where that host redirects; a public
    host that redirects to this machine or into its networks is not followed. A server
    that ignores ranges is read for its first bytes and left; asking it for more is refused.
    """

    def __init__(
        self,
        url: str,
        *,
        http: httpx.Client,
        token: str = "",
        now: Callable[[], float] = time.monotonic,
        whole_seconds: float = WHOLE_SECONDS,
        look_up: LookUp = look_up,
    ) -> None:
        self._http = http
        self._url = _checked(url)
        self._home = _origin(self._url)
        self._token = token
        self._now = now
        self._look_up = look_up
        self._whole_seconds = whole_seconds
        self._deadline = now() + whole_seconds
        self._tag = ""
        self._takes_ranges = True
        self.size_bytes: int | None = None
        self._first = self._ask_in_time(0, FIRST_FETCH_BYTES)

    def check(self) -> None:
        """Raise where reading has taken too long."""
        if self._now() > self._deadline:
            raise self._too_slow()

    def fetch(self, offset: int, length: int) -> bytes:
        """These bytes; the first ones are in hand already."""
        if offset + length <= len(self._first) or self.size_bytes == len(self._first):
            return self._first[offset : offset + length]
        if not self._takes_ranges:
            raise Permanent(
                f"{_host(self._url)} ignores ranges, and the first {len(self._first)} bytes are "
                "not enough",
                advice=_FETCH,
            )
        return self._ask_in_time(offset, length)

    def _ask_in_time(self, offset: int, length: int) -> bytes:
        left = self._deadline - self._now()
        try:
            return answered_within(left, lambda: self._ask(offset, length), name="ranged request")
        except TimeoutError as fault:
            raise self._too_slow() from fault

    def _too_slow(self) -> Transient:
        return Transient(
            f"{shown(self._url)} gave its header in more than {self._whole_seconds:g} seconds",
            advice="Try again, or download the file and name its path.",
        )

    def _ask(self, offset: int, length: int) -> bytes:
        with self._answer(offset, length) as answer:
            if answer.status_code == httpx.codes.OK and offset == 0:
                self._takes_ranges = False
                said = answer.headers.get("Content-Length", "")
                self.size_bytes = int(said) if re.fullmatch(r"[0-9]{1,18}", said) else None
                body = self._body(answer, length, exact=False)
                self.size_bytes = len(body) if len(body) < length else self.size_bytes
                return body
            if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                none = _NONE_OF.fullmatch(answer.headers.get("Content-Range", ""))
                if none and int(none[1]) == 0:
                    raise BadGguf("the file is empty")
            if answer.status_code != httpx.codes.PARTIAL_CONTENT:
                raise _refusal(answer, self._url)
            wanted = self._promised(answer, offset, length)
            return self._body(answer, wanted, exact=True)

    def _promised(self, answer: httpx.Response, offset: int, length: int) -> int:
        """How many bytes the answer must have: what was asked for, up to the end of the file."""
        said = answer.headers.get("Content-Range", "")
        found = _RANGE.fullmatch(said)
        if not found or found[3] == "*":
            raise Permanent(
                f"{_host(self._url)} does not tell the size of the file: {printable(said)[:80]!r}",
                advice=_FETCH,
            )
        first, last, total = (int(number) for number in found.groups())
        if first != offset or last != min(offset + length, total) - 1:
            raise Transient(
                f"{_host(self._url)} sent other bytes than were asked for", advice=_FETCH
            )
        tag = answer.headers.get("ETag", "")
        if (self.size_bytes or total) != total or (self._tag or tag) != tag:
            raise Transient(f"{shown(self._url)} changed while it was read", advice="Try again.")
        self.size_bytes, self._tag = total, tag
        return last - first + 1

    def _body(self, answer: httpx.Response, length: int, *, exact: bool) -> bytes:
        if (coding := answer.headers.get("Content-Encoding", "identity")) != "identity":
            raise Permanent(
                f"{_host(self._url)} sends bytes as {printable(coding)[:40]!r}", advice=_FETCH
            )
        body = bytearray()
        for chunk in answer.iter_raw():
            body += chunk
            self.check()
            if len(body) >= length:
                break
        if exact and len(body) != length:
            raise Transient(
                f"{_host(self._url)} sent {len(body)} bytes of {length}", advice="Try again."
            )
        return bytes(body[:length])

    @contextmanager
    def _answer(self, offset: int, length: int) -> Iterator[httpx.Response]:
        """The answer behind all redirects; the place they lead to is asked directly next time."""
        asked = {"Range": f"bytes={offset}-{offset + length - 1}"}
        try:
            for _ in range(MOST_REDIRECTS + 1):
                self.check()
                is_home = _origin(self._url) == self._home
                secret = {"Authorization": f"Bearer {self._token}"} if self._token else {}
                headers = asked | (secret if is_home else {})
                with self._http.stream("GET", self._url, headers=headers) as answer:
                    if answer.status_code not in _REDIRECTS:
                        yield answer
                        return
                    self._url = self._followed(answer.headers.get("Location", ""))
        except httpx.TimeoutException as fault:
            raise Transient(f"{_host(self._url)} took too long", advice="Try again.") from fault
        except httpx.HTTPError as fault:
            raise Transient(
                f"{_host(self._url)} could not be read: {printable(str(fault))[:200]}",
                advice="Check the address and the network, then try again.",
            ) from fault
        except (httpx.InvalidURL, UnicodeError) as fault:
            raise Permanent(
                f"{_host(self._url)} leads to an address that is none: {_words(fault)}",
                advice=_FETCH,
            ) from fault
        raise Permanent(
            f"{_host(self._url)} redirects more than {MOST_REDIRECTS} times", advice=_FETCH
        )

    def _followed(self, location: str) -> httpx.URL:
        here, there = self._url, _followed(self._url, location)
        if leads_inside(here.host, there.host, self._look_up):
            raise Permanent(
                f"{_host(here)} redirects into a private network, to {_host(there)}",
                advice="Name that address itself, if it is yours and meant.",
            )
        return there


def shown(url: httpx.URL) -> str:
    """An address as people may see it: without what may be secret in it."""
    return printable(f"{url.scheme}://{url.netloc.decode()}{url.path}")[:200]


def _host(url: httpx.URL) -> str:
    return printable(url.netloc.decode())[:100]


def _words(fault: Exception) -> str:
    return printable(str(fault))[:80]


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _checked(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
        host = url.host and url.raw_host.decode()
    except (httpx.InvalidURL, ValueError) as fault:
        raise UsageError(f"{text[:80]!r} is no address", advice=_ADDRESS) from fault
    if url.scheme not in ("http", "https") or not host or not can_be_looked_up(host):
        raise UsageError(f"{text[:80]!r} is no address", advice=_ADDRESS)
    if url.userinfo:
        raise UsageError("an address must hold no name or password", advice=_ADDRESS)
    return url


def _followed(url: httpx.URL, location: str) -> httpx.URL:
    try:
        target = _checked(str(url.join(location)))
    except (UsageError, httpx.InvalidURL, ValueError) as fault:
        raise Permanent(
            f"{_host(url)} redirects to {printable(location)[:80]!r}, which is no place for a file",
            advice=_FETCH,
        ) from fault
    if url.scheme == "https" and target.scheme != "https":
        raise Permanent(f"{_host(url)} redirects away from https", advice=_FETCH)
    return target


def _refusal(answer: httpx.Response, url: httpx.URL) -> ScoutError:
    status = answer.status_code
    if status in (401, 403) and answer.headers.get("X-Error-Code") == "GatedRepo":
        return Permanent(
            f"{_host(url)} answers {status}: {url.path[:100]!r} is gated",
            advice="Accept the terms on its page, then set FORKSCOUT_HF_TOKEN to a token of that "
            "account.",
        )
    if status in (401, 403):
        return Permanent(
            f"{_host(url)} answers {status}: {url.path[:100]!r} is private, gated or not there",
            advice="Check the address and what you may read; some hosts say this for missing too.",
        )
    if status in (404, 410):
        return Permanent(
            f"{_host(url)} answers {status}: {url.path[:100]!r} is not there",
            advice="Check the address; files are renamed and moved.",
        )
    if status in _DOUBT or status >= 500:
        said = answer.headers.get("Retry-After", "")
        wait = f"in {said} seconds" if re.fullmatch(r"[0-9]{1,6}", said) else "later"
        return Transient(f"{_host(url)} answers {status}", advice=f"Try again {wait}.")
    return Permanent(f"{_host(url)} answers {status}, which we cannot use", advice=_FETCH)
