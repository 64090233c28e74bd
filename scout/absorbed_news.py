"""Work that a push took from elsewhere: another fork's patches, upstream's pull requests; pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jobs.git_history import CommitFacts
from jobs.terminal import counted
from scout.graph import Graph, Triple, triple
from scout.ref_values import Neighbour, Place, RefNews, Upstream, View, keys_of

LISTED = 50  # commits, authors or paths that an event carries
_NUMBER = re.compile(r"\(#(\d{1,9})\)$")


def absorbed_news(
    place: Place, fresh: Sequence[CommitFacts], picked: Sequence[CommitFacts], view: View
) -> list[RefNews]:
    """Patches that another fork had first, each told for the nearest fork alone, and `picked`
    pull requests of upstream."""
    rest = {triple(commit): commit for commit in fresh}
    news = []
    for other in view.neighbours:
        took = {key: rest.pop(key) for key in sorted(rest.keys() & other.patches)}
        if took:
            title = (
                f"{place.engine} took {counted(len(took), 'patch', 'patches')} of {other.engine}"
            )
            news.append(_absorbed(place, took, other, title))
    if picked and view.upstream is not None:
        root = view.upstream
        took = {triple(commit): commit for commit in picked}
        what = counted(len(took), "pull request")
        title = f"{place.engine} picked {what} of {root.engine}"
        news.append(_absorbed(place, took, root, title))
    return news


def _absorbed(
    place: Place, took: Mapping[Triple, CommitFacts], source: Neighbour | Upstream, title: str
) -> RefNews:
    ordered = sorted(took)
    lines = "\n".join(f"{author}\t{at}\t{subject}" for author, at, subject in ordered)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    key, former = keys_of("absorb", digest, place.names, source.names)
    numbers = sorted({number for _, _, subject in took if (number := _pull_request(subject))})
    facts = {
        "from_repo_id": source.github_id,
        "from_repository": source.repository,
        "commits": [
            {
                "author": author,
                "authored_at": at,
                "subject": subject,
                "sha": took[author, at, subject].sha,
                "pr": _pull_request(subject),
            }
            for author, at, subject in ordered[:LISTED]
        ],
        "count": len(took),
        "pr": numbers[0] if len(numbers) == 1 else None,
        "prs": numbers[:LISTED],
    }
    return RefNews("feature_absorbed", key, title, facts_of(place, facts), former=former)


def _pull_request(subject: str) -> int | None:
    """The number at the end of a squash merge's subject."""
    found = _NUMBER.search(subject)
    return int(found[1]) if found else None


def facts_of(place: Place, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts with the repository they are about: GitHub's number, and our row's."""
    return {"repo_id": place.github_id, "repository": place.repository, **facts}


def when(graph: Graph, sha: str) -> datetime | None:
    """The committer's word on when; kept as a claim beside our own time of seeing it."""
    if not graph.knows(sha):
        return None
    return datetime.fromtimestamp(graph.commit(sha).committed_at, tz=UTC)
