"""What a repository's JSON says, as a bounded value, and what two of them differ in; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from jobs.sightings import RepositoryRow
from scout.event_kinds import EventKind
from scout.github.base import Happening
from scout.github.texts import (
    DESCRIPTION_LENGTH,
    NAME_LENGTH,
    identity,
    moment,
    number,
    part,
    plain,
)
from scout.github.texts import repo_name as checked_name
from scout.ref_values import names_of

AWAY = ("gone", "blocked")
GONE_AFTER_MISSES = 3
GONE_AFTER = timedelta(hours=24)
LARGEST_SKEW = timedelta(days=1)
"""By as much our clock may be behind GitHub's."""


@dataclass(frozen=True)
class RepositoryFacts:
    """One repository as GitHub describes it; the owner may have been deleted."""

    github_id: int
    full_name: str
    owner: str
    default_branch: str | None
    description: str
    stars: int
    forks_count: int
    archived: bool
    disabled: bool
    size_kib: int | None
    created_at: datetime | None
    pushed_at: datetime | None
    parent_id: int | None = None
    root_id: int | None = None

    def believed(self, now: datetime) -> RepositoryFacts:
        """Without times that have not come yet: they are not known, and stay as they were."""
        return replace(
            self, created_at=_come(self.created_at, now), pushed_at=_come(self.pushed_at, now)
        )


def _come(found: datetime | None, now: datetime) -> datetime | None:
    return found if found and found - now <= LARGEST_SKEW else None


def read_facts(item: Mapping[str, Any]) -> RepositoryFacts | None:
    """The facts; None where there is no id, or a name that git could not be asked for.

    Nothing is its own parent, whatever a reply says.
    """
    github_id, full_name = identity(item.get("id")), checked_name(item.get("full_name"))
    if github_id is None or full_name is None:
        return None
    parent_id = identity(part(item, "parent", "id"))
    return RepositoryFacts(
        github_id=github_id,
        full_name=full_name,
        owner=plain(part(item, "owner", "login"), NAME_LENGTH),
        default_branch=plain(item.get("default_branch"), NAME_LENGTH) or None,
        description=plain(item.get("description"), DESCRIPTION_LENGTH),
        stars=number(item.get("stargazers_count")) or 0,
        forks_count=number(item.get("forks_count")) or 0,
        archived=item.get("archived") is True,
        disabled=item.get("disabled") is True,
        size_kib=number(item.get("size")),
        created_at=moment(item.get("created_at")),
        pushed_at=moment(item.get("pushed_at")),
        parent_id=None if parent_id == github_id else parent_id,
        root_id=identity(part(item, "source", "id")),
    )


@dataclass(frozen=True)
class Before:
    """What a row said before a look."""

    full_name: str
    default_branch: str | None
    archived: bool
    state: str


def called(row: RepositoryRow) -> str:
    """What event keys call a repository: GitHub's number, or our own until that is known."""
    return names_of(row.id or 0, row.github_id)[0]


def changes(before: Before, after: RepositoryFacts, *, moved: bool = False) -> list[Happening]:
    """Renamed, archived, returned, another default branch: a repository's own events."""
    repo, name = str(after.github_id), after.full_name
    found = []
    if before.full_name != name:
        found.append(
            _change(
                repo,
                "repo_renamed",
                name,
                f"{before.full_name} is called {name} now",
                {"old_name": before.full_name, "new_name": name, "status": 301 if moved else 200},
            )
        )
    if before.archived != after.archived:
        kind: EventKind = "repo_archived" if after.archived else "repo_unarchived"
        title = f"{name} was {kind.removeprefix('repo_')}"
        when = after.pushed_at.isoformat() if after.pushed_at else "never pushed"
        found.append(_change(repo, kind, when, title, {}))
    if before.state in AWAY:
        found.append(returned(repo, name, was=before.state, pushed_at=after.pushed_at))
    if before.default_branch and after.default_branch not in (None, before.default_branch):
        title = f"{name} made {after.default_branch} its default branch"
        facts = {"old_branch": before.default_branch, "new_branch": after.default_branch}
        found.append(_change(repo, "repo_default_changed", str(after.default_branch), title, facts))
    return found


def returned(repo: str, name: str, *, was: str, pushed_at: datetime | None) -> Happening:
    """The repository can be seen again."""
    when = pushed_at.isoformat() if pushed_at else "never pushed"
    return _change(repo, "repo_returned", when, f"{name} is there again", {"was": was})


def gone(repo: str, name: str, since: datetime) -> Happening:
    """The repository has been missing for long enough."""
    title = f"{name} is gone: missing since {since:%Y-%m-%d %H:%M} UTC"
    return _change(repo, "repo_gone", since.isoformat(), title, {"status": 404})


def blocked(repo: str, name: str, status: int | None, now: datetime) -> Happening:
    """GitHub shows the repository to nobody."""
    title = f"{name} is blocked by GitHub"
    return _change(repo, "repo_blocked", f"{now:%Y-%m-%d}", title, {"status": status})


def is_gone(misses: int, since: datetime, now: datetime) -> bool:
    """Whether so many misses over that time mean gone; one never does."""
    return misses >= GONE_AFTER_MISSES and now - since >= GONE_AFTER


def _change(
    repo: str, kind: EventKind, value: str, title: str, facts: Mapping[str, Any]
) -> Happening:
    change = kind.removeprefix("repo_")
    return Happening(kind, f"gh:repo:{repo}:{change}:{value}", title, {"change": change, **facts})
