"""Brings the rows in line with a watch list: adds, changes and retires; deletes no fact."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from jobs.errors import UsageError
from jobs.store import catalog, hub
from jobs.tables import EngineRow
from scout.watchlist import DRIVEN_FAMILIES, MADE_WAYS, EngineEntry, ModelEntry, WatchList


@dataclass(frozen=True)
class Changes:
    """What an import did, in names such as `engine buun`, and what waits for a later release."""

    changed: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    not_yet: tuple[str, ...] = ()
    unwatched: tuple[str, ...] = ()


def apply(
    session: Session, watch_list: WatchList, now: datetime, *, replace: bool = False
) -> Changes:
    """Make the rows say what the list says; the caller commits all of it or nothing.

    Several lists add up. With `replace`, what is not in this one is retired.
    """
    changed: list[str] = []
    rows: dict[str, EngineRow] = {}
    for engine in watch_list.engines:
        if engine.family not in DRIVEN_FAMILIES:
            continue
        rows[engine.name], is_new = _engine(session, engine, now)
        changed += [f"engine {engine.name}"] if is_new else []
        for build in engine.builds:
            device = "cuda" if build.cuda_arch else "cpu"
            _, is_new = catalog.ensure_rig(session, build.rig, now=now, device=device)
            changed += [f"rig {build.rig}"] if is_new else []
    for model in watch_list.models:
        _, is_new = catalog.upsert_model_file(session, model.name, now=now, values=_file(model))
        changed += [f"model {model.name}"] if is_new else []
    for place in watch_list.hub_watches:
        if hub.upsert_watch(session, place.watch, roles=place.roles, now=now):
            changed.append(place.watch)
    benchable = [stack for stack in watch_list.stacks if not watch_list.stack_obstacle(stack)]
    for stack in benchable:
        values = {
            "engine_id": rows[stack.engine].id,
            "target": stack.target,
            "intent": dict(stack.intent),
            "flags": list(stack.flags),
            "env": dict(stack.env),
            "scenarios": list(stack.scenarios),
        }
        _, is_new = catalog.upsert_stack(session, stack.name, now=now, values=values)
        changed += [f"stack {stack.name}"] if is_new else []
    dropped: list[str] = []
    retired: list[str] = []
    unwatched: list[str] = []
    if replace:
        dropped = catalog.drop_stacks(session, keep=[stack.name for stack in benchable])
        retired = _retire(session, keep=rows)
        places = {each.watch for each in watch_list.hub_watches}
        unwatched = hub.retire_watches(session, keep=places)
    session.flush()
    return Changes(
        tuple(changed),
        tuple(retired),
        tuple(dropped),
        tuple(watch_list.not_yet()),
        tuple(unwatched),
    )


def _retire(session: Session, *, keep: Container[str]) -> list[str]:
    gone = [row for row in catalog.engines(session) if row.name not in keep]
    for row in gone:
        row.retired = True
        session.add(row)
    return [row.name for row in gone]


def _engine(session: Session, entry: EngineEntry, now: datetime) -> tuple[EngineRow, bool]:
    known = {row.name: row for row in catalog.engines(session, retired=True)}.get(entry.name)
    if known is not None:
        before = (known.family, known.repo, known.package)
        after = (entry.family, entry.repo, entry.package)
        if before != after:
            was, now_is = (" ".join(filter(None, place)) for place in (before, after))
            raise UsageError(
                f"engine {entry.name!r} is known as {was}, now asked as {now_is}",
                advice="another code base needs another name: results are kept under this one",
            )
    values = {
        "family": entry.family,
        "repo": entry.repo,
        "package": entry.package,
        "parent": entry.parent,
        "trust": entry.trust,
        "branches": list(entry.branches),
        "newest": entry.newest,
        "targets": [
            {
                "rig": build.rig,
                "via": build.via,
                "cuda_arch": build.cuda_arch,
                "options": list(build.options),
            }
            for build in entry.builds
            if build.via in MADE_WAYS
        ],
        "retired": False,
    }
    return catalog.upsert_engine(session, entry.name, now=now, values=values)


def _file(model: ModelEntry) -> dict[str, object]:
    return {
        "role": model.role,
        "model_class": model.model_class,
        "quantisation": model.quantisation or "",
        "sha256": model.sha256,
        "source": {"package": model.package, "version": model.version},
        "size_bytes": model.size_bytes,
    }
