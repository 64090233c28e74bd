"""Queries on model files of the hub as people name them, a set as one model; reads only.

Such a file is called `hf:OWNER/REPO/PATH`; `OWNER/REPO/PATH`, `OWNER/REPO:PATH` and
`OWNER/REPO:QUANT` mean it as well. One without a shape says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import Text, case, cast
from sqlalchemy.orm import defer
from sqlmodel import Session, col, func, or_, select

from jobs.errors import UsageError
from jobs.gguf.file_names import Shard, shard_of
from jobs.hub_names import MOST_SHARDS, set_sha256
from jobs.sightings import HubFileRow, HubRepositoryRow
from jobs.store.hub import KNOWN
from jobs.terminal import printable

PREFIX = "hf:"
ROLES = ("target", "drafter", "mmproj", "mtp_head")
LONGEST_SHAPE = 64 * 1024
"""Letters of a stored shape that is offered unasked; a model of 100 layers has some 10,000."""
LONGEST_NAME = 200
"""Letters of a name that a form or an address takes."""
MOST_NAMED = 50
MOST_PARTS = 20_000
"""Files of sets that one question looks through; what is beyond counts as missing."""

_PLACE = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?P<joint>[/:])(?P<rest>.+)", re.ASCII | re.DOTALL)
_OF = col(HubFileRow.repository_id) == col(HubRepositoryRow.id)
_THERE = (col(HubFileRow.gone_at).is_(None), col(HubRepositoryRow.state) == KNOWN)
_NEWEST = (col(HubFileRow.first_seen_at).desc(), col(HubFileRow.id))

Siblings = Mapping[tuple[int, str], tuple[str, int | None]]
"""Digest and size of each file of a set, by repository and path."""


@dataclass(frozen=True)
class Found:
    """One model that lies on the hub; `sha256` and `size_bytes` are those of a set where it is one.

    `fault` says why it has no shape, and is empty where it has one.
    """

    full_name: str
    path: str
    role: str
    quantisation: str
    sha256: str
    size_bytes: int | None
    facts: Mapping[str, Any]
    shape: Mapping[str, Any] | None
    fault: str

    @property
    def name(self) -> str:
        """How commands and pages call it."""
        return f"{PREFIX}{self.full_name}/{self.path}"

    @property
    def can_be_typed(self) -> bool:
        """Whether a person can write its name into a form."""
        return len(self.name) <= LONGEST_NAME and self.name == printable(self.name).strip()


def listed(session: Session, *, limit: int) -> list[Found]:
    """The newest models, one line for a set; a shape of no real size is only read by name."""
    short = func.length(cast(HubFileRow.shape, Text)) <= LONGEST_SHAPE
    query = (
        select(HubFileRow, HubRepositoryRow, case((short, HubFileRow.shape)), ~short)
        .join(HubRepositoryRow, _OF)
        .where(*_THERE, or_(col(HubFileRow.role).in_(ROLES), func.length(HubFileRow.unread) > 0))
        .options(defer(col(HubFileRow.shape)))  # type: ignore[arg-type]
        .order_by(*_NEWEST)
        .limit(limit)
    )
    rows = list(session.exec(query))
    beside = _siblings(session, [file for file, _, _, _ in rows])
    return [
        _found(file, repo, beside, shape=shape, is_long=bool(is_long))
        for file, repo, shape, is_long in rows
        if not _follows(file, beside)
    ]


def named(session: Session, name: str) -> Found | None:
    """The model that a name means; raises UsageError where a quantisation means several.

    A set is one model, called after its first file, and so are files of the same bytes.
    """
    meant = _PLACE.fullmatch(name.removeprefix(PREFIX))
    if meant is None:
        return None
    of_repo = (func.lower(HubRepositoryRow.full_name) == meant["repo"].lower(), *_THERE)
    found = _read(session, *of_repo, HubFileRow.path == meant["rest"])
    if found or meant["joint"] == "/" or name.startswith(PREFIX):
        return found[0] if found else None
    quant = func.lower(HubFileRow.quantisation) == meant["rest"].lower()
    files = _read(session, *of_repo, quant, HubFileRow.role == "target", whole=True)
    found = list({each.sha256: each for each in reversed(files)}.values())
    if len(found) > 1:
        shown = ", ".join(printable(each.name) for each in found[:4])
        raise UsageError(f"{name[:80]!r} means {len(found)} files", advice=f"Name one: {shown}")
    return found[0] if found else None


def with_digest(session: Session, sha256: str, *, first: str) -> Found | None:
    """The model of these bytes whose header was read; None where nobody saw it on the hub.

    `first` is the digest of a set's first file, and that of the model where it is one file.
    """
    rows = _read(session, *_THERE, HubFileRow.sha256 == first, col(HubFileRow.shape).is_not(None))
    return next((each for each in rows if each.sha256 == sha256), None)


def faults(session: Session, repository_id: int) -> dict[str, str]:
    """By path, why models of one repository cannot be judged; parts of a set stand for none."""
    where = (HubFileRow.repository_id == repository_id, col(HubFileRow.gone_at).is_(None))
    query = select(HubFileRow).where(*where, func.length(HubFileRow.role) > 0)
    files = list(session.exec(query))
    beside = _siblings(session, files)
    return {
        each.path: _why(each, beside)
        for each in files
        if each.shape is None and not _follows(each, beside)
    }


def names(session: Session, *, limit: int) -> list[str]:
    """Names alone of the newest models that can be typed, so that they cost no shape."""
    query = (
        select(HubRepositoryRow.full_name, HubFileRow.path)
        .join(HubFileRow, _OF)
        .where(*_THERE, col(HubFileRow.shape).is_not(None))
        .order_by(*_NEWEST)
    )
    found = [f"{PREFIX}{full_name}/{path}" for full_name, path in session.exec(query.limit(limit))]
    return [each for each in found if len(each) <= LONGEST_NAME and each == printable(each).strip()]


def _read(session: Session, *where: Any, whole: bool = False) -> list[Found]:
    """All of these models with their shapes, the newest first; `whole` leaves later parts out."""
    query = select(HubFileRow, HubRepositoryRow).join(HubRepositoryRow, _OF).where(*where)
    rows = list(session.exec(query.order_by(*_NEWEST).limit(MOST_NAMED)))
    beside = _siblings(session, [file for file, _ in rows])
    return [
        _found(file, repo, beside, shape=file.shape)
        for file, repo in rows
        if not whole or not _follows(file, beside)
    ]


def _siblings(session: Session, files: Iterable[HubFileRow]) -> Siblings:
    """The files of all repositories in which one of these is a part of a set."""
    ids = {file.repository_id for file in files if _part(file.path) is not None}
    if not ids:
        return {}
    query = select(
        HubFileRow.repository_id, HubFileRow.path, HubFileRow.sha256, HubFileRow.size_bytes
    ).where(
        col(HubFileRow.repository_id).in_(ids),
        col(HubFileRow.gone_at).is_(None),
        col(HubFileRow.path).like("%-of-%.gguf"),
    )
    query = query.order_by(col(HubFileRow.repository_id), col(HubFileRow.path)).limit(MOST_PARTS)
    return {(number, path): (sha, size) for number, path, sha, size in session.exec(query)}


def _part(path: str) -> Shard | None:
    shard = shard_of(PurePosixPath(path).name)
    can_be = shard is not None and shard.is_possible and shard.count <= MOST_SHARDS
    return shard if can_be else None


def _set_of(path: str, shard: Shard) -> tuple[str, ...]:
    stem = str(PurePosixPath(path).with_name(shard.stem))
    return tuple(f"{stem}-{at:05}-of-{shard.count:05}.gguf" for at in range(1, shard.count + 1))


def _follows(file: HubFileRow, beside: Siblings) -> bool:
    """Whether it is a part of a set whose first file is listed."""
    shard = _part(file.path)
    first = _set_of(file.path, shard)[0] if shard else file.path
    return first != file.path and (file.repository_id, first) in beside


def _found(
    file: HubFileRow,
    repository: HubRepositoryRow,
    beside: Siblings,
    *,
    shape: Mapping[str, Any] | None,
    is_long: bool = False,
) -> Found:
    paths, here = _parts(file, beside)
    sha256, size = file.sha256, file.size_bytes
    if paths and len(here) == len(paths):
        sha256 = set_sha256([sha for sha, _ in here])
        size = sum(known for _, known in here if known is not None)
    return Found(
        full_name=repository.full_name,
        path=file.path,
        role=file.role,
        quantisation=file.quantisation,
        sha256=sha256,
        size_bytes=size,
        facts=file.facts,
        shape=shape,
        fault=_fault(file, paths, len(here), is_long=is_long) if shape is None else "",
    )


def _parts(
    file: HubFileRow, beside: Siblings
) -> tuple[Sequence[str], Sequence[tuple[str, int | None]]]:
    """The paths of the set a file belongs to, none where it stands alone; and what is there."""
    shard = _part(file.path)
    paths = _set_of(file.path, shard) if shard and shard.count > 1 else ()
    return paths, [each for path in paths if (each := beside.get((file.repository_id, path)))]


def _why(file: HubFileRow, beside: Siblings) -> str:
    paths, here = _parts(file, beside)
    return _fault(file, paths, len(here))


def _fault(file: HubFileRow, paths: Sequence[str], here: int, *, is_long: bool = False) -> str:
    """Why a file has no shape, and what would give it one."""
    if is_long:
        return "its header describes more than any real model: it is judged where it is named"
    if file.unread:
        return file.unread
    if len(paths) > here:
        return f"of its set of {len(paths)} files {here} lie there"
    if paths and file.path != paths[0]:
        return f"it is a part of a set: {paths[0][-LONGEST_NAME:]} stands for all of it"
    if file.pending and not paths and shard_of(PurePosixPath(file.path).name):
        return f"it claims a place in a set of more than {MOST_SHARDS} files, or in none"
    if file.pending:
        return "its header was not read yet: a later round of the scout reads it"
    if not file.path.lower().endswith(".gguf"):
        return "it is no GGUF file: what it takes of a card is not known"
    if file.facts:
        return str(file.facts.get("no_shape") or "its header was not read for its shape")
    return (
        "its header was not read: it was there before its place was watched; "
        "`forkscout fit --target` reads it"
    )
