"""Who descends from whom, how far apart they are and who took what; decides from a graph alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jobs.git_history import CommitFacts
from scout.graph import Distance, Graph, Reach, Triple, changes, patches, triples


@dataclass(frozen=True)
class Member:
    """An engine as lineage needs it: its head, all tips of its repository, its named parent."""

    name: str
    branch: str
    head: str
    tips: Collection[str]
    parent: str | None = None


@dataclass(frozen=True)
class Sync:
    """The newest upstream state a head stands on, and when and how it got there."""

    commit: str
    upstream_at: datetime
    brought_at: datetime
    brought_by: str | None
    method: str


@dataclass(frozen=True)
class Absorbed:
    """What came from another engine: commits with their sha, patches also after a rebase."""

    source: str
    commits: int
    patches: int


@dataclass(frozen=True)
class Descent:
    """Where an engine stands; counts against upstream are None for upstream itself.

    They are None for all while upstream was not seen; an engine not seen yet has no head.
    """

    engine: str
    branch: str | None
    head: str | None
    parent: str | None = None
    from_upstream: Distance | None = None
    from_parent: Distance | None = None
    own_patches: int | None = 0
    own_authors: int | None = 0
    patches_beyond_parent: int | None = 0
    backports: int | None = 0
    last_sync: Sync | None = None
    stale_days: int | None = None
    absorbed: tuple[Absorbed, ...] = ()
    committed_at: datetime | None = None


@dataclass(frozen=True)
class _Own:
    """What a member has beyond upstream: on its head, and on any of its refs."""

    commits: Sequence[CommitFacts]
    shas: frozenset[str]
    patches: frozenset[Triple]
    all_shas: frozenset[str]
    all_patches: frozenset[Triple]


def lineage(
    graph: Graph, members: Sequence[Member], *, upstream: str, now: datetime
) -> tuple[Descent, ...]:
    """The descent of every member, upstream first, in the order given otherwise.

    A parent named in the watch list says only who is older; which of the older ones it is, the
    commits decide: most shared by sha, then by author, time and subject. Where upstream is no
    member, its work cannot be told from a fork's own, and counts are against named parents alone.
    """
    root = next((member for member in members if member.name == upstream), None)
    if root is None:
        return tuple(_without_upstream(graph, members, upstream))
    others = [member for member in members if member.name != upstream]
    released = graph.reach([root.head])
    everything = graph.reach([root.head, *root.tips])
    own = {member.name: _own(graph, member, everything) for member in others}
    parents = {member.name: _parent(member, others, own) or upstream for member in others}
    heads = {member.name: member for member in members}
    count = sum(released)
    at = _head_at(graph, root)
    found = [Descent(root.name, root.branch, root.head, committed_at=at)]
    for member in others:
        mine, parent = own[member.name], heads[parents[member.name]]
        distance = graph.distance(member.head, released, count)
        sync = _last_sync(graph, member.head, distance.merge_base, everything)
        of_parent = own[parent.name].all_patches if parent.name in own else frozenset()
        beyond = graph.reach([parent.head])
        found.append(
            Descent(
                engine=member.name,
                branch=member.branch,
                head=member.head,
                parent=parent.name,
                from_upstream=distance,
                from_parent=graph.distance(member.head, beyond, sum(beyond)),
                own_patches=len(mine.patches),
                own_authors=len({author for author, _, _ in mine.patches}),
                patches_beyond_parent=len(mine.patches - of_parent),
                backports=len(changes(mine.commits)) - len(patches(mine.commits)),
                last_sync=sync,
                stale_days=None if sync is None else max(0, (now - sync.upstream_at).days),
                absorbed=_absorbed(member.name, parents, own),
                committed_at=_head_at(graph, member),
            )
        )
    return tuple(found)


def _without_upstream(graph: Graph, members: Sequence[Member], upstream: str) -> Iterator[Descent]:
    known = {member.name: member for member in members}
    for member in members:
        parent = known.get(member.parent or "")
        distance, beyond = None, None
        if parent is not None:
            theirs = graph.reach([parent.head])
            distance = graph.distance(member.head, theirs, sum(theirs))
            own = triples(patches(graph.beyond([member.head], theirs)))
            mine = graph.reach([member.head])
            beyond = len(own - triples(patches(graph.beyond([parent.head, *parent.tips], mine))))
        yield Descent(
            engine=member.name,
            branch=member.branch,
            head=member.head,
            parent=member.parent or upstream,
            from_parent=distance,
            own_patches=None,
            own_authors=None,
            patches_beyond_parent=beyond,
            backports=None,
            committed_at=_head_at(graph, member),
        )


def _own(graph: Graph, member: Member, upstream: Reach) -> _Own:
    on_head = graph.beyond([member.head], upstream)
    anywhere = graph.beyond([member.head, *member.tips], upstream)
    return _Own(
        on_head,
        frozenset(commit.sha for commit in on_head),
        triples(patches(on_head)),
        frozenset(commit.sha for commit in anywhere),
        triples(patches(anywhere)),
    )


def _parent(member: Member, others: Sequence[Member], own: Mapping[str, _Own]) -> str | None:
    named = {each.name: each.parent for each in others}
    mine = own[member.name]
    best: tuple[int, int, str] | None = None
    for other in others:
        if other.name == member.name or not _is_older(other.name, member.name, named, own):
            continue
        theirs = own[other.name]
        score = (
            len(mine.shas & theirs.all_shas),
            len(mine.patches & theirs.all_patches),
            other.name,
        )
        if any(score[:2]) and (best is None or score[:2] > best[:2]):
            best = score
    return best[2] if best else None


def _is_older(
    one: str, other: str, named: Mapping[str, str | None], own: Mapping[str, _Own]
) -> bool:
    """Whether `one` was there before `other`: as named, else the shared work is more its own."""
    if one in _ancestors(other, named):
        return True
    if other in _ancestors(one, named):
        return False
    shared = own[one].patches & own[other].all_patches | own[other].patches & own[one].all_patches
    by = Counter(author for author, _, _ in shared)
    ours, theirs = (_weight(own[name].patches - shared, by) for name in (one, other))
    return (*ours, other) > (*theirs, one)


def _weight(tail: Collection[Triple], by: Mapping[str, int]) -> tuple[bool, float]:
    """Whether all is shared; else how much of the shared work the rest's authors wrote."""
    if not tail:
        return True, 0.0
    return False, sum(by.get(author, 0) for author, _, _ in tail) / len(tail)


