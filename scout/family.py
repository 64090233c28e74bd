"""The descent of an engine's whole chain, and how a person sees it; it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.text import Text
from rich.tree import Tree

from jobs.errors import UsageError
from jobs.terminal import counted
from scout.graph import Distance, Graph
from scout.history import History
from scout.kinship import Kin, relatives, root_of
from scout.lineage import Descent, lineage

LOOK = "look now, and read what it says: forkscout scout run --source git"


def family_of(
    engine: str, kin: Mapping[str, Kin], history: History, *, now: datetime
) -> tuple[Descent, ...]:
    """Descents of all engines of the chain, upstream first; one that was not seen has no head."""
    if engine not in kin:
        raise UsageError(f"no repository of {engine!r} was seen yet", advice=LOOK)
    root = root_of(engine, kin)
    chain = relatives(engine, kin)
    members = {each.name: member for each in chain if (member := each.member()) is not None}
    if not members:
        raise UsageError(f"no branch of {engine!r} or of its elders was seen yet", advice=LOOK)
    first = [root] if root in members else []
    numbers = [kin[name].repository for name in (*first, *members)]
    # A chain of one has nobody to be compared with: no commit is read for it.
    graph = history.graph(numbers) if len(members) > 1 else Graph(())
    read = [one for name, one in members.items() if kin[name].repository not in graph.left_out]
    found = {each.engine: each for each in lineage(graph, read, upstream=root, now=now)}
    return tuple(found.get(each.name) or _not_seen(each, root) for each in chain)


def _not_seen(kin: Kin, root: str) -> Descent:
    parent = None if kin.name == root else kin.parent or root
    return Descent(
        engine=kin.name,
        branch=kin.branch,
        head=None,
        parent=parent,
        own_patches=None,
        own_authors=None,
        patches_beyond_parent=None,
        backports=None,
    )


def as_tree(descents: Sequence[Descent], *, marked: str) -> Tree:
    """Upstream at the top, each fork under its parent; `marked` stands out."""
    branches: dict[str, Tree] = {}
    top = descents[0]
    waiting = list(descents)
    while waiting:
        ready = [each for each in waiting if each.parent is None or each.parent in branches]
        for each in ready or waiting[:1]:
            label = _label(each, top, bold=each.engine == marked)
            above = branches.get(each.parent or "")
            branches[each.engine] = Tree(label) if above is None else above.add(label)
            waiting.remove(each)
    return branches[top.engine]


def _label(descent: Descent, top: Descent, *, bold: bool) -> Text:
    text = Text(descent.engine, style="bold" if bold else "")
    where = f"  {descent.branch or ''}".rstrip()
    if descent.head is None:
        text.append(f"{where}  not seen yet")
        return text
    text.append(f"{where} {descent.head[:9]}")
    for line in _lines(descent, top):
        text.append(f"\n{line}")
    return text


def _lines(descent: Descent, top: Descent) -> list[str]:
    if descent.engine == top.engine:
        return []
    if descent.from_upstream is None:
        return _lines_without_upstream(descent, top)
    apart = f"upstream {_apart(descent.from_upstream)}"
    if descent.from_parent is not None and descent.parent != top.engine:
        apart += f", {descent.parent} {_apart(descent.from_parent)}"
    count = descent.own_patches or 0
    authors = counted(descent.own_authors or 0, "author")
    own = f"{counted(count, 'own patch', 'own patches')} by {authors}"
    if descent.patches_beyond_parent != descent.own_patches:
        own += f", {descent.patches_beyond_parent} of them not in {descent.parent}"
    lines = [apart, own]
    sync = descent.last_sync
    if sync is not None:
        by = f"{sync.method} {(sync.brought_by or '')[:9]}".strip()
        lines += [
            f"on upstream of {sync.upstream_at:%Y-%m-%d}, {descent.stale_days} days old",
            f"taken {sync.brought_at:%Y-%m-%d} by {by}",
        ]
    if descent.backports:
        lines.append(f"picked {counted(descent.backports, 'pull request')} of upstream")
    lines += [
        f"absorbed {counted(took.patches, 'patch', 'patches')} of {took.source} "
        f"({counted(took.commits, 'commit')} as they were)"
        for took in descent.absorbed
    ]
    return lines


def _lines_without_upstream(descent: Descent, top: Descent) -> list[str]:
    lines = [f"{top.engine} was not seen yet, nothing is counted against it"]
    if descent.from_parent is not None:
        lines.append(f"{descent.parent} {_apart(descent.from_parent)}")
    if (beyond := descent.patches_beyond_parent) is not None:
        lines.append(f"{counted(beyond, 'patch', 'patches')} not in {descent.parent}")
    return lines


def _apart(distance: Distance) -> str:
    if distance.merge_base is None:
        return "nothing in common"
    return f"+{distance.ahead} -{distance.behind}"
