"""The descent of an engine's whole chain, and how a person sees it; it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.text import Text
from rich.tree import Tree

from jobs.errors import UsageError
from scout.graph import Distance, Graph
from scout.history import History
from scout.kinship import Kin, relatives, root_of
from scout.lineage import Descent, lineage


def family_of(
    engine: str, kin: Mapping[str, Kin], history: History, *, now: datetime
) -> tuple[Descent, ...]:
    """Descents of all engines of the chain that were seen, upstream first."""
    if engine not in kin:
        raise UsageError(
            f"no repository of {engine!r} was seen yet", advice="look first: forkscout scout run"
        )
    root = root_of(engine, kin)
    chain = relatives(engine, kin)
    members = {each.name: member for each in chain if (member := each.member()) is not None}
    for needed in dict.fromkeys((root, engine)):
        if needed not in members:
            raise UsageError(
                f"the branch of {needed!r} was not seen yet",
                advice="look again: forkscout scout run; forkscout events tells of trouble",
            )
    numbers = [kin[name].repository for name in members]
    # A chain of one has nobody to be compared with: no commit is read for it.
    graph = history.graph(numbers) if len(members) > 1 else Graph(())
    return lineage(graph, list(members.values()), upstream=root, now=now)


def as_tree(descents: Sequence[Descent], *, marked: str) -> Tree:
    """Upstream at the top, each fork under its parent; `marked` stands out."""
    branches: dict[str, Tree] = {}
    waiting = list(descents)
    while waiting:
        ready = [each for each in waiting if each.parent is None or each.parent in branches]
        for each in ready or waiting[:1]:
            label = _label(each, bold=each.engine == marked)
            above = branches.get(each.parent or "")
            branches[each.engine] = Tree(label) if above is None else above.add(label)
            waiting.remove(each)
    return branches[descents[0].engine]


def _label(descent: Descent, *, bold: bool) -> Text:
    text = Text(descent.engine, style="bold" if bold else "")
    text.append(f"  {descent.branch} {descent.head[:9]}")
    for line in _lines(descent):
        text.append(f"\n{line}")
    return text


def _lines(descent: Descent) -> list[str]:
    if descent.from_upstream is None:
        return []
    apart = f"upstream {_apart(descent.from_upstream)}"
    if descent.from_parent is not None and descent.from_parent != descent.from_upstream:
        apart += f", {descent.parent} {_apart(descent.from_parent)}"
    own = (
        f"{descent.own_patches} own {_patches(descent.own_patches)} "
        f"by {_counted(descent.own_authors, 'author')}"
    )
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
        lines.append(f"picked {_counted(descent.backports, 'pull request')} of upstream")
    lines += [
        f"absorbed {took.patches} {_patches(took.patches)} of {took.source} "
        f"({_counted(took.commits, 'commit')} as they were)"
        for took in descent.absorbed
    ]
    return lines


def _apart(distance: Distance) -> str:
    return f"+{distance.ahead} -{distance.behind}"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _patches(count: int) -> str:
    return "patch" if count == 1 else "patches"
