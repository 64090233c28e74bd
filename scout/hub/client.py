"""Asks the model hub over huggingface_hub; never retries, sleeps, or leaves its host."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

from jobs import clock
from jobs.deadline import answered_within
from jobs.errors import Transient
from jobs.hub import checked_endpoint
from scout.hub.answers import Answer, Kind, read_quota, sort

CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
WHOLE_SECONDS = 60.0
LARGEST_BODY_BYTES = 32 * 2**20
LARGEST_TEXT_BYTES = 256 * 1024
MOST_REDIRECTS = 3
ANONYMOUS = "anonymous"
PAGE_SIZE = 100
EXPANDED = ("sha", "lastModified", "createdAt", "tags", "gated", "private", "disabled")
"""What a list must say of each repository; the hub leaves out what nobody asked for."""
_DOUBT = frozenset({408, 425, 429})


class Refused(Transient):
    """The model hub did not answer"""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.reason, advice="Try again later.")


class _Session(httpx2.Client):
    """What huggingface_hub speaks through: with time limits, and without a reply to retry."""

    def __init__(
        self, *, read_seconds: float, anonymous: bool, now: Callable[[], datetime]
    ) -> None:
        self._anonymous, self._now = anonymous, now
        super().__init__(
            event_hooks={"response": [self._refuse]},
            follow_redirects=False,
            timeout=httpx2.Timeout(read_seconds, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
            max_redirects=MOST_REDIRECTS,
        )
        self._limits = self.timeout

    def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        """The response; every fault of the wire is ours, for others the library waits and asks."""
        request.extensions = {**request.extensions, "timeout": self._limits.as_dict()}
        try:
            return super().send(request, **how)
        except httpx2.HTTPError as fault:
            raise Refused(_unread(fault)) from fault

    def _refuse(self, response: httpx2.Response) -> None:
        if response.status_code in _DOUBT or response.status_code >= 500:
            raise Refused(
                sort(
                    response.status_code,
                    response.headers,
                    anonymous=self._anonymous,
                    now=self._now(),
                )
            )


def prepare_library(home: Path) -> None:
    """Keep huggingface_hub inside our home, silent and without a token of its own.

    It reads these once, when it is first imported.
    """
    os.environ.update(
        HF_HOME=str(home),
        HF_HUB_DISABLE_TELEMETRY="1",
        HF_HUB_DISABLE_XET="1",
        HF_HUB_DISABLE_PROGRESS_BARS="1",
        HF_HUB_DISABLE_IMPLICIT_TOKEN="1",  # noqa: S106 - a switch of the library
        HF_HUB_DISABLE_UPDATE_CHECK="1",
    )


class Client:
    """The hub as one token sees it; one per worker."""

    def __init__(
        self,
        *,
        home: Path,
        token: str = "",
        base: str = "https://huggingface.co",
        now: Callable[[], datetime] = clock.now,
        read_seconds: float = READ_SECONDS,
        whole_seconds: float = WHOLE_SECONDS,
    ) -> None:
        self.base = checked_endpoint(base)
        prepare_library(home)
        from huggingface_hub import get_session, hf_hub_url, set_client_factory
        from huggingface_hub.utils._headers import build_hf_headers

        self.anonymous = not token
        self.token = token
        self.identity = hashlib.sha256(token.encode()).hexdigest()[:16] if token else ANONYMOUS
        self.requests_made = 0
        self._now = now
        self._whole_seconds = whole_seconds
        self._url_of = hf_hub_url
        self._session: Callable[[], httpx2.Client] = get_session
        self._headers = {
            **build_hf_headers(token=token or False, library_name="forkscout"),
            "accept-encoding": "identity",
        }
        set_client_factory(
            lambda: _Session(read_seconds=read_seconds, anonymous=not token, now=now)
        )

    def models(self, params: Mapping[str, str], *, sort_by: str) -> Answer:
        """The first page of a list of repositories, in one of the hub's orders."""
        words = [*params.items(), ("sort", sort_by), ("limit", str(PAGE_SIZE))]
        words += [("expand", name) for name in EXPANDED]
        return self._asked(f"{self.base}/api/models?{urlencode(words)}", many=True)

    def page(self, next_url: str) -> Answer:
        """A further page, under the address that the one before it gave."""
        return self._asked(next_url, many=True)

    def model(self, full_name: str, *, commit: str = "") -> Answer:
        """A repository with its files, at its head or at a commit."""
        at = f"/revision/{quote(commit, safe='')}" if commit else ""
        return self._asked(f"{self._model(full_name)}{at}?blobs=true", many=False)

    def tree(self, full_name: str, commit: str) -> Answer:
        """The first page of a commit's files, with the hashes that only this list has."""
        place = f"{self._model(full_name)}/tree/{quote(commit, safe='')}"
        return self._asked(f"{place}?recursive=true&expand=false", many=True)

    def text(self, full_name: str, commit: str, path: str) -> Answer:
        """A small text of a repository, cut where it is long."""
        return self._in_time(
            lambda: self._ask(self.file_url(full_name, commit, path), most=LARGEST_TEXT_BYTES)
        )

    def file_url(self, full_name: str, commit: str, path: str) -> str:
        """Where a file of one commit is served."""
        return self._url_of(full_name, path, revision=commit, endpoint=self.base)

    def _model(self, full_name: str) -> str:
        return f"{self.base}/api/models/{quote(full_name)}"

    def _asked(self, url: str, *, many: bool) -> Answer:
        answer = self._in_time(lambda: self._ask(url, most=LARGEST_BODY_BYTES))
        if answer.kind is not Kind.PAGE:
            return answer
        try:
            body = json.loads(answer.text)
        except (ValueError, RecursionError):
            return Answer(Kind.NOT_KNOWN, 200, reason="the hub sent no JSON", quota=answer.quota)
        if not isinstance(body, list if many else dict):
            return Answer(Kind.NOT_KNOWN, 200, reason="the hub sent another kind of JSON")
        return Answer(
            Kind.PAGE,
            answer.status,
            body=body,
            next_url=answer.next_url,
            moved=answer.moved,
            quota=answer.quota,
        )

    def _in_time(self, ask: Callable[[], Answer]) -> Answer:
        self.requests_made += 1
        try:
            return answered_within(self._whole_seconds, ask, name="hub")
        except TimeoutError:
            return Answer(Kind.NOT_KNOWN, reason="the hub answered too slowly")

    def _ask(self, url: str, *, most: int) -> Answer:
        try:
            return self._read(url, most=most)
        except Refused as fault:
            return fault.answer
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as fault:
            return _unread(fault)

    def _read(self, url: str, *, most: int) -> Answer:
        moved = False
        for _ in range(MOST_REDIRECTS + 1):
            if not url.startswith(f"{self.base}/"):
                return Answer(Kind.NOT_KNOWN, reason="the hub leads to another host")
            with self._session().stream("GET", url, headers=self._headers) as response:
                if response.has_redirect_location:
                    moved, url = True, str(response.url.join(response.headers["Location"]))
                    continue
                return self._taken(response, most=most, moved=moved)
        return Answer(Kind.NOT_KNOWN, reason=f"the hub redirects more than {MOST_REDIRECTS} times")

    def _taken(self, response: httpx2.Response, *, most: int, moved: bool) -> Answer:
        now, deadline = self._now(), time.monotonic() + self._whole_seconds
        if response.status_code != 200:
            return sort(response.status_code, response.headers, anonymous=self.anonymous, now=now)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            return Answer(Kind.NOT_KNOWN, 200, reason="the hub packs what it sends")
        body = bytearray()
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > most:
                if most == LARGEST_BODY_BYTES:
                    return Answer(Kind.NOT_KNOWN, 200, reason="the hub's answer is too large")
                break
            if time.monotonic() > deadline:
                return Answer(Kind.NOT_KNOWN, 200, reason="the hub's answer came too slowly")
        next_url = response.links.get("next", {}).get("url")
        return Answer(
            Kind.PAGE,
            200,
            text=bytes(body[:most]).decode("utf-8", "replace"),
            next_url=str(response.url.join(next_url)) if next_url else None,
            moved=moved,
            quota=read_quota(response.headers, now=now),
        )


def _unread(fault: Exception) -> Answer:
    return Answer(Kind.NOT_KNOWN, reason=f"no readable answer of the hub ({type(fault).__name__})")
