"""Asks the model hub over HTTP; the token goes to the hub's own address and nowhere else.

It follows redirects by hand, reads bounded answers only, and never waits for a quota.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpx
from pydantic import SecretStr

from jobs.addresses import checked_base, fits_a_header
from jobs.deadline import answered_within
from jobs.errors import Transient, UsageError
from jobs.hub_answers import refusal
from jobs.hub_names import COMMIT, checked_repo, is_below
from jobs.reach import LookUp, leads_inside, look_up

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
ANSWER_SECONDS = 120.0
MOST_REDIRECTS = 5
ANSWER_LIMIT_BYTES = 32 * 2**20

_AGAIN = "the job is tried again by itself"
_LARGEST_SIZE_BYTES = 2**63
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


def checked_endpoint(endpoint: str) -> str:
    """The hub's address, to which a token may go; else a `UsageError`."""
    return checked_base(endpoint, setting="FORKSCOUT_HF_ENDPOINT", key_setting="FORKSCOUT_HF_TOKEN")


@dataclass(frozen=True)
class Hub:
    """Where the hub is and what we may show it."""

    endpoint: str
    token: SecretStr = field(default_factory=lambda: SecretStr(""))

    def __post_init__(self) -> None:
        checked_endpoint(self.endpoint)
        if not fits_a_header(self.token.get_secret_value()):
            raise UsageError(
                "FORKSCOUT_HF_TOKEN holds signs that no token has",
                advice="Copy it again from the hub's settings.",
            )

    @property
    def has_token(self) -> bool:
        """Whether there is something to show."""
        return bool(self.token.get_secret_value())

    def url(self, *steps: str) -> str:
        """An address below the endpoint; every step is quoted, slashes in it as well."""
        tail = "/".join(quote(step, safe="") for step in steps)
        return f"{self.endpoint.rstrip('/')}/{tail}"

    def file_url(self, repo: str, commit: str, file: str) -> str:
        """Where the bytes of one file are asked for."""
        return self.url(*repo.split("/"), "resolve", commit, *file.split("/"))

    def headers_for(self, url: str) -> dict[str, str]:
        """The token, where `url` is the hub itself."""
        token = self.token_for(url)
        return {"Authorization": f"Bearer {token}"} if token else {}

    def token_for(self, url: str) -> str:
        """What may be shown to an address: the token to the hub, nothing to anybody else."""
        return self.token.get_secret_value() if _origin(url) == _origin(self.endpoint) else ""


@dataclass(frozen=True)
class Reply:
    """The head of an answer that is no redirect; `is_elsewhere` where another host gave it."""

    status: int
    headers: Mapping[str, str]
    is_elsewhere: bool
    chunks: Callable[[], Iterator[bytes]]


@dataclass(frozen=True)
class HubFile:
    """What the hub says of one file; `sha256` is None for a file that git itself keeps."""

    name: str
    size_bytes: int | None
    sha256: str | None


@dataclass(frozen=True)
class Snapshot:
    """A repository at one commit."""

    repo: str
    commit: str
    files: Mapping[str, HubFile]


def client() -> httpx.Client:
    """A client that follows nothing by itself and asks for bytes as they lie."""
    return httpx.Client(
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        headers={"Accept-Encoding": "identity", "User-Agent": "forkscout"},
        follow_redirects=False,
    )


@contextmanager
def asked(
    http: httpx.Client,
    hub: Hub,
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    look_up: LookUp = look_up,
) -> Iterator[Reply]:
    """The answer at the end of the redirects; raises `Transient` where the network fails.

    A redirect from a public host to this machine or into its networks is not followed.
    """
    here = url
    try:
        for _ in range(MOST_REDIRECTS + 1):
            shown = {**(headers or {}), **hub.headers_for(here)}
            with http.stream("GET", here, headers=shown) as response:
                if response.status_code not in _REDIRECTS:
                    said = {key.lower(): value for key, value in response.headers.items()}
                    elsewhere = _origin(here) != _origin(hub.endpoint)
                    yield Reply(
                        response.status_code,
                        said,
                        elsewhere,
                        lambda response=response: response.iter_raw(),  # type: ignore[misc]
                    )
                    return
                here = _next(here, response.headers.get("location", ""), look_up)
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeError) as error:
        raise Transient(
            f"the hub could not be read: {type(error).__name__} {str(error)[:200]}".strip(),
            advice="the job is tried again by itself; then look at the network",
        ) from error
    raise Transient("the hub redirects in a circle", advice=_AGAIN)


