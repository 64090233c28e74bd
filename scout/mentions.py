"""Which repositories a stranger's text names: links, and words of descent; pure and bounded."""

from __future__ import annotations

import re

TEXT_LIMIT = 256 * 1024
NAMES_LIMIT = 200
_NAME = r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9_](?:[A-Za-z0-9._-]{0,99}))"
_LINK = re.compile(rf"\bgithub\.com/{_NAME}", re.ASCII)
_WORDS = re.compile(
    r"\b(?:fork of|forked from|based on|imported from|ported from|cherry-picked from|absorbs)"
    rf"[\s`*_:\[(@]{{1,8}}{_NAME}",
    re.ASCII | re.IGNORECASE,
)


def named(text: str) -> frozenset[str]:
    """`owner/name` in small letters of every repository the text links to or descends from."""
    text = text[:TEXT_LIMIT]
    found: set[str] = set()
    for pattern in (_LINK, _WORDS):
        for match in pattern.finditer(text):
            owner, name = match.groups()
            found.add(f"{owner}/{name.rstrip('.').removesuffix('.git')}".lower())
            if len(found) == NAMES_LIMIT:
                return frozenset(found)
    return frozenset(found)
