"""What is new in a list of sightings; pure, it writes nothing and never drops what is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from scout.event_kinds import EventKind
from scout.sources.base import Sighting

RELEASE: Final = "release"
PACKAGE_CHANGED: Final = "package_changed"


@dataclass(frozen=True)
class News:
    """One sighting worth acting on; `known_commit` is what its label meant before."""

    kind: EventKind
    key: str
    title: str
    sighting: Sighting
    known_commit: str | None = None


def whats_new(engine: str, sightings: Iterable[Sighting], known: Mapping[str, str]) -> list[News]:
    """News of `engine`, oldest revision first, given the commits known by label.

    A label that now stands for another file is told and becomes no revision: somebody replaced
    what was already judged. A label that is no longer seen is no news at all.
    """
    news = []
    told = dict(known)
    commits = set(known.values())
    for sighting in sorted(sightings, key=lambda seen: (seen.order_key, seen.label)):
        before = told.get(sighting.label)
        if sighting.commit in commits:
            continue
        commits.add(sighting.commit)
        if before is None:
            told[sighting.label] = sighting.commit
            kind: EventKind = RELEASE
            title = f"{engine} {sighting.label} released"
        else:
            kind = PACKAGE_CHANGED
            title = (
                f"{engine} {sighting.label} is another file now: sha256 {before[:12]} was known, "
                f"{sighting.commit[:12]} is offered"
            )
        key = f"{kind}:{engine}:{sighting.label}:{sighting.commit}"
        news.append(News(kind, key, title, sighting, before))
    return news
