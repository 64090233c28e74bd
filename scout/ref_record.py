"""Writes what happened to refs: refs, revisions and events together, or nothing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from types import MappingProxyType

from sqlalchemy import Engine
from sqlmodel import Session

from jobs.db import writing
from jobs.git import repo_url
from jobs.git_names import PULL, short_name
from jobs.store import catalog, refs
from jobs.tables import EventRow
from scout.kinship import Kin
from scout.ref_values import RefNews

SOURCE = "git_refs"
SCHEMA_VERSION = 1


def record(
    database: Engine,
    kin: Kin,
    commits: Mapping[str, str],
    news: Sequence[RefNews],
    *,
    now: datetime,
) -> list[RefNews]:
    """Write refs, revisions and events together; what another watcher wrote is not new."""
    with writing(database) as session:
        catalog.lock_engine(session, kin.engine_id)
        if refs.refs_of(session, kin.repository) != kin.refs:
            return []
        refs.record_refs(session, kin.repository, commits, now)
        heads = {commits[ref] for ref in kin.watched & commits.keys()}
        orders = {
            each.revision: catalog.order_key_after(
                session, kin.engine_id, each.happened_at or now, now
            )
            for each in news
            if each.revision is not None
        }
        return [each for each in news if write(session, kin, each, heads, now, orders=orders)]


def write(
    session: Session,
    kin: Kin,
    news: RefNews,
    heads: Set[str],
    now: datetime,
    *,
    orders: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Whether the event is new; a head that comes back is planned again.

    `orders` says of each revision where it stands among the others.
    """
    revision_id, label = None, None
    # A head that another watched branch still has is not replaced.
    replaces = None if news.replaces in heads else news.replaces
    if news.revision is not None:
        branch = short_name(str(news.facts["ref"]))
        label = f"{branch}@{news.revision[:9]}"
        at = min(news.happened_at or now, now)
        revision_id = catalog.add_revision(
            session,
            engine_id=kin.engine_id,
            commit=news.revision,
            label=label,
            order_key=orders[news.revision],
            committed_at=at,
            proposed=str(news.facts["ref"]).startswith(PULL),
            now=now,
        ).id
    event = None
    if not catalog.is_told(session, news.former):
        event = _add(session, kin, news, revision_id, label, replaces, now)
    if event is None and revision_id is not None:
        catalog.plan_again(
            session,
            (news.key, *news.former),
            engine_id=kin.engine_id,
            revision_id=revision_id,
            replaces=replaces,
            now=now,
        )
    return event is not None


def not_after(now: datetime, claimed: datetime | None) -> datetime | None:
    """When something happened, by a stranger's word: no later than we saw it."""
    return None if claimed is None else min(claimed, now)


def _add(
    session: Session,
    kin: Kin,
    news: RefNews,
    revision_id: int | None,
    label: str | None,
    replaces: str | None,
    now: datetime,
) -> EventRow | None:
    sha = news.revision or news.facts.get("after")
    return catalog.add_event(
        session,
        key=news.key,
        kind=news.kind,
        title=news.title,
        now=now,
        engine_id=kin.engine_id,
        revision_id=revision_id,
        happened_at=not_after(now, news.happened_at),
        payload={
            "source": SOURCE,
            "schema_version": SCHEMA_VERSION,
            "subject_id": kin.repository,
            "evidence": {
                "url": repo_url(kin.repo),
                "sha": sha,
            },
            "label": label,
            "replaces": replaces,
            "low_priority": news.low_priority,
            "facts": dict(news.facts),
        },
    )
