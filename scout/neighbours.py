"""What a fork's news is judged by: its upstream and the patches others were known to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.git_names import full_name
from scout.graph import Graph, Reach, Triple, patches, triples
from scout.history import History
from scout.kinship import Kin, elders, relatives
from scout.ref_values import Neighbour, Upstream, View

Seen = Mapping[str, Mapping[str, str]]


def views(
    history: History, kin: Mapping[str, Kin], seen: Seen, root: str, moved: Sequence[str]
) -> dict[str, View]:
    """The view for each engine that moved in the chain of `root`; its graph is read once.

    One that brings too much history to be read has none.
    """
    chain = [each.name for each in relatives(root, kin)]
    numbers = [kin[name].repository for name in chain]
    graph = history.graph([kin[root].repository, *numbers])
    upstream = upstream_of(graph, kin[root], seen.get(root, kin[root].refs))
    base = graph.reach([]) if upstream is None else upstream.everything
    before = {name: _patches(graph, kin[name].refs, base) for name in chain if name != root}
    after = {name: _patches(graph, seen[name], base) for name in before if name in seen}
    return {
        name: View(
            graph,
            history.changed_paths,
            None if kin[name].shares(kin[root]) else upstream,
            _neighbours(name, kin, before, after),
            history.paths_between,
        )
        for name in chain
        if name in moved and kin[name].repository not in graph.left_out
    }


def upstream_of(graph: Graph, root: Kin, refs: Mapping[str, str]) -> Upstream | None:
    """What forks of `root` are measured against; None where its head is not in the graph."""
    head = refs.get(full_name(root.branch)) if root.branch else None
    if head is None or not graph.knows(head):
        return None
    released, everything = graph.reach([head]), graph.reach([head, *refs.values()])
    return Upstream(
        root.repository, head, released, everything, root.name, root.github_id, root.siblings
    )


def _patches(graph: Graph, refs: Mapping[str, str], base: Reach) -> frozenset[Triple]:
    return triples(patches(graph.beyond(refs.values(), base)))


def _neighbours(
    name: str,
    kin: Mapping[str, Kin],
    before: Mapping[str, frozenset[Triple]],
    after: Mapping[str, frozenset[Triple]],
) -> tuple[Neighbour, ...]:
    """Elders as they are now, nearest first; others as they were before this round.

    Engines of its own repository are none.
    """
    foreign = [each for each in before if not kin[name].shares(kin[each])]
    line = [each for each in elders(name, kin) if each in foreign]
    others = sorted(each for each in foreign if each not in line)
    known = [(each, after.get(each, before[each])) for each in line]
    known += [(each, before[each]) for each in others]
    return tuple(
        Neighbour(each, kin[each].repository, own, kin[each].github_id, kin[each].siblings)
        for each, own in known
        if own
    )
