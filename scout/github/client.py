"""Asks GitHub for one page through github3.py; it never retries, sleeps, or leaves its host."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import requests
import urllib3
from github3 import exceptions
from github3.session import GitHubSession
from github3.structs import GitHubIterator
from requests.adapters import HTTPAdapter

from jobs import clock
from jobs.addresses import checked_base
from jobs.errors import UsageError
from scout.github import graphql
from scout.github.addresses import leads_on
from scout.github.answers import UNREADABLE, Answer, Kind, read_quota, read_token_end, sort

API_VERSION = "2022-11-28"
CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
WHOLE_SECONDS = 60.0
LARGEST_BODY_BYTES = 32 * 2**20
MOST_REDIRECTS = 3
ANONYMOUS = "anonymous"
_FAULTS = (
    exceptions.GitHubException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
    ValueError,
    RecursionError,
)
"""What the library and the network raise; a text that fits no header is a `ValueError`."""
NO_PAGE_SIZE = 101
"""A count above 100 keeps github3 from adding a `per_page` of its own to what we ask."""


NEVER_ASKED = "a page that was asked for in full is called unchanged"


class BoundedAdapter(HTTPAdapter):
    """Reads every body here, within a time and a size, so that no server can hold us."""

    def __init__(self, *, whole_seconds: float = WHOLE_SECONDS) -> None:
        self.whole_seconds = whole_seconds
        super().__init__(max_retries=0)

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """The response with its body read; raises a `requests` error where it came too slowly."""
        deadline = time.monotonic() + self.whole_seconds
        response = super().send(request, *args, **{**kwargs, "stream": True})
        body = bytearray()
        try:
            while chunk := response.raw.read1(65536, decode_content=True):
                body += chunk
                if time.monotonic() > deadline:
                    raise requests.exceptions.ReadTimeout("the body came too slowly")
                if len(body) > LARGEST_BODY_BYTES:
                    raise requests.exceptions.ContentDecodingError("the body is too large")
        except requests.exceptions.RequestException:
            response.close()
            raise
        except (OSError, urllib3.exceptions.HTTPError) as fault:
            response.close()
            raise requests.exceptions.ConnectionError(fault, request=request) from fault
        response._content, response._content_consumed = bytes(body), True
        response.close()
        return response


class _OnePage(GitHubIterator):  # type: ignore[misc]
    """One page and no more: github3 would send the first page's ETag with every other page."""

    def __init__(self, url: str, session: GitHubSession, *, many: bool, **how: Any) -> None:
        super().__init__(NO_PAGE_SIZE, url, dict, session, **how)
        self.many = many

    def _get_json(self, response: requests.Response) -> list[Mapping[str, Any]] | None:
        if response.status_code != 200:
            return None
        body = super()._get_json(response)
        if self.many is not isinstance(body, list):
            raise exceptions.UnprocessableResponseBody("another kind of JSON was promised", body)
        items = [item for item in (body if self.many else [body]) if item is not None]
        if not all(isinstance(item, dict) for item in items):
            raise exceptions.UnprocessableResponseBody("an item is no object", body)
        self.count = len(items)
        return items


def _kept_etag(headers: Mapping[str, str]) -> str | None:
    """The ETag, where it can be sent back as it came."""
    etag = headers.get("ETag") or ""
    return etag if re.fullmatch(r"[!-~][ -~]{0,299}", etag) and etag == etag.strip() else None


