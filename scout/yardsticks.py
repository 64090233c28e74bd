"""What the forks of one upstream are held against: its history, and the work of the known forks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.errors import Transient
from jobs.git import repo_url
from scout.capability import SOURCES, Capability, read_capability
from scout.fork_facts import (
    LOOKED_INTO,
    Elder,
    Own,
    Parentage,
    elder,
    git_facts,
    landed_in,
    own_work,
)
from scout.graph import Graph
from scout.history import History
from scout.kinship import Kin, relatives
from scout.neighbours import upstream_of
from scout.ranking import GitFacts
from scout.ref_values import Upstream


@dataclass(frozen=True)
class Member:
    """A repository of the network beside the engines; a fork of it may be judged."""

    name: str
    repository: int
    github_id: int
    refs: Mapping[str, str]
    head: str | None = None


@dataclass(frozen=True)
class Yardstick:
    """One upstream with its graph; elders by the number of their repository."""

    graph: Graph
    upstream: Upstream
    top: Elder
    landed: frozenset[tuple[str, str]]
    engines: Mapping[int, Elder] = field(default_factory=dict)
    elders: Mapping[int, Elder] = field(default_factory=dict)

    def parentage(self, parent: int | None, *, named: str, by_commits: bool = True) -> Parentage:
        """The parent with that repository number, and who else may be it by the commits."""
        found = self.elders.get(parent) if parent is not None else None
        return Parentage(found, named, tuple(self.engines.values()) if by_commits else ())


def yardstick(
    history: History,
    kin: Mapping[str, Kin],
    root: str,
    *,
    members: Iterable[Member] = (),
    numbers: Iterable[int] = (),
) -> Yardstick:
    """The chain of `root` with further members; `numbers` are repositories that are to be judged.

    Raises `Transient` while upstream's history is not here.
    """
    chain = relatives(root, kin)
    members = list(members)
    wanted = {one.repository for one in chain} | {one.repository for one in members} | {*numbers}
    graph = history.graph([kin[root].repository, *sorted(wanted)])
    base = upstream_of(graph, kin[root], kin[root].refs)
    if base is None:
        raise Transient(
            f"the history of {root} is not here", advice="it is fetched at the next look"
        )
    engines = {
        one.repository: elder(graph, one.name, one.repo, one.refs, one.head, base)
        for one in chain
        if one.name != root
    }
    others = {
        one.repository: elder(graph, one.name, one.name, one.refs, one.head, base)
        for one in members
    }
    top = Elder(root, kin[root].repo, base.head, tags={})
    return Yardstick(
        graph,
        base,
        top,
        landed_in(graph, base),
        engines,
        {kin[root].repository: top, **engines, **others},
    )


def facts_of(
    yard: Yardstick,
    history: History,
    refs: Mapping[str, str],
    *,
    default_branch: str | None,
    parentage: Parentage,
    url: str,
) -> GitFacts | None:
    """What git knows of a fork; None where none of its branches is here. May read its sources."""
    own = own_work(
        yard.graph,
        refs,
        default_branch=default_branch,
        upstream=yard.upstream,
        parentage=parentage,
        landed=yard.landed,
    )
    if own is None:
        return None
    if not own.work:
        return git_facts(own, {})
    files = history.changed_files([commit.sha for commit in own.work[:LOOKED_INTO]])
    return git_facts(own, files, _capabilities(yard, history, own, url))


def _capabilities(yard: Yardstick, history: History, own: Own, url: str) -> list[str]:
    """Names that upstream, now and then, and the parent lack; only changed sources are read.

    Each is asked for where its commit is at home: a fork that is behind has not what upstream has.
    """
    homes = {own.merge_base: url}
    for each in (yard.top, own.elder):
        if each is not None:
            homes.setdefault(each.head, repo_url(each.repo))
    others = [sha for sha in homes if sha and yard.graph.knows(sha)]
    ids = history.file_ids([(sha, path) for sha in (own.head, *others) for path in SOURCES])
    new = [path for path in SOURCES if _is_new(ids, own.head, others, path)]
    if not new:
        return []
    left = _read(history, url, own.head, new)
    for sha in others:
        left = left.beyond(_read(history, homes[sha], sha, new))
    return list(dict.fromkeys(word.partition(":")[2] for word in left.words()))


def _read(history: History, url: str, sha: str, paths: Sequence[str]) -> Capability:
    texts = history.read_files(url, [(sha, path) for path in paths])
    return read_capability({path: texts.get((sha, path), "") for path in paths})


def _is_new(
    ids: Mapping[tuple[str, str], str], head: str, others: Sequence[str], path: str
) -> bool:
    mine = ids.get((head, path))
    return mine is not None and all(ids.get((sha, path)) != mine for sha in others)
