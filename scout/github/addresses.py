"""Which addresses are asked: that of the API, and a list's next page; pure, asks nothing."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import parse_qs, urlsplit

from jobs.errors import UsageError


def checked_base(base: str) -> str:
    """The address of an API that a token may be sent to: over TLS, or to this machine itself."""
    try:
        parts = urlsplit(base.rstrip("/"))
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    plain = re.fullmatch(r"[!-~]+", base) and not parts.query and not parts.fragment
    if "@" in parts.netloc:
        raise UsageError(
            "the address of GitHub's API holds a name or a password",
            advice="Write https://host there, and the token in FORKSCOUT_GITHUB_TOKEN.",
        )
    if not plain or not host or parts.scheme not in ("https", "http"):
        raise UsageError(
            f"{base[:80]!r} is no address of an API",
            advice="Write https://host in FORKSCOUT_GITHUB_API.",
        )
    if parts.scheme == "http" and not _is_here(host):
        raise UsageError(
            f"{base[:80]!r} would be sent the token in clear",
            advice="Write https:// in FORKSCOUT_GITHUB_API; plain http is for this machine only.",
        )
    return base.rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def leads_on(asked: str, following: str) -> bool:
    """Whether an address is the page after the one that was asked, of the same list."""
    try:
        here, there = urlsplit(asked), urlsplit(following)
        before, after = _page_number(here.query) or 1, _page_number(there.query)
    except ValueError:
        return False
    if here.path.rpartition("/")[2] != there.path.rpartition("/")[2]:
        return False
    if "/repos/" not in here.path and here.path != there.path:
        return False
    if after is None:
        return "after=" in there.query and here.query != there.query
    return after == before + 1


def _page_number(query: str) -> int | None:
    text = parse_qs(query).get("page", [""])[-1]
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