def _unsigned(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Takes the place of the `.netrc` look-up, so that anonymous stays anonymous."""
    return request


class Client:
    """GitHub as one token sees it; one per worker, for a session is not safe to share."""

    def __init__(
        self,
        *,
        token: str = "",
        base: str = "https://api.github.com",
        adapter: HTTPAdapter | None = None,
        now: Callable[[], datetime] = clock.now,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self.base = checked_base(
            base, setting="FORKSCOUT_GITHUB_API", key_setting="FORKSCOUT_GITHUB_TOKEN"
        )
        self.anonymous = not token
        self.identity = hashlib.sha256(token.encode()).hexdigest()[:16] if token else ANONYMOUS
        self.token_ends_at: datetime | None = None
        self._now = now
        self._session = GitHubSession(CONNECT_SECONDS, read_seconds)
        self._session.base_url = self.base
        self._session.adapters.clear()
        adapter = adapter or BoundedAdapter()
        for place in (f"{self.base}/", self.graphql_address):
            self._session.mount(place, adapter)
        self._session.max_redirects = MOST_REDIRECTS
        self._session.headers["User-Agent"] = "forkscout (scouting of fork networks)"
        self._session.headers["X-GitHub-Api-Version"] = API_VERSION
        if token:
            self._session.token_auth(token)
        else:
            self._session.auth = _unsigned

    @property
    def requests_made(self) -> int:
        """How many replies this client has seen."""
        return int(self._session.request_counter)

    def ask(
        self,
        place: str,
        params: Mapping[str, str] | None = None,
        *,
        etag: str | None = None,
        many: bool = True,
    ) -> Answer:
        """The sorted answer for one page; `place` is a path or a `next_url` of an earlier answer.

        Never raises for what GitHub or the network does: that is an answer, "not known".
        """
        page = _OnePage(
            self.address(place), self._session, many=many, params=dict(params or {}), etag=etag
        )
        try:
            answer = self._sorted(page, tuple(page))
        except _FAULTS as fault:
            cause = getattr(fault, "exception", fault)
            status = page.last_status or None
            return Answer(Kind.NOT_KNOWN, status, reason=f"{UNREADABLE} ({type(cause).__name__})")
        if answer.kind is Kind.UNCHANGED and etag is None:
            return replace(answer, kind=Kind.NOT_KNOWN, reason=NEVER_ASKED)
        return answer

    def _sorted(self, page: _OnePage, items: tuple[Mapping[str, Any], ...]) -> Answer:
        response, now = page.last_response, self._now()
        self.token_ends_at = read_token_end(response.headers) or self.token_ends_at
        if response.status_code != 200:
            return sort(response.status_code, response.headers, response.text[:4000], now=now)
        next_url = response.links.get("next", {}).get("url")
        if next_url and not next_url.startswith(f"{self.base}/"):
            return Answer(Kind.NOT_KNOWN, 200, reason="the next page lies on another host")
        if next_url and not leads_on(response.url, next_url):
            return Answer(Kind.NOT_KNOWN, 200, reason="the next page does not lead on")
        return Answer(
            Kind.PAGE,
            200,
            items=items,
            etag=_kept_etag(response.headers),
            next_url=next_url,
            moved=bool(response.history),
            quota=read_quota(response.headers, now=now),
        )

    def query(self, text: str, variables: Mapping[str, Any]) -> Answer:
        """The sorted answer to a question in GraphQL; its one item is the whole of `data`.

        Never raises for what GitHub or the network does, and "missing" it never says.
        """
        try:
            response = self._session.post(
                self.graphql_address,
                json={"query": text, "variables": dict(variables)},
                headers={"Accept": "application/json"},
                allow_redirects=False,
            )
        except _FAULTS as fault:
            return Answer(Kind.NOT_KNOWN, reason=f"{UNREADABLE} ({type(fault).__name__})")
        return graphql.sort_reply(
            response.status_code, response.headers, response.text, now=self._now()
        )

    @property
    def graphql_address(self) -> str:
        """Beside the REST API; GitHub's own server for companies keeps both under `/api`."""
        return f"{self.base.removesuffix('/v3')}/graphql"

    def address(self, place: str) -> str:
        """The whole address of a path; refuses one that leads to another host."""
        if place.startswith(f"{self.base}/"):
            return place
        if "://" in place or place.startswith("/"):
            raise UsageError(
                "a page of another host was asked for", advice="check FORKSCOUT_GITHUB_API"
            )
        return f"{self.base}/{place}"
