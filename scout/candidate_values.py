"""A fork that nobody builds, as a look at it needs it, and whether it is time for one; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from jobs.sightings import RepositoryRow, SourceStateRow
from scout.github.governor import Tier
from scout.sources.base import RefsSeen
from scout.yardsticks import Member

SOURCE = "candidate"
WATCHED_PACE = timedelta(minutes=15)


class Source(Protocol):
    """How a candidate's refs are seen; `scout.sources.git_refs` is one."""

    def look_at_candidate(
        self,
        repo: str,
        *,
        network: Path,
        number: int,
        known: Set[str],
        tick: Callable[[], None],
        token: SecretStr | None = None,
    ) -> RefsSeen:
        """All refs now; fetched where a branch stands at a commit that is not `known`."""


@dataclass(frozen=True)
class Candidate:
    """A fork to be looked at; `parent` is the repository row of the one GitHub names.

    `named_at` is when GitHub last named its number so.
    """

    repository: int
    github_id: int
    full_name: str
    root: str
    default_branch: str | None = None
    pushed_at: datetime | None = None
    parent: Member | None = None
    parent_name: str = ""
    refs: Mapping[str, str] = field(default_factory=dict)
    named_at: datetime | None = None

    @property
    def key(self) -> str:
        """Under what the look's state is kept."""
        return key_of(self.repository)


def due(
    rows: Sequence[RepositoryRow], states: Mapping[str, SourceStateRow], *, now: datetime
) -> list[RepositoryRow]:
    """Rows that moved since their last look, in order; watched forks also by their pace."""
    found = []
    for row in rows:
        state = states.get(key_of(row.id or 0))
        if state is None or "looked_at" not in state.cursor:
            late = state is None or state.retry_at is None or state.retry_at <= now
        elif state.retry_at is not None and state.retry_at > now:
            late = False
        else:
            late = moved(row.pushed_at, state.cursor.get("pushed_at")) or (
                row.tier <= Tier.WATCHED
                and now - datetime.fromisoformat(state.cursor["looked_at"]) >= WATCHED_PACE
            )
        if late:
            found.append(row)
    return found


def in_turn(
    rows: Sequence[RepositoryRow],
    states: Mapping[str, SourceStateRow],
    *,
    without: Sequence[RepositoryRow],
) -> list[RepositoryRow]:
    """The other rows: closest tier first, and whoever was looked at longest ago."""
    left_out = {row.id for row in without}

    def turn(row: RepositoryRow) -> tuple[int, datetime]:
        return row.tier, states[key_of(row.id or 0)].updated_at

    return sorted((row for row in rows if row.id not in left_out), key=turn)


def key_of(repository: int) -> str:
    """Under what is remembered of a look at a repository."""
    return f"{SOURCE}:{repository}"


def moved(pushed_at: datetime | None, known: str | None) -> bool:
    """Whether somebody pushed since then, as far as GitHub's list tells."""
    if pushed_at is None:
        return False
    return known is None or pushed_at > datetime.fromisoformat(known)
