"""Which release of a repository is its latest, by our own order; pure, it trusts no label.

Never a draft, a pre-release, or a tag that moves such as `latest` or `nightly`; a later date does
not beat a higher version, since old lines are mended too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scout.github.texts import NAME_LENGTH, moment, plain

MOVING = re.compile(
    r"(latest|nightly|rolling|continuous|edge|stable|release|preview|snapshot|canary|tip"
    r"|dev|devel|main|master|trunk)([-_./].*)?",
    re.IGNORECASE | re.ASCII,
)
"""Tags that are put on another commit again and again."""
UNFINISHED = re.compile(
    r"(?<![a-z])(a|alpha|b|beta|rc|pre|preview|dev|snapshot)[-_.]?\d*(?![a-z])", re.I
)
"""What a version ends with that says "not yet", whether or not it is marked as a pre-release."""
_VERSION = re.compile(r"(?:[A-Za-z][\w.]*[-_/])?[vV]?(\d{1,9}(?:\.\d{1,9}){1,5})(.*)", re.ASCII)
_BUILD = re.compile(r"[bBvVrR]?(\d{1,15})", re.ASCII)
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, order=True)
class _Place:
    """Versions come before numbers of builds, and those before names; then the later date."""

    kind: int
    version: tuple[int, ...]
    published: datetime


def latest(releases: Iterable[Mapping[str, Any]]) -> str:
    """The tag of the latest finished release, "" where there is none."""
    found = [
        (_place(tag, moment(item.get("published_at")) or _NEVER), tag)
        for item in releases
        if (tag := plain(item.get("tag_name"), NAME_LENGTH)) and is_finished(item)
    ]
    return max(found)[1] if found else ""


def is_finished(item: Mapping[str, Any]) -> bool:
    """Whether a release is one that may be called the latest."""
    tag = plain(item.get("tag_name"), NAME_LENGTH)
    if item.get("draft") is True or item.get("prerelease") is True or MOVING.fullmatch(tag):
        return False
    version = _VERSION.fullmatch(tag)
    return not (version and UNFINISHED.search(version[2]))


def _place(tag: str, published: datetime) -> _Place:
    if version := _VERSION.fullmatch(tag):
        return _Place(2, tuple(map(int, version[1].split("."))), published)
    if build := _BUILD.fullmatch(tag):
        return _Place(1, (int(build[1]),), published)
    return _Place(0, (), published)
