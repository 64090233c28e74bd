"""One engine more or less on the watch list; the reader of watch lists judges what may be added."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlmodel import Session

from jobs.errors import UsageError
from jobs.git import repo_url
from jobs.store import catalog, forks
from jobs.store.origins import origins
from jobs.tables import EngineRow
from jobs.terminal import sound
from scout.known import Known
from scout.loading import apply
from scout.reading import load, parse
from scout.watchlist import WatchList

FAMILY, TRUST = "llama.cpp", "approve"
SOURCE = "watchlist add"
LONGEST_NAME = 80


@dataclass(frozen=True)
class Wish:
    """What a person typed; empty is "as it was", or the default."""

    repo: str
    name: str = ""
    parent: str = ""
    branches: tuple[str, ...] = ()
    family: str = ""
    trust: str = ""
    via: str = ""
    rig: str = ""
    cuda_arch: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Added:
    """The engine that is watched now, and the TOML that stands for it."""

    name: str
    repo: str
    parent: str | None
    revived: bool
    not_yet: tuple[str, ...]
    toml: str


def add(session: Session, wish: Wish, *, this_rig: str, now: datetime) -> Added:
    """Watch a repository; what a watch list could not say is refused with the reader's words."""
    wish = replace(wish, repo=sound(wish.repo))
    rows = catalog.engines(session, retired=True)
    known = _known(session, rows, wish)
    if known is not None and not known.retired:
        raise UsageError(
            f"{wish.repo} is watched already, as {known.name!r}",
            advice="change it in the watch list; see: forkscout watchlist list",
        )
    others = [row for row in rows if row is not known and not row.retired]
    values = _values(session, wish, known, [row for row in rows if row is not known])
    targets = _targets(wish, known, this_rig)
    block = engine_toml(values, targets)
    names = {str(values["name"]), *(row.name for row in others)}
    watch_list = _read("\n".join([block, *(_row_toml(row, names) for row in others)]))
    engine = watch_list.engines[0]
    repo_url(engine.repo or "")
    alone = watch_list.model_copy(update={"engines": (engine,)})
    changes = apply(session, alone, now)
    return Added(
        engine.name, engine.repo or "", engine.parent, known is not None, changes.not_yet, block
    )


def remove(session: Session, name: str) -> str:
    """Watch an engine no longer; what it is built from. Its rows stay."""
    row = catalog.engine_named(session, name)
    if row.retired:
        raise UsageError(f"{name!r} is not watched", advice="see: forkscout watchlist list")
    row.retired = True
    session.add(row)
    return row.repo or row.package or ""


def named_in(watchlist: Path | None, name: str, known: Known) -> str | None:
    """The configured watch list, where it would bring the engine back at the next look."""
    if watchlist is None or not any(each.name == name for each in load(watchlist, known).engines):
        return None
    return str(watchlist)


def _read(text: str) -> WatchList:
    """As a file would be read; a line of a text that nobody sees is not named."""
    try:
        return parse(text, SOURCE)
    except UsageError as error:
        said = re.sub(rf"^( *|{SOURCE}, )line \d+: ", "", error.detail, flags=re.MULTILINE)
        raise UsageError(said, advice=error.advice) from None


def engine_toml(values: Mapping[str, Any], targets: Sequence[Mapping[str, Any]] = ()) -> str:
    """One `[[engine]]` with its builds; what is empty is left out."""
    lines = ["[[engine]]", *_lines(values)]
    for target in targets:
        lines += ["[[engine.build]]", *_lines(target)]
    return "\n".join(lines)


def _lines(values: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in values.items() if value]


def _toml(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return json.dumps(sound(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_toml, value))}]"


def _known(session: Session, rows: Sequence[EngineRow], wish: Wish) -> EngineRow | None:
    """The engine this repository has already, listed so or called so now; watched ones first."""
    where = origins(session, rows).items()
    names = {number: {each.repo.lower(), each.listed.lower()} for number, each in where}
    same = [row for row in rows if wish.repo.lower() in names.get(row.id or 0, ())]
    if wish.name:
        same = [row for row in same if row.name == wish.name or not row.retired]
    return min(same, key=lambda row: row.retired, default=None)


def _values(
    session: Session, wish: Wish, known: EngineRow | None, others: Sequence[EngineRow]
) -> dict[str, Any]:
    watched = {row.name for row in others if not row.retired}
    parent = wish.parent or (known.parent if known else None)
    if not wish.parent and parent not in watched:
        parent = _parent(
            session, wish.repo, {row.id: row.name for row in others if not row.retired}
        )
    newest = known.newest if known else 0
    return {
        "name": known.name if known else wish.name or _free_name(wish.repo, others),
        "family": wish.family or (known.family if known else FAMILY),
        "repo": known.repo if known else wish.repo,
        "parent": parent,
        "branches": list(wish.branches) or (list(known.branches) if known else []),
        "newest": newest if newest != 3 else 0,
        "trust": wish.trust or (known.trust if known else TRUST),
    }


def _targets(wish: Wish, known: EngineRow | None, this_rig: str) -> list[dict[str, Any]]:
    if wish.via:
        target = {"rig": wish.rig or this_rig, "via": wish.via}
        return [{**target, "cuda_arch": wish.cuda_arch, "options": list(wish.options)}]
    if wish.rig or wish.cuda_arch or wish.options:
        raise UsageError("a build needs to know how", advice="add --via cmake")
    return [dict(target) for target in known.targets] if known else []


def _parent(session: Session, repo: str, watched: Mapping[int | None, str]) -> str | None:
    """The nearest watched ancestor, where the network of forks is known so far."""
    row = next(iter(forks.repositories_like(session, repo)), None)
    for _ in range(forks.DEEPEST):
        if row is None or row.parent_github_id is None:
            return None
        row = forks.repository(session, row.parent_github_id)
        if row is not None and row.engine_id in watched:
            return watched[row.engine_id]
    return None


def _free_name(repo: str, others: Iterable[EngineRow]) -> str:
    """The repository's name; with its owner's before it where another engine has that."""
    taken = {row.name.lower() for row in others}
    owner, _, name = repo.partition("/")
    safe = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    plain = re.sub(r"^[^A-Za-z0-9]+", "", safe)[:LONGEST_NAME] or owner
    long = f"{owner}-{plain}"[: LONGEST_NAME - 3]
    wanted = [plain, long, *(f"{long}-{number}" for number in range(2, 100))]
    return next((each for each in wanted if each.lower() not in taken), plain)


def _row_toml(row: EngineRow, names: Container[str]) -> str:
    """A watched engine, as far as a new one can clash with it; its parent may be retired."""
    return engine_toml(
        {
            "name": row.name,
            "family": row.family,
            "repo": row.repo,
            "package": row.package,
            "parent": row.parent if row.parent in names else None,
        }
    )
