"""Brings the rows in line with a watch list: adds, changes and retires; deletes no fact."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from jobs.errors import UsageError
from jobs.planning.rules import FILTERS
from jobs.store import catalog, hub, rigs, rules
from jobs.store.origins import origin_of
from jobs.store.targets import PINS
from jobs.tables import EngineRow
from scout.known import Known
from scout.watchlist import DRIVEN_FAMILIES, MADE_WAYS, EngineEntry, ModelEntry, WatchList


@dataclass(frozen=True)
class Changes:
    """What an import did, in names such as `engine buun`, and what waits for a later release."""

    new: tuple[str, ...] = ()
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
    before, known = known_here(session), _known(session)
    engines = {row.name: row for row in catalog.engines(session, retired=True)}
    touched: list[str] = []
    rows: dict[str, EngineRow] = {}
    for engine in watch_list.engines:
        rows[engine.name], differs = _engine(session, engines.get(engine.name), engine, now)
        touched += [f"engine {engine.name}"] if differs else []
        for build in engine.builds if engine.family in DRIVEN_FAMILIES else ():
            device = "cuda" if build.cuda_arch else "cpu"
            _, is_new = catalog.ensure_rig(session, build.rig, now=now, device=device)
            touched += [f"rig {build.rig}"] if is_new else []
    for model in watch_list.models:
        _, differs = catalog.upsert_model_file(session, model.name, now=now, values=_file(model))
        touched += [f"model {model.name}"] if differs else []
    for place in watch_list.hub_watches:
        if hub.upsert_watch(session, place.watch, roles=place.roles, now=now):
            touched.append(f"place {place.watch}")
    obstacles = {each.name: watch_list.stack_obstacle(each, before) for each in watch_list.stacks}
    benchable = [stack for stack in watch_list.stacks if not obstacles[stack.name]]
    for stack in benchable:
        values = {
            "engine_id": (rows.get(stack.engine) or engines[stack.engine]).id,
            "target": stack.target,
            "drafter": stack.drafter,
            "mmproj": stack.mmproj,
            "intent": dict(stack.intent),
            "flags": list(stack.flags),
            "env": dict(stack.env),
            "scenarios": list(stack.scenarios),
            "own_scenarios": {
                name: table
                for name, table in watch_list.own_scenarios.items()
                if name in stack.scenarios
            },
        }
        _, differs = catalog.upsert_stack(session, stack.name, now=now, values=values)
        touched += [f"stack {stack.name}"] if differs else []
    usable = {name for name in {*obstacles, *before.stacks} if not obstacles.get(name)}
    for golden in (each for each in watch_list.goldens if each.stack in usable):
        low, high = golden.decode_tps or (None, None)
        wish = rigs.Wish(
            golden.rig, golden.stack, golden.revision, low, high, golden.text_sha256 or ""
        )
        if rigs.upsert_golden(session, wish, now):
            touched.append(f"golden of {golden.rig}")
    touched += _rules(session, watch_list, now)
    dropped: list[str] = []
    retired: list[str] = []
    unwatched: list[str] = []
    if replace:
        dropped = catalog.drop_stacks(session, keep=[stack.name for stack in benchable])
        rigs.drop_goldens(session, keep=[each.rig for each in watch_list.goldens], now=now)
        retired = _retire(session, keep=rows)
        places = {each.watch for each in watch_list.hub_watches}
        unwatched = hub.retire_watches(session, keep=places)
        rules.drop_rules(session, keep=[each.called for each in watch_list.rules])
        rules.drop_budgets(session, keep=[each.called for each in watch_list.budgets])
    session.flush()
    return Changes(
        new=tuple(name for name in touched if name not in known),
        changed=tuple(name for name in touched if name in known),
        retired=tuple(retired),
        dropped=tuple(dropped),
        not_yet=tuple(watch_list.not_yet(before)),
        unwatched=tuple(unwatched),
    )


def known_here(session: Session, *, replaced: bool = False) -> Known:
    """What a list may build on; where it takes the place of all others, no engine and no stack."""
    engines = () if replaced else catalog.engines(session)
    names = {row.id: row.name for row in engines}
    models = catalog.model_files(session)
    return Known(
        parents={row.name: row.parent for row in engines},
        built={
            row.name: frozenset(str(target["rig"]) for target in row.targets)
            for row in engines
            if row.targets
        },
        models={row.name: row.role for row in models},
        stacks={
            row.name: names[row.engine_id]
            for row in catalog.stacks(session)
            if row.engine_id in names
        },
        rigs=frozenset(row.name for row in catalog.rigs(session)),
        model_classes=frozenset(row.model_class for row in models),
    )


def _known(session: Session) -> set[str]:
    """What rows there are, as changes name them; a rig is never changed by a list."""
    return {
        *(f"engine {row.name}" for row in catalog.engines(session, retired=True)),
        *(f"model {row.name}" for row in catalog.model_files(session)),
        *(f"place {row.watch}" for row in hub.watches(session)),
        *(f"stack {row.name}" for row in catalog.stacks(session)),
        *(f"golden of {row.rig}" for row in rigs.goldens(session)),
        *(f"rule {row.name}" for row in rules.rules(session)),
        *(f"budget {row.name}" for row in rules.budgets(session)),
        *(f"memory of {row.name}" for row in catalog.rigs(session) if row.memory_bytes),
    }


def _rules(session: Session, watch_list: WatchList, now: datetime) -> list[str]:
    """Rules, budgets and what rigs hold; the names of those that are different now."""
    touched = []
    for place, rule in enumerate(watch_list.rules):
        only = {name: list(getattr(rule, name)) for name in FILTERS if getattr(rule, name)}
        values = {
            "place": place,
            "asked": rule.on,
            "does": rule.do,
            "only": only,
            "lane": rule.lane or "",
            "priority": rule.priority,
        }
        if rules.upsert_rule(session, rule.called, now=now, values=values):
            touched.append(f"rule {rule.called}")
    for budget in watch_list.budgets:
        values = {
            "rig": budget.rig or "",
            "source": budget.source or "",
            "hours_per_day": budget.hours_per_day,
        }
        if rules.upsert_budget(session, budget.called, now=now, values=values):
            touched.append(f"budget {budget.called}")
    for rig in watch_list.rigs:
        row, _ = catalog.ensure_rig(session, rig.name, now=now)
        size_bytes = int(rig.memory_gib * 2**30)
        if row.memory_bytes != size_bytes:
            row.memory_bytes = size_bytes
            session.add(row)
            touched.append(f"memory of {rig.name}")
    return touched


def _retire(session: Session, *, keep: Container[str]) -> list[str]:
    gone = [row for row in catalog.engines(session) if row.name not in keep]
    for row in gone:
        row.retired = True
        session.add(row)
    return [row.name for row in gone]


def _engine(
    session: Session, known: EngineRow | None, entry: EngineEntry, now: datetime
) -> tuple[EngineRow, bool]:
    if known is not None:
        before = (known.family, known.repo, known.package)
        after = (entry.family, entry.repo, entry.package)
        if before != after and not _follows_a_rename(session, known, entry):
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
                **{name: value for name in PINS if (value := getattr(build, name))},
            }
            for build in entry.builds
            if build.via in MADE_WAYS and entry.family in DRIVEN_FAMILIES
        ],
        "retired": False,
    }
    return catalog.upsert_engine(session, entry.name, now=now, values=values)


def _follows_a_rename(session: Session, known: EngineRow, entry: EngineEntry) -> bool:
    """Whether the list only writes the name that GitHub's number has by now."""
    if known.repo is None or entry.repo is None or entry.family != known.family:
        return False
    where = origin_of(session, known)
    return where.github_id is not None and where.repo.lower() == entry.repo.lower()


def _file(model: ModelEntry) -> dict[str, object]:
    return {
        "role": model.role,
        "model_class": model.model_class,
        "quantisation": model.quantisation or "",
        "sha256": model.sha256,
        "source": _source(model),
        "size_bytes": model.size_bytes,
    }


def _source(model: ModelEntry) -> dict[str, object]:
    if model.package is not None:
        return {"package": model.package, "version": model.version}
    hub = {"repo": model.repo, "file": model.file, "revision": model.revision}
    known: dict[str, object] = {key: value for key, value in hub.items() if value is not None}
    return known | ({"shards": list(model.shards)} if model.shards else {})
