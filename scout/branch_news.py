"""What becomes of the branches that are to be built: gone, back, or left behind; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from jobs.git_names import full_name, short_name
from scout.absorbed_news import facts_of, when
from scout.push_news import push_news
from scout.ref_values import Place, RefNews, View, keys_of

STALE_DAYS = 30
"""A branch that long behind the default one is no pause any more."""


def branch_news(
    place: Place, ref: str, before: str | None, after: str | None, view: View, lost: str | None
) -> list[RefNews]:
    """A branch that came or went; a watched one that comes back is told from where it was `lost`.

    A watched branch that appears is built; what it stands on is not told as new.
    """
    oid, gone = before or after or "", after is None
    is_watched = ref in place.watched
    verb, end = ("deleted", "del") if gone else ("created", "new")
    key, former = keys_of("branch", f"{ref}:{oid}:{end}", place.names)
    name = short_name(ref)
    title = f"{place.engine}: branch {name} {verb} at {oid[:9]}"
    if is_watched and gone:
        title = f"{place.engine}: branch {name}, which is to be built, was deleted at {oid[:9]}"
    facts: dict[str, Any] = {"ref": ref, "oid": oid, "watched": is_watched}
    came = RefNews(
        "branch_deleted" if gone else "branch_created",
        key,
        title,
        facts_of(place, facts),
        revision=oid if is_watched and not gone else None,
        happened_at=None if gone else when(view.graph, oid),
        former=former,
    )
    if not is_watched or after is None or lost is None or lost == after:
        return [came]
    back = f"{place.engine}: branch {name} is there again at {oid[:9]}"
    return [*push_news(place, ref, lost, after, view), replace(came, title=back, revision=None)]


def stale_news(
    place: Place, known: Mapping[str, str], seen: Mapping[str, str], view: View
) -> Iterator[RefNews]:
    """Watched branches that stand still while the default one moves on, once for each head."""
    default = full_name(place.default_branch) if place.default_branch else ""
    head = seen.get(default)
    if head is None or default in place.watched or known.get(default) == head:
        return
    for ref in sorted(place.watched & seen.keys()):
        oid = seen[ref]
        if not (view.graph.knows(oid) and view.graph.knows(head)):
            continue
        at, moved_at = (view.graph.commit(sha).committed_at for sha in (oid, head))
        days = (moved_at - at) // 86_400
        if days < STALE_DAYS:
            continue
        key, former = keys_of("stale", f"{ref}:{oid}", place.names)
        since = datetime.fromtimestamp(at, tz=UTC)
        yield RefNews(
            "branch_stale",
            key,
            f"{place.engine}: branch {short_name(ref)} stands still since {since:%Y-%m-%d} while "
            f"{place.default_branch}, the default one, moved on; look at its branches in the "
            "watch list",
            facts_of(place, {"ref": ref, "oid": oid, "default": default, "days": days}),
            former=former,
        )


def default_news(place: Place, before: str | None, after: str | None) -> list[RefNews]:
    """Another default branch than the one that was known."""
    if before is None or after is None or before == after:
        return []
    key, former = keys_of("repo", f"default_changed:{after}", place.names)
    facts = {"change": "default_changed", "old_branch": before, "new_branch": after}
    title = f"{place.engine}: {after} is the default branch now, it was {before}"
    return [RefNews("repo_default_changed", key, title, facts_of(place, facts), former=former)]
