"""What happened between two looks at a repository's branches and tags; pure, it stores nothing.

Names and texts in the facts are strangers': bounded, printable, and nothing but data.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from jobs.git_history import CommitFacts
from jobs.git_network import BRANCH, TAG
from scout.graph import Graph, changes, patches, triple, triples
from scout.ref_values import Place, RefNews, View

AUTO_BUILD = re.compile(r"(.+-)?b\d+(-[0-9a-f]{7})?")
"""How CI names the tag of a build; what people tag looks different."""

HOT_PATHS = (
    "ggml/src/ggml-cuda",
    "common/speculative",
    "src/llama-kv",
    "src/models",
    "tools/server",
)
"""Where a change moves the numbers that we measure."""

LISTED = 50  # commits, authors or paths that an event carries
TOLD_LIMIT = 200  # events of one repository at one look; more is no news but a flood


def ref_news(
    place: Place, known: Mapping[str, str], seen: Mapping[str, str], view: View
) -> list[RefNews]:
    """News of a repository, watched branches first; a repository seen first has none.

    At most `TOLD_LIMIT` of them, however many refs moved.
    """
    if not known:
        return []
    moved = [ref for ref in {**known, **seen} if known.get(ref) != seen.get(ref)]
    moved.sort(key=lambda ref: (ref not in place.watched, ref.startswith(TAG), ref))
    news: list[RefNews] = []
    for ref in moved:
        news += _one(place, ref, known.get(ref), seen.get(ref), view)
        if len(news) >= TOLD_LIMIT:
            break
    return news[:TOLD_LIMIT]


def _one(
    place: Place, ref: str, before: str | None, after: str | None, view: View
) -> list[RefNews]:
    if ref.startswith(TAG):
        return [_tag(place, ref, before, after, view)] if after else []
    if before is None or after is None:
        return [_branch(place, ref, before or after or "", view, gone=after is None)]
    return _push(place, ref, before, after, view)


def _tag(place: Place, ref: str, before: str | None, after: str, view: View) -> RefNews:
    name = ref.removeprefix(TAG)
    facts = {
        "tag": name,
        "target_oid": after,
        "old_oid": before,
        "auto_build": bool(AUTO_BUILD.fullmatch(name)),
    }
    verb = "moved" if before else "created"
    return RefNews(
        f"tag_{verb}",
        f"gh:tag:{place.repository}:{name}:{after}",
        f"{place.engine}: tag {name} {verb} at {after[:9]}",
        _facts(place, facts),
        happened_at=None if before else _when(view.graph, after),
    )


def _branch(place: Place, ref: str, oid: str, view: View, *, gone: bool) -> RefNews:
    verb, end = ("deleted", "del") if gone else ("created", "new")
    return RefNews(
        f"branch_{verb}",
        f"gh:branch:{place.repository}:{ref}:{oid}:{end}",
        f"{place.engine}: branch {ref.removeprefix(BRANCH)} {verb} at {oid[:9]}",
        _facts(place, {"ref": ref, "oid": oid}),
        happened_at=None if gone else _when(view.graph, oid),
    )


def _push(place: Place, ref: str, before: str, after: str, view: View) -> list[RefNews]:
    graph = view.graph
    built: dict[str, Any] = {"revision": after, "replaces": before} if ref in place.watched else {}
    if not graph.knows(before):
        return [replace(_moved(place, ref, before, after, view), **built)]
    past = graph.reach([before])
    forced = not graph.holds(graph.reach([after]), before)
    arrived = graph.beyond([after], past)
    fresh = _fresh(arrived, before, view)
    sync = _sync(place, ref, before, after, view, forced=forced)
    idle = forced and not fresh
    news: list[RefNews] = []
    if sync is not None and idle:
        # A rebase that brought nothing of the fork's own is a sync and no push.
        news.append(replace(sync, **built, low_priority=True))
    else:
        push = _pushed(place, ref, before, after, view, forced=forced, fresh=fresh)
        news.append(replace(push, **built, low_priority=idle))
        news += [sync] if sync is not None else []
    return news + _absorbed(place, fresh, view)


def _fresh(arrived: Iterable[CommitFacts], before: str, view: View) -> list[CommitFacts]:
    """New patches: not upstream's, and not ones that the branch had before it was rebased."""
    if view.upstream is None:
        return changes(arrived)
    everything = view.upstream.everything
    had = triples(changes(view.graph.beyond([before], everything)))
    own = patches(each for each in arrived if not view.graph.holds(everything, each.sha))
    return [commit for commit in own if triple(commit) not in had]


