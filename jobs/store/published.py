"""Brings rows in step with what an event tells of: a model file, or the commit before; commits not.

A file gets its row so that it can be fetched; whatever an event names that could mean a path is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session, select

from jobs.hub_names import checked_commit, checked_file, checked_repo, set_sha256, shard_files
from jobs.hub_weights import HubWeight
from jobs.sightings import HubFileRow, HubRepositoryRow
from jobs.store import catalog
from jobs.tables import EventRow, ModelFileRow, RevisionRow

SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
CLASS_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,79}", re.ASCII)
PROJECTOR = re.compile(r"(^|[/._-])mmproj", re.IGNORECASE)
MMPROJ = "mmproj"


def file_of(session: Session, event: EventRow, now: datetime) -> tuple[ModelFileRow | None, str]:
    """The model file that an event tells of, or why it has none."""
    told = _told(event)
    if told is None:
        return None, ""
    try:
        weight = _weight(event.payload, told)
    except ValueError as fault:
        return None, str(fault)
    row = catalog.model_with(session, weight.sha256)
    if row is None:
        row = catalog.add_hub_file(session, weight, now=now)
        row.role = str(told.get("role") or "target")
        row.quantisation = str(told.get("quant") or "")[:80]
        row.model_class = _model_class(event.payload, weight)
    if row.shape is None:
        _put_header_in(session, row, weight)
    session.add(row)
    session.flush()
    return row, ""


def _told(event: EventRow) -> Mapping[str, Any] | None:
    """What the event says of its file; of a repository whose files changed, its projector."""
    if event.kind != "hf_files_changed":
        return event.payload if event.payload.get("path") else None
    changed = [*_list(event.payload, "added"), *_list(event.payload, "changed")]
    for file in changed:
        if isinstance(file, Mapping) and PROJECTOR.search(str(file.get("path"))):
            return {**file, "role": MMPROJ}
    return None


def _weight(payload: Mapping[str, Any], told: Mapping[str, Any]) -> HubWeight:
    path = checked_file(str(told.get("path")))
    names = shard_files(path)
    shards = _list(told, "shards")
    digests = [str(each.get("lfs_sha256")) for each in shards if isinstance(each, Mapping)]
    if len(names) == 1:
        digests = [str(told.get("lfs_sha256"))]
    if len(digests) != len(names) or not all(SHA256.fullmatch(each) for each in digests):
        raise ValueError(f"the hub gave no sha256 for every file of {path[-80:]!r}")
    return HubWeight(
        repo=checked_repo(str(payload.get("repo_id"))),
        commit=checked_commit(str(payload.get("sha"))),
        file=path,
        sha256=set_sha256(digests) if len(digests) > 1 else digests[0],
        size_bytes=int(told.get("size") or 0),
        shards=tuple(digests) if len(digests) > 1 else (),
    )


def _list(told: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = told.get(key)
    return found if isinstance(found, list) else []


def _model_class(payload: Mapping[str, Any], weight: HubWeight) -> str:
    """The base model where the repository names one, else the file's own name."""
    for base in _list(payload, "base_models"):
        name = str(base).rpartition("/")[2].lower()
        if CLASS_NAME.fullmatch(name):
            return name
    return weight.stem


def _put_header_in(session: Session, row: ModelFileRow, weight: HubWeight) -> None:
    """What the hub's look read of the header."""
    query = (
        select(HubFileRow)
        .join(HubRepositoryRow)
        .where(HubRepositoryRow.full_name == weight.repo, HubFileRow.path == weight.file)
    )
    found = session.exec(query).first()
    if found is not None and found.shape is not None:
        row.shape, row.facts = found.shape, dict(found.facts)
    elif found is not None:
        row.header_fault = found.unread


def parent_of(session: Session, event: EventRow, revision: RevisionRow, now: datetime) -> None:
    """Make the commit before a push known where no older revision is: a baseline may need it.

    After a force push the old head is no ancestor any more, and where the fork left its upstream
    stands for it.
    """
    facts = event.payload.get("facts")
    if not isinstance(facts, Mapping):
        return
    before = facts.get("before") if facts.get("forced") is False else facts.get("merge_base")
    try:
        commit = checked_commit(str(before))
    except ValueError:
        return
    if commit == revision.commit:
        return
    moment = revision.committed_at
    older = (moment - timedelta(seconds=1)).isoformat() if moment else ""
    catalog.add_revision(
        session,
        engine_id=revision.engine_id,
        commit=commit,
        label=f"{revision.label.partition('@')[0]}@{commit[:9]}",
        order_key=older if older < revision.order_key else "",
        committed_at=None,
        proposed=(revision.proposed and facts.get("forced") is False) or None,
        now=now,
    )