def _ancestors(name: str, parents: Mapping[str, str | None]) -> list[str]:
    line: list[str] = []
    at = parents.get(name)
    while at is not None and at not in line:
        line.append(at)
        at = parents.get(at)
    return line


def _absorbed(
    name: str, parents: Mapping[str, str], own: Mapping[str, _Own]
) -> tuple[Absorbed, ...]:
    """What came from the parent, then from others that are no descendants, each patch once."""
    mine = own[name]
    shas, rest = set(mine.shas), set(mine.patches)
    strangers = [other for other in own if name not in _ancestors(other, parents)]
    order = sorted(
        (other for other in strangers if other != name),
        key=lambda other: (other != parents[name], -len(mine.patches & own[other].all_patches)),
    )
    found = []
    for other in order:
        took = Absorbed(other, len(shas & own[other].all_shas), len(rest & own[other].all_patches))
        shas -= own[other].all_shas
        rest -= own[other].all_patches
        found += [took] if took.commits or took.patches else []
    return tuple(found)


def _last_sync(graph: Graph, head: str, merge_base: str | None, upstream: Reach) -> Sync | None:
    if merge_base is None:
        return None
    own = graph.beyond([head], upstream)
    base_at = _moment(graph.commit(merge_base).committed_at)
    holders = graph.containing(merge_base, own)
    line = set(graph.first_parents(head))
    brought = [
        commit
        for commit in own
        if commit.sha in holders and len(commit.parents) > 1 and commit.parents[0] not in holders
    ]
    on_line = [commit for commit in brought if commit.sha in line] or brought
    if on_line:
        merge = min(on_line, key=lambda commit: commit.committed_at)
        return Sync(merge_base, base_at, _moment(merge.committed_at), merge.sha, "merge")
    on_top = [commit.committed_at for commit in own if commit.sha in holders]
    brought_at = _moment(min(on_top)) if on_top else base_at
    return Sync(merge_base, base_at, brought_at, None, "rebase")


def _head_at(graph: Graph, member: Member) -> datetime | None:
    """When the head was committed, as its committer says."""
    if not graph.knows(member.head):
        return None
    return _moment(graph.commit(member.head).committed_at)


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)
