"""What happened between two looks at a repository's branches and tags; pure, it stores nothing.

Names and texts in the facts are strangers': bounded, printable, and nothing but data.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from jobs.git_network import TAG
from scout.absorbed_news import facts_of, when
from scout.branch_news import branch_news, stale_news
from scout.push_news import push_news
from scout.ref_values import Place, RefNews, View, keys_of

AUTO_BUILD = re.compile(r"(.+-)?b\d+(-[0-9a-f]{7})?")
"""How CI names the tag of a build; what people tag looks different."""

TOLD_LIMIT = 200  # events of one repository at one look; more is no news but a flood


def ref_news(
    place: Place,
    known: Mapping[str, str],
    seen: Mapping[str, str],
    view: View,
    *,
    lost: Mapping[str, str] = MappingProxyType({}),
) -> list[RefNews]:
    """News of a repository, watched branches first; a repository seen first has none.

    `lost` are branches that were there once, and the commits they were last seen at.

    At most `TOLD_LIMIT` of them, however many refs moved; one more says how many refs were left.
    """
    if not known and not lost:
        return []
    moved = [
        ref
        for ref in {**known, **seen}
        if ref not in place.elsewhere and _is_news(ref, known.get(ref), seen.get(ref))
    ]
    moved.sort(key=lambda ref: (ref not in place.watched, ref.startswith(TAG), ref))
    news: list[RefNews] = []
    for at, ref in enumerate(moved):
        found = _one(place, ref, known.get(ref), seen.get(ref), view, lost.get(ref))
        if len(news) + len(found) > TOLD_LIMIT:
            return [*news, _flood(place, moved, known, seen, told=at)]
        news += found
    return [*news, *stale_news(place, known, seen, view)]


def _is_news(ref: str, before: str | None, after: str | None) -> bool:
    """Tags of builds are cleaned away all the time: a deleted one is no news."""
    return before != after and not (after is None and ref.startswith(TAG))


def _one(
    place: Place, ref: str, before: str | None, after: str | None, view: View, lost: str | None
) -> list[RefNews]:
    if ref.startswith(TAG):
        return [_tag(place, ref, before, after or "", view)]
    if before is None or after is None:
        return branch_news(place, ref, before, after, view, lost)
    return push_news(place, ref, before, after, view)


def _flood(
    place: Place,
    moved: Sequence[str],
    known: Mapping[str, str],
    seen: Mapping[str, str],
    *,
    told: int,
) -> RefNews:
    lines = "\n".join(f"{ref}\t{known.get(ref)}\t{seen.get(ref)}" for ref in moved)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    key, former = keys_of("flood", digest, place.names)
    left = len(moved) - told
    return RefNews(
        "refs_flood",
        key,
        f"{place.engine}: {len(moved)} branches and tags moved at once, {left} of them not told",
        facts_of(place, {"moved": len(moved), "told": told, "not_told": left}),
        former=former,
    )


def _tag(place: Place, ref: str, before: str | None, after: str, view: View) -> RefNews:
    name = ref.removeprefix(TAG)
    key, former = keys_of("tag", f"{name}:{after}", place.names)
    facts = {
        "tag": name,
        "target_oid": after,
        "old_oid": before,
        "auto_build": bool(AUTO_BUILD.fullmatch(name)),
    }
    verb = "moved" if before else "created"
    return RefNews(
        "tag_moved" if before else "tag_created",
        key,
        f"{place.engine}: tag {name} {verb} at {after[:9]}",
        facts_of(place, facts),
        happened_at=None if before else when(view.graph, after),
        former=former,
    )
