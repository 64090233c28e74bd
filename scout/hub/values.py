"""What the hub's JSON says of repositories and files, as bounded values; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.hub_names import is_below
from scout.github.texts import moment, number, part, plain

FULL_NAME = re.compile(r"(?:[A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9_][\w.-]{0,95}", re.ASCII)
"""A few old repositories have no owner."""
HUB_ID = re.compile(r"[A-Za-z0-9]{1,64}", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_BASE = re.compile(r"base_model:(?:[a-z_]{1,20}:)?(?P<name>[^:]+)", re.ASCII)
PATH_LENGTH = 500
MOST_FILES = 20_000
MOST_REFUSED, SHOWN_PATH = 50, 200
MOST_TAGS, TAG_LENGTH = 200, 120
MOST_BASES = 16


@dataclass(frozen=True)
class Listed:
    """A repository as a list or its own page shows it."""

    hub_id: str
    full_name: str
    sha: str
    gated: str
    private: bool
    disabled: bool
    tags: tuple[str, ...]
    base_models: tuple[str, ...]
    created_at: datetime | None
    last_modified: datetime | None


@dataclass(frozen=True)
class HubFile:
    """A file of one commit; `content` is what makes two of them the same."""

    path: str
    size_bytes: int | None
    sha256: str
    blob_id: str
    xet_hash: str = ""

    @property
    def content(self) -> str:
        """The hash of its bytes, or git's id where it is a small one."""
        return self.sha256 or self.blob_id


@dataclass(frozen=True)
class Refused:
    """A file that is left alone because of its name: how the name starts, and why."""

    path: str
    why: str


@dataclass(frozen=True)
class Snapshot:
    """A repository with all files of one commit, and the names that were refused."""

    listed: Listed
    files: tuple[HubFile, ...]
    refused: tuple[Refused, ...] = ()


def read_listed(item: Any) -> Listed | None:
    """The repository; None where its id, a usable name or its commit is absent."""
    hub_id, name, sha = (part(item, key) for key in ("_id", "id", "sha"))
    if not _fits(HUB_ID, hub_id) or not _fits(FULL_NAME, name) or not _fits(COMMIT, sha):
        return None
    tags = [plain(tag, TAG_LENGTH) for tag in _list(item.get("tags"))[:MOST_TAGS]]
    gated = item.get("gated")
    return Listed(
        hub_id=hub_id,
        full_name=name,
        sha=sha,
        gated=gated if gated in ("auto", "manual") else "",
        private=item.get("private") is True,
        disabled=item.get("disabled") is True,
        tags=tuple(tag for tag in tags if tag),
        base_models=base_models(tags),
        created_at=moment(item.get("createdAt")),
        last_modified=moment(item.get("lastModified")),
    )


def base_models(tags: Iterable[str]) -> tuple[str, ...]:
    """Every model that the tags name as a base, whatever they say of the relation."""
    found = [match["name"] for tag in tags if (match := _BASE.fullmatch(tag))]
    named = dict.fromkeys(name for name in found if FULL_NAME.fullmatch(name))
    return tuple(named)[:MOST_BASES]


def read_snapshot(item: Any) -> Snapshot | None:
    """The repository with its files; None where one of them has no hash to be known by.

    A path that is longer than any of ours, or that leads out of its repository, is refused: it
    hides nothing else.
    """
    listed = read_listed(item)
    siblings = part(item, "siblings")
    if listed is None or not isinstance(siblings, list) or len(siblings) > MOST_FILES:
        return None
    named = [each for each in siblings if _is_path(part(each, "rfilename"))]
    files = [file for each in named if (file := _sibling(each)) is not None]
    if len(files) != len(named):
        return None
    odd = [part(each, "rfilename") for each in siblings if not _is_path(part(each, "rfilename"))]
    return Snapshot(listed, tuple(files), tuple(_refused(path) for path in odd[:MOST_REFUSED]))


def read_xet_hashes(items: Iterable[Any]) -> dict[str, tuple[str, str]]:
    """By path: the sha256 of a large file as the tree tells it, and its xet hash.

    The same paths are left out as in `read_snapshot`, or the two would never agree.
    """
    found = {}
    for item in items:
        path, oid = part(item, "path"), part(item, "lfs", "oid")
        if _is_path(path) and isinstance(oid, str):
            xet = part(item, "xetHash")
            found[path] = (oid, xet if _fits(_SHA256, xet) else "")
    return found


def _sibling(item: Any) -> HubFile | None:
    sha256, blob_id = part(item, "lfs", "sha256"), part(item, "blobId")
    size = number(part(item, "lfs", "size"))
    if size is None:
        size = number(part(item, "size"))
    if part(item, "lfs") is not None and not _fits(_SHA256, sha256):
        return None
    file = HubFile(
        path=part(item, "rfilename"),
        size_bytes=size,
        sha256=sha256 if isinstance(sha256, str) else "",
        blob_id=blob_id if _fits(HUB_ID, blob_id) else "",
    )
    return file if file.content else None


def _refused(path: object) -> Refused:
    """Why a name is not used; it is kept short, and no control character of it."""
    if not isinstance(path, str):
        return Refused("", "its name is no text")
    if len(path) > PATH_LENGTH:
        why = f"its name has {len(path)} characters, {PATH_LENGTH} are read"
    else:
        why = "its name leads out of its repository, or to no file"
    return Refused(plain(path, SHOWN_PATH), why)


def _is_path(value: object) -> bool:
    return isinstance(value, str) and len(value) <= PATH_LENGTH and is_below(value)


def _fits(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
