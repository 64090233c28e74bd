"""Every fork with all that its rank is made of, put together from rows; it prints nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session

from jobs.sightings import RepositoryRow
from jobs.store import catalog, forks, source_states, standings
from scout.github import releases
from scout.github.search import UNLINKED
from scout.mention_watch import read_mentions
from scout.ranking import Fork, GitFacts, Rank, order, rank


@dataclass(frozen=True)
class RankedFork:
    """A fork's row, what git knows of it and since when, who names it, and its rank."""

    row: RepositoryRow
    rank: Rank
    git: GitFacts | None = None
    looked_at: datetime | None = None
    release: str = ""
    latest: str = ""
    named_in: tuple[str, ...] = ()
    parent_name: str = ""
    engine: str = ""

    @property
    def is_copy(self) -> bool:
        """No fork on paper: found by its name."""
        return bool(self.row.facts.get(UNLINKED))

    def as_json(self) -> dict[str, Any]:
        """All facts for programs."""
        row = self.row
        return {
            "repo_id": row.github_id,
            "full_name": row.full_name,
            "parent_id": row.parent_github_id,
            "parent": self.parent_name,
            "unlinked": self.is_copy,
            "engine": self.engine,
            "depth": row.depth,
            "tier": row.tier,
            "stars": row.stars,
            "created_at": row.created_at,
            "pushed_at": row.pushed_at,
            "description": row.description,
            "archived": row.archived,
            "state": row.state,
            "human_release": self.release,
            "latest_release": self.latest,
            "named_in": list(self.named_in),
            "git": asdict(self.git) if self.git else None,
            "git_looked_at": self.looked_at,
            **asdict(self.rank),
        }


def ranked_forks(
    session: Session, rows: Sequence[RepositoryRow], *, now: datetime
) -> list[RankedFork]:
    """These repositories with their ranks, in the order given."""
    above = {row.parent_github_id for row in rows if row.parent_github_id}
    known = {number: row.full_name for number, row in forks.known_ids(session, above).items()}
    engines = {row.id: row.name for row in catalog.engines(session)}
    looks = standings.standings(session)
    mentions = read_mentions(session)
    released = source_states.source_states(session, f"{releases.NAME}:")
    found = []
    for row in rows:
        kept = looks[row.id].git if row.id in looks else {}
        state = released.get(f"{releases.NAME}:{row.github_id}")
        git = GitFacts.read(kept)
        release = str(state.cursor.get("human") or "") if state else ""
        release = release or (git.human_tag if git else "")
        places = tuple(mentions.get(row.full_name.lower(), ()))
        fork = _fork(row, human_release=bool(release), references=len(places))
        found.append(
            RankedFork(
                row=row,
                rank=rank(fork, git, now=now),
                git=git,
                looked_at=_moment(kept.get("looked_at")),
                release=release,
                latest=str(state.cursor.get("latest") or "") if state else "",
                named_in=places,
                parent_name=known.get(row.parent_github_id or 0, ""),
                engine=engines.get(row.engine_id, ""),
            )
        )
    return found


def best_first(found: Sequence[RankedFork]) -> list[RankedFork]:
    """The most promising first, those shut out last."""
    return sorted(found, key=lambda each: order(each.rank))


def _fork(row: RepositoryRow, *, human_release: bool, references: int) -> Fork:
    return Fork(
        full_name=row.full_name,
        description=row.description,
        stars=row.stars,
        created_at=row.created_at,
        pushed_at=row.pushed_at,
        archived=row.archived,
        disabled=row.disabled,
        human_release=human_release,
        references=references,
        size_changed=_size_changed(row.facts),
    )


def _size_changed(facts: Mapping[str, Any]) -> bool:
    """True also where it is not known."""
    first, now = facts.get("first_size_kib"), facts.get("size_kib")
    return first is None or now is None or first != now


def _moment(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
