"""Keeps where each watched repository stands: its descent and what it understands beyond others.

Nothing is worked out again while no head of a chain moved: a quiet look costs a few rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy import Engine

from jobs.db import reading, writing
from jobs.errors import Permanent, ScoutError
from jobs.git import repo_url
from jobs.store import catalog
from jobs.store.standings import keep_standing, standings
from jobs.terminal import json_text
from scout.capability import SHOWN_LIMIT, SOURCES, Capability, read_capability
from scout.family import family_of
from scout.history import History
from scout.kinship import Kin, kindred, root_of, with_heads
from scout.lineage import Descent
from scout.watch import Trouble

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Read:
    """What was read of a repository's sources: its head's, and those of the upstream below it."""

    head: Capability
    base: Capability | None = None


@dataclass(frozen=True)
class _Unread:
    """Sources that were not read, why, and whether another try may end otherwise."""

    why: str
    passing: bool


def keep_standings(
    database: Engine, *, history: History, now: Callable[[], datetime]
) -> list[Trouble]:
    """Work out the standing of every chain whose heads moved; one that fails stops no other."""
    with reading(database) as session:
        kept = {number: row.chain for number, row in standings(session).items()}
        if not _moved(with_heads(session), kept):
            return []
        kin = kindred(session)
    troubles: list[Trouble] = []
    for root, digest in _moved(kin, kept).items():
        try:
            troubles += _keep(database, root, kin, history, now(), digest)
        except ScoutError as error:
            troubles.append(Trouble(root, error.message, error.advice))
        except Exception as error:
            _log.exception("standing crashed", engine=root)
            troubles.append(
                Trouble(root, f"our own fault: {error!r}", "please report this, with the log")
            )
    return troubles


def _moved(kin: Mapping[str, Kin], kept: Mapping[int, str]) -> dict[str, str]:
    """Roots of the chains that are not as they were kept, with the digest of what they are now."""
    chains: dict[str, list[Kin]] = {}
    for name, each in kin.items():
        if each.head is not None:
            chains.setdefault(root_of(name, kin), []).append(each)
    digests = {root: chain_digest(chain) for root, chain in chains.items()}
    return {
        root: digests[root]
        for root, chain in chains.items()
        if kin[root].head is not None
        and any(kept.get(each.repository) != digests[root] for each in chain)
    }


def chain_digest(chain: Sequence[Kin]) -> str:
    """Equal while names, named parents, branches and heads of a chain are."""
    lines = [[one.name, one.repository, one.parent, one.branch, one.head] for one in chain]
    return hashlib.sha256(json.dumps(sorted(lines, key=str)).encode()).hexdigest()


def capability_facts(
    own: Capability, base: Capability | None, parent: Capability | None
) -> dict[str, Any]:
    """What is understood, counted by kind, and what of it the bases do not understand."""
    return {
        "understood": {field.name: len(getattr(own, field.name)) for field in fields(own)},
        "beyond_upstream": None if base is None else _beyond(own, base),
        "beyond_parent": None if parent is None else _beyond(own, parent),
    }


def _beyond(own: Capability, base: Capability) -> dict[str, Any]:
    """By kind; None for a kind of which the base says nothing."""
    added = own.beyond(base)
    found: dict[str, Any] = {}
    for field in fields(own):
        names = sorted(getattr(added, field.name))
        known = bool(getattr(base, field.name)) or not getattr(own, field.name)
        found[field.name] = {"count": len(names), "names": names[:SHOWN_LIMIT]} if known else None
    return found


def _keep(
    database: Engine,
    root: str,
    kin: Mapping[str, Kin],
    history: History,
    now: datetime,
    digest: str,
) -> list[Trouble]:
    descents = {
        each: (each.branch or "", each.head)
        for each in family_of(root, kin, history, now=now)
        if each.head is not None
    }
    troubles: list[Trouble] = []
    read: dict[str, _Read | _Unread] = {}
    for descent, (_, head) in descents.items():
        found = _read(kin[descent.engine], descent, head, history)
        read[descent.engine] = found
        if isinstance(found, _Unread):
            troubles.append(Trouble(descent.engine, found.why, "it is read again at the next look"))
    lacking = any(isinstance(each, _Unread) and each.passing for each in read.values())
    with writing(database) as session:
        catalog.lock_engine(session, kin[root].engine_id)
        for descent, (branch, head) in descents.items():
            keep_standing(
                session,
                kin[descent.engine].repository,
                branch=branch,
                head=head,
                now=now,
                descent=json.loads(json_text(asdict(descent))),
                capability=_capability(descent, read),
                # Where something could not be read, the whole chain is looked at again.
                chain="" if lacking else digest,
            )
    return troubles


def _read(kin: Kin, descent: Descent, head: str, history: History) -> _Read | _Unread:
    upstream = descent.from_upstream
    base = None if upstream is None else upstream.merge_base
    commits = [head] if base is None else [head, base]
    try:
        texts = history.read_files(
            repo_url(kin.repo), [(commit, path) for commit in commits for path in SOURCES]
        )
    except ScoutError as error:
        return _Unread(error.message, passing=not isinstance(error, Permanent))
    can = [
        read_capability({path: texts.get((commit, path), "") for path in SOURCES})
        for commit in commits
    ]
    return _Read(*can)


def _capability(descent: Descent, read: Mapping[str, _Read | _Unread]) -> dict[str, Any] | None:
    """The facts to keep; None where what was kept before is the best there is."""
    own, parent = read[descent.engine], read.get(descent.parent or "")
    if isinstance(own, _Unread):
        return None if own.passing else {"problem": own.why}
    known = parent.head if isinstance(parent, _Read) else None
    return capability_facts(own.head, own.base, known)
