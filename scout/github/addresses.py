"""Whether an address is a list's next page; pure, asks nothing."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit


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