def snapshot(
    hub: Hub,
    repo: str,
    revision: str,
    *,
    http: httpx.Client | None = None,
    whole_seconds: float = ANSWER_SECONDS,
) -> Snapshot:
    """The files of a repository at a revision, and the commit it stands for.

    Raises `Transient` where the whole answer takes longer than `whole_seconds`.
    """
    url = hub.url("api", "models", *repo.split("/"), "revision", revision) + "?blobs=true"
    what = f"{repo} at {revision}"
    owned = http or client()

    def ask() -> bytes:
        with asked(owned, hub, url) as reply:
            if reply.status != 200:
                raise refusal(reply.status, reply.headers, what=what, has_token=hub.has_token)
            return _bounded(reply, whole_seconds)

    try:
        content = answered_within(whole_seconds, ask, name="hub snapshot")
    except TimeoutError as error:
        raise Transient(
            f"the hub's answer for {what} took more than {whole_seconds:g} seconds", advice=_AGAIN
        ) from error
    finally:
        if http is None:
            owned.close()
    try:
        return _snapshot(json.loads(content), repo)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Transient(
            f"the hub's answer for {what} is no description of a repository",
            advice=_AGAIN,
        ) from error


def _bounded(reply: Reply, whole_seconds: float) -> bytes:
    content = bytearray()
    deadline = time.monotonic() + whole_seconds
    for chunk in reply.chunks():
        content += chunk
        if len(content) > ANSWER_LIMIT_BYTES or time.monotonic() > deadline:
            raise Transient("the hub's answer has no end", advice=_AGAIN)
    return bytes(content)


def _snapshot(data: Any, asked_repo: str) -> Snapshot:
    commit = data["sha"]
    if not COMMIT.fullmatch(commit):
        raise ValueError("no commit")
    files = {}
    for entry in data["siblings"]:
        name, lfs = entry["rfilename"], entry.get("lfs") or {}
        size, sha256 = _size(lfs.get("size", entry.get("size"))), lfs.get("sha256")
        if not isinstance(name, str) or not is_below(name) or size == 0:
            continue
        sound = isinstance(sha256, str) and _SHA256.fullmatch(sha256)
        files[name] = HubFile(name, size, sha256 if sound else None)
    try:
        repo = checked_repo(data.get("id", asked_repo))
    except (ValueError, TypeError):
        repo = asked_repo
    return Snapshot(repo, commit, files)


def _size(said: Any) -> int | None:
    """A size as the hub tells it; raises `ValueError` for what no file can have."""
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int):
        raise ValueError("no size")
    if not 0 <= said < _LARGEST_SIZE_BYTES:
        raise ValueError("no size")
    return said


def _next(here: str, location: str, look_up: LookUp) -> str:
    try:
        there = urljoin(here, location)
    except ValueError:
        there = ""
    parts = _origin(there)
    left_tls = parts is not None and urlsplit(here).scheme == "https" and parts[0] != "https"
    if not location or parts is None or left_tls:
        raise Transient(
            "the hub redirects to no address we follow",
            advice=_AGAIN,
        )
    if leads_inside(_host(here), _host(there), look_up):
        raise Transient(
            "the hub redirects into a private network, where we do not follow", advice=_AGAIN
        )
    return there


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _origin(url: str) -> tuple[str, str, int] | None:
    """The origin of an http(s) address: scheme, host, port; None where a user stands in it."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port
