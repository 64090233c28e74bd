"""The watched engines that have a repository, with what was recorded of it; reads rows only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlmodel import Session

from jobs.git_names import full_name
from jobs.store import catalog, refs
from jobs.store.origins import Origin, origins
from scout.lineage import Member


@dataclass(frozen=True)
class Kin:
    """An engine and its repository under the name it has now; `refs` are full names to commits.

    `lost` are branches that are not there any more, and where they stood. `siblings` are our rows
    of the same repository for other engines.
    """

    name: str
    engine_id: int
    repo: str
    repository: int
    github_id: int | None = None
    default_branch: str | None = None
    branches: tuple[str, ...] = ()
    parent: str | None = None
    refs: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    origin: Origin | None = None
    siblings: tuple[int, ...] = ()

    @property
    def branch(self) -> str | None:
        """The branch that stands for the engine: the first listed one, else the default."""
        return self.branches[0] if self.branches else self.default_branch

    @property
    def watched(self) -> frozenset[str]:
        """Full names of the branches that are built when they move."""
        names = self.branches or ((self.default_branch,) if self.default_branch else ())
        return frozenset(full_name(name) for name in names)

    @property
    def is_new(self) -> bool:
        """Whether none of its branches and tags was ever seen."""
        return not self.refs and not self.lost

    @property
    def head(self) -> str | None:
        """The commit of the branch that stands for the engine, where it was seen."""
        return self.refs.get(full_name(self.branch)) if self.branch else None

    def shares(self, other: Kin) -> bool:
        """Whether both are engines of one repository."""
        return self.repository == other.repository or other.repository in self.siblings

    def member(self) -> Member | None:
        """The engine as lineage needs it, once its head was seen."""
        if self.head is None or self.branch is None:
            return None
        return Member(self.name, self.branch, self.head, tuple(self.refs.values()), self.parent)


def kindred(session: Session, *, with_refs: bool = True) -> dict[str, Kin]:
    """Engines with a repository row by name; parents as the watch list, else GitHub, names them."""
    rows = {row.id or 0: row for row in catalog.engines(session) if row.repo}
    places = refs.repositories_of_engines(session)
    by_github = {
        place.github_id: rows[engine_id].name
        for engine_id, place in places.items()
        if place.github_id is not None and engine_id in rows
    }
    named = origins(session, rows.values())
    recorded = refs.recorded_of_engines(session) if with_refs else {}
    found = {}
    for engine_id, place in places.items():
        row = rows.get(engine_id)
        if row is None:
            continue
        known = recorded.get(place.id or 0, refs.Recorded())
        found[row.name] = Kin(
            name=row.name,
            engine_id=engine_id,
            repo=named[engine_id].repo,
            repository=place.id or 0,
            github_id=place.github_id or named[engine_id].github_id,
            default_branch=place.default_branch,
            branches=tuple(row.branches),
            parent=row.parent or by_github.get(place.parent_github_id or 0),
            refs=known.here,
            lost=known.lost,
            origin=named[engine_id],
        )
    return _with_siblings(found)


def _with_siblings(kin: Mapping[str, Kin]) -> dict[str, Kin]:
    by_place: dict[object, list[int]] = {}
    for each in kin.values():
        by_place.setdefault(_place_of(each), []).append(each.repository)
    return {
        name: replace(each, siblings=tuple(sorted(others)))
        if (others := set(by_place[_place_of(each)]) - {each.repository})
        else each
        for name, each in kin.items()
    }


def _place_of(each: Kin) -> object:
    return each.repo.lower() if each.github_id is None else each.github_id


def with_heads(session: Session) -> dict[str, Kin]:
    """The engines with the one ref of each that stands for it."""
    kin = kindred(session, with_refs=False)
    heads = {each.repository: full_name(each.branch) for each in kin.values() if each.branch}
    seen = refs.oids(session, heads.items())
    return {
        name: replace(each, refs={heads[each.repository]: seen[each.repository]})
        if each.repository in seen
        else each
        for name, each in kin.items()
    }


def root_of(name: str, kin: Mapping[str, Kin]) -> str:
    """The eldest named ancestor that is watched; a circle of parents ends where it began."""
    line = [name]
    while True:
        parent = kin[line[-1]].parent
        if parent is None or parent not in kin or parent in line:
            return line[-1]
        line.append(parent)


def relatives(name: str, kin: Mapping[str, Kin]) -> list[Kin]:
    """The engine's whole chain, itself included, parents before children."""
    root = root_of(name, kin)
    return [kin[each] for each in elders_first(kin) if root_of(each, kin) == root]


def elders_first(kin: Mapping[str, Kin]) -> Sequence[str]:
    """Names so that a parent comes before its children, else by name."""
    return sorted(kin, key=lambda name: (len(elders(name, kin)), name))


def elders(name: str, kin: Mapping[str, Kin]) -> list[str]:
    """Parent, its parent and so on, as far as they are watched."""
    line: list[str] = []
    at = kin[name].parent
    while at is not None and at in kin and at not in line and at != name:
        line.append(at)
        at = kin[at].parent
    return line
