"""What one push to a branch means: new patches, a sync with upstream, work taken from others; pure.

It refuses to guess: where the history before the push was lost, nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobs.git_history import CommitFacts
from jobs.git_names import short_name
from jobs.terminal import counted
from scout.absorbed_news import LISTED, absorbed_news, facts_of, when
from scout.graph import changes, patches, triple, triples
from scout.ref_values import Place, RefNews, View, keys_of

HOT_PATHS = (
    "ggml/src/ggml-cuda",
    "common/speculative",
    "src/llama-kv",
    "src/models",
    "tools/server",
)
"""Where a change moves the numbers that we measure."""


PATHS_LISTED = 200
"""Of a push that changes more files it is not asked whether it changes what is built."""


def push_news(place: Place, ref: str, before: str, after: str, view: View) -> list[RefNews]:
    """The push, the sync it brought and what it absorbed; a watched branch carries its revision."""
    graph = view.graph
    built: dict[str, Any] = {"revision": after, "replaces": before} if ref in place.watched else {}
    if not graph.knows(before):
        return [replace(_moved(place, ref, before, after, view), **built)]
    past = graph.reach([before])
    forced = not graph.holds(graph.reach([after]), before)
    arrived = graph.beyond([after], past)
    fresh, picked = _new(arrived, before, view)
    sync = _sync(place, ref, before, after, view, forced=forced)
    idle = forced and not fresh and not picked
    news: list[RefNews] = []
    if sync is not None and idle:
        # A rebase that brought nothing of the fork's own is a sync and no push.
        news.append(replace(sync, **built, low_priority=True))
    else:
        push = _pushed(place, ref, before, after, view, forced=forced, fresh=fresh)
        news.append(replace(push, **built, low_priority=idle))
        news += [sync] if sync is not None else []
    return news + absorbed_news(place, fresh, picked, view)


def _new(
    arrived: Iterable[CommitFacts], before: str, view: View
) -> tuple[list[CommitFacts], list[CommitFacts]]:
    """New patches, and pull requests of upstream that were picked and not merged.

    Neither what upstream holds nor what the branch had before it was rebased is new. A pull request
    that upstream was not seen to have may come of a merge, and nothing is claimed of it.
    """
    if view.upstream is None:
        return changes(arrived), []
    everything = view.upstream.everything
    had = triples(changes(view.graph.beyond([before], everything)))
    new = [
        commit
        for commit in changes(arrived)
        if not view.graph.holds(everything, commit.sha) and triple(commit) not in had
    ]
    own = patches(new)
    mine = {commit.sha for commit in own}
    others = [commit for commit in new if commit.sha not in mine]
    theirs = triples(view.graph.within(everything)) if others else frozenset()
    return own, [commit for commit in others if triple(commit) in theirs]


def _moved(place: Place, ref: str, before: str, after: str, view: View) -> RefNews:
    """A push of which only the new end is known: the history before it was lost here."""
    facts = {"forced": None, "new_patches": None}
    how = f"moved to {after[:9]}, what came before is not known here"
    return _told(place, ref, before, after, view, facts, how)


def _pushed(
    place: Place,
    ref: str,
    before: str,
    after: str,
    view: View,
    *,
    forced: bool,
    fresh: Sequence[CommitFacts],
) -> RefNews:
    touched = view.changed_paths([commit.sha for commit in fresh]) if fresh else ()
    hot = sorted(path for path in touched or () if path.startswith(HOT_PATHS))
    authors = sorted({commit.author for commit in fresh})
    differs = view.paths_between(before, after) if ref in place.watched else None
    facts = {
        "forced": forced,
        "paths": sorted(differs) if differs is not None and len(differs) <= PATHS_LISTED else None,
        "new_patches": len(fresh),
        "new_authors": authors[:LISTED],
        "files_hot": hot[:LISTED],
        "too_many_paths": touched is None,
        "subjects": [commit.subject for commit in fresh[:LISTED]],
    }
    verb = "force-pushed" if forced else "pushed"
    how = f"{verb} to {after[:9]}, {counted(len(fresh), 'new patch', 'new patches')}"
    return _told(place, ref, before, after, view, facts, how)


def _told(
    place: Place,
    ref: str,
    before: str,
    after: str,
    view: View,
    facts: Mapping[str, Any],
    how: str,
) -> RefNews:
    name = short_name(ref)
    key, former = keys_of("push", f"{ref}:{after}", place.names)
    everything = {
        "ref": ref,
        "before": before,
        "after": after,
        "is_default": name == place.default_branch,
        "new_authors": [],
        "files_hot": [],
        "too_many_paths": False,
        "subjects": [],
        **facts,
        **_standing(after, view),
    }
    return RefNews(
        "fork_pushed",
        key,
        f"{place.engine}: {name} {how}",
        facts_of(place, everything),
        happened_at=when(view.graph, after),
        former=former,
    )


def _standing(head: str, view: View) -> dict[str, Any]:
    if view.upstream is None:
        return {"ahead": None, "behind": None, "merge_base": None}
    released = view.upstream.released
    found = view.graph.distance(head, released, sum(released))
    return {"ahead": found.ahead, "behind": found.behind, "merge_base": found.merge_base}


def _sync(
    place: Place, ref: str, before: str, after: str, view: View, *, forced: bool
) -> RefNews | None:
    if view.upstream is None:
        return None
    old, new = (_standing(head, view)["merge_base"] for head in (before, after))
    if new is None or old is None or old == new:
        return None
    if not view.graph.holds(view.graph.reach([new]), old):
        return None  # an older upstream than before is no sync
    absorbed = len(view.graph.beyond([new], view.graph.reach([old])))
    facts = {
        "ref": ref,
        "old_merge_base": old,
        "new_merge_base": new,
        "absorbed": absorbed,
        "upstream_id": view.upstream.github_id,
        "upstream_repository": view.upstream.repository,
        "method": "rebase" if forced else "merge",
    }
    verb = "rebased onto" if forced else "merged"
    key, former = keys_of("sync", f"{ref}:{new}", place.names)
    return RefNews(
        "upstream_synced",
        key,
        f"{place.engine}: {short_name(ref)} {verb} upstream {new[:9]}, "
        f"{counted(absorbed, 'commit')} taken",
        facts_of(place, facts),
        happened_at=when(view.graph, after),
        former=former,
    )
