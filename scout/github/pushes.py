"""Reads which forks were pushed to last, by GraphQL; it finds movement, git says what moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.db import reading, writing
from jobs.store import source_states
from scout.github import forks as fork_lists
from scout.github.answers import Answer, Kind
from scout.github.base import Outcome, Repo, unanswered
from scout.github.desk import Desk
from scout.github.governor import Pace, Tier
from scout.github.repository_facts import RepositoryFacts
from scout.github.texts import (
    DESCRIPTION_LENGTH,
    NAME_LENGTH,
    identity,
    moment,
    not_after,
    number,
    part,
    plain,
)
from scout.github.texts import repo_name as checked_name

NAME = "github_pushes"
PACE = Pace({Tier.CHAIN: 15, Tier.WATCHED: 15, Tier.CANDIDATE: 60})
TIER = Tier.CANDIDATE
"""Whose place in the queue for quota it takes, whatever the parent is."""
PER_PAGE = 100
SMALLER_PER_PAGE = 25
SMALLER_AFTER_FAILURES = 2
MOST_PAGES = 10
"""What lies behind them the daily count of all forks finds."""

QUERY = """\
query Pushes($owner: String!, $name: String!, $first: Int!, $after: String) {
  rateLimit { cost limit remaining resetAt }
  repository(owner: $owner, name: $name) {
    databaseId
    forks(first: $first, after: $after, orderBy: {field: PUSHED_AT, direction: DESC}) {
      nodes {
        databaseId nameWithOwner pushedAt createdAt stargazerCount forkCount
        isArchived isDisabled description defaultBranchRef { name target { oid } }
      }
      pageInfo { hasNextPage endCursor }
    }
  }
}
"""


@dataclass(frozen=True)
class Pushed:
    """One page of forks, newest push first; `after` leads to the next."""

    forks: tuple[RepositoryFacts, ...]
    after: str | None

    @property
    def oldest(self) -> datetime | None:
        """The push that lies furthest back."""
        return min((each.pushed_at for each in self.forks if each.pushed_at), default=None)


def look(desk: Desk, repo: Repo) -> Outcome:
    """Read pages until the newest push of the last look; one that cannot be had counts for none.

    Nothing before the first whole census: a fork nobody knows would not be new.
    """
    key = f"{NAME}:{repo.github_id}"
    with reading(desk.database) as session:
        if not fork_lists.counted(session, repo):
            return Outcome()
        row = source_states.source_state(session, key)
        since = not_after(moment(row.cursor.get("pushed_at")) if row else None, desk.now())
        failures = row.failures if row else 0
    size = PER_PAGE if failures < SMALLER_AFTER_FAILURES else SMALLER_PER_PAGE
    found: list[RepositoryFacts] = []
    after: str | None = None
    for _ in range(MOST_PAGES):
        answer = desk.query(QUERY, _variables(repo, size, after), TIER)
        if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
            return outcome or Outcome()
        page = read_page(answer.items[0], repo)
        if page is None:
            reason = "another repository answered, or only a part of it"
            return Outcome(failed=Answer(Kind.NOT_KNOWN, answer.status, reason=reason))
        found, after = [*found, *page.forks], page.after
        if since is None or after is None or page.oldest is None or page.oldest <= since:
            break
    newest = max((each.pushed_at for each in found if each.pushed_at), default=since)
    unique = {each.github_id: each for each in reversed(found)}
    with writing(desk.database) as session:
        now = desk.now()
        newest = not_after(newest, now)
        new = fork_lists.keep_all(session, repo, unique.values(), source=NAME, told=True, now=now)
        state = source_states.lock_source_state(session, key, now)
        state.cursor = {"pushed_at": newest.isoformat()} if newest else {}
    return Outcome(new)


def read_page(data: Mapping[str, Any], repo: Repo) -> Pushed | None:
    """The page; None where it is not whole, or not of this repository.

    A fork that GitHub shows as null, or without its times, stays as it is known.
    """
    nodes = part(data, "repository", "forks", "nodes")
    more = part(data, "repository", "forks", "pageInfo", "hasNextPage")
    if number(part(data, "repository", "databaseId")) != repo.github_id:
        return None
    if not isinstance(nodes, list) or not isinstance(more, bool):
        return None
    after = part(data, "repository", "forks", "pageInfo", "endCursor")
    if more and not isinstance(after, str):
        return None
    forks = tuple(facts for facts in map(read_node, nodes) if facts)
    return Pushed(forks, after if more else None)


def read_node(node: Any) -> RepositoryFacts | None:
    """One fork as a list of REST would tell it; its size is not asked for."""
    github_id, name = identity(part(node, "databaseId")), checked_name(part(node, "nameWithOwner"))
    pushed_at, created_at = moment(part(node, "pushedAt")), moment(part(node, "createdAt"))
    if github_id is None or name is None or pushed_at is None or created_at is None:
        return None
    return RepositoryFacts(
        github_id=github_id,
        full_name=name,
        owner=name.partition("/")[0],
        default_branch=plain(part(node, "defaultBranchRef", "name"), NAME_LENGTH) or None,
        description=plain(part(node, "description"), DESCRIPTION_LENGTH),
        stars=number(part(node, "stargazerCount")) or 0,
        forks_count=number(part(node, "forkCount")) or 0,
        archived=part(node, "isArchived") is True,
        disabled=part(node, "isDisabled") is True,
        size_kib=None,
        created_at=created_at,
        pushed_at=pushed_at,
    )


def _variables(repo: Repo, size: int, after: str | None) -> dict[str, Any]:
    owner, _, name = repo.full_name.partition("/")
    return {"owner": owner, "name": name, "first": size, "after": after}