def _moved(place: Place, ref: str, before: str, after: str, view: View) -> RefNews:
    """A push of which only the new end is known: the history before it was lost here."""
    name = ref.removeprefix(BRANCH)
    facts: dict[str, Any] = {
        "ref": ref,
        "before": before,
        "after": after,
        "forced": None,
        "is_default": name == place.default_branch,
        "new_patches": None,
        "new_authors": [],
        "files_hot": [],
        "subjects": [],
        **_standing(after, view),
    }
    return RefNews(
        "fork_pushed",
        f"gh:push:{place.repository}:{ref}:{after}",
        f"{place.engine}: {name} moved to {after[:9]}, what came before is not known here",
        _facts(place, facts),
        happened_at=_when(view.graph, after),
    )


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
    name = ref.removeprefix(BRANCH)
    touched = view.changed_paths([commit.sha for commit in fresh]) if fresh else ()
    hot = sorted(path for path in touched if path.startswith(HOT_PATHS))
    authors = sorted({commit.author for commit in fresh})
    facts: dict[str, Any] = {
        "ref": ref,
        "before": before,
        "after": after,
        "forced": forced,
        "is_default": name == place.default_branch,
        "new_patches": len(fresh),
        "new_authors": authors[:LISTED],
        "files_hot": hot[:LISTED],
        "subjects": [commit.subject for commit in fresh[:LISTED]],
        **_standing(after, view),
    }
    how = "force-pushed" if forced else "pushed"
    return RefNews(
        "fork_pushed",
        f"gh:push:{place.repository}:{ref}:{after}",
        f"{place.engine}: {name} {how} to {after[:9]}, {_patches(len(fresh), 'new ')}",
        _facts(place, facts),
        happened_at=_when(view.graph, after),
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
        "upstream_id": view.upstream.repository,
        "method": "rebase" if forced else "merge",
    }
    verb = "rebased onto" if forced else "merged"
    return RefNews(
        "upstream_synced",
        f"gh:sync:{place.repository}:{ref}:{new}",
        f"{place.engine}: {ref.removeprefix(BRANCH)} {verb} upstream {new[:9]}, "
        f"{absorbed} commits taken",
        _facts(place, facts),
        happened_at=_when(view.graph, after),
    )


def _absorbed(place: Place, fresh: Sequence[CommitFacts], view: View) -> list[RefNews]:
    """Patches that another fork had first, each told for the nearest fork alone."""
    rest = {triple(commit): commit for commit in fresh}
    news = []
    for other in view.neighbours:
        took = sorted(rest.keys() & other.patches)
        if not took:
            continue
        lines = "\n".join(f"{author}\t{at}\t{subject}" for author, at, subject in took)
        commits = [
            {"author": author, "authored_at": at, "subject": subject, "sha": rest[key].sha}
            for key in took[:LISTED]
            for author, at, subject in [key]
        ]
        for key in took:
            del rest[key]
        facts = {
            "from_repository": other.repository,
            "commits": commits,
            "count": len(took),
            "pr": None,
        }
        digest = hashlib.sha256(lines.encode()).hexdigest()
        news.append(
            RefNews(
                "feature_absorbed",
                f"gh:absorb:{place.repository}:{other.repository}:{digest}",
                f"{place.engine} took {_patches(len(took))} of {other.engine}",
                _facts(place, facts),
            )
        )
    return news


def _facts(place: Place, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"repo_id": place.github_id, "repository": place.repository, **facts}


def _patches(count: int, which: str = "") -> str:
    return f"1 {which}patch" if count == 1 else f"{count} {which}patches"


def _when(graph: Graph, sha: str) -> datetime | None:
    """The committer's word on when; kept as a claim beside our own time of seeing it."""
    if not graph.knows(sha):
        return None
    return datetime.fromtimestamp(graph.commit(sha).committed_at, tz=UTC)
