"""Tells when a push changed what an engine can do; reads at most four sources at three commits."""

from __future__ import annotations

import hashlib

from scout.absorbed_news import facts_of
from scout.capability import SOURCES, Capability, read_capability
from scout.history import History
from scout.ref_values import Place, RefNews, keys_of


def capability_news(place: Place, push: RefNews, history: History, *, url: str) -> RefNews | None:
    """The event, or None where nothing new is understood beyond the fork's own base.

    Sources that did not change are not read at all.
    """
    before, after = push.replaces, push.revision
    lost = push.facts.get("forced", False) is None
    if before is None or after is None or lost:
        return None
    base = push.facts.get("merge_base") or push.facts.get("new_merge_base") or before
    wanted = [(commit, path) for commit in (before, after, base) for path in SOURCES]
    ids = history.file_ids(wanted)
    if all(ids.get((before, path)) == ids.get((after, path)) for path in SOURCES):
        return None
    texts = history.read_files(url, wanted)
    was, now, base_can = (
        read_capability({path: texts.get((commit, path), "") for path in SOURCES})
        for commit in (before, after, base)
    )
    if now.beyond(base_can) == was.beyond(base_can):
        return None
    added = now.beyond(was)
    gone = was.beyond(now)
    return _news(place, after, now.beyond(base_can), added, lost=bool(gone.words()))


def _news(
    place: Place, after: str, added: Capability, latest: Capability, *, lost: bool
) -> RefNews:
    words = added.words()
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
    told = [word.partition(":")[2] for word in latest.words()]
    shown = ", ".join(told[:5]) + (f" and {len(told) - 5} more" if len(told) > 5 else "")
    key, former = keys_of("cap", digest, place.names)
    facts = {"after": after, **latest.added(), "new": latest.words()[:200]}
    return RefNews(
        "fork_capability_changed",
        key,
        f"{place.engine} {_becomes(shown, lost=lost)}",
        facts_of(place, facts),
        former=former,
    )


def _becomes(shown: str, *, lost: bool) -> str:
    if shown:
        return f"understands {shown} now"
    return "understands less" if lost else "stands apart from its base in other ways than before"
