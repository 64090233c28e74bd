"""What moved among pull requests of interest: a head we watch, or a number somebody linked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scout.event_kinds import EventKind
from scout.github.base import Happening, Repo
from scout.github.desk import Page
from scout.github.governor import Pace, Tier
from scout.github.lists import UNTIL, Item, Judged, Seen
from scout.github.texts import NAME_LENGTH, moment, number, part, plain

NAME = "github_pulls"
PACE = Pace({Tier.CHAIN: 5})
REMEMBERED = 300


@dataclass(frozen=True)
class Pull:
    """One pull request; its author and its head repository may have been deleted."""

    number: int
    head_sha: str
    head_repo_id: int | None
    base_ref: str
    state: str
    title: str
    created_at: datetime | None
    updated_at: datetime | None
    merged_at: datetime | None
    closed_at: datetime | None


def read_pull(item: Item) -> Pull | None:
    """The pull request; None where it has no number or no head commit."""
    found, sha = number(item.get("number")), part(item, "head", "sha")
    if found is None or not isinstance(sha, str) or not re.fullmatch(r"[0-9a-f]{40}", sha):
        return None
    merged_at = moment(item.get("merged_at"))
    state = "merged" if merged_at else "closed" if item.get("state") == "closed" else "open"
    return Pull(
        number=found,
        head_sha=sha,
        head_repo_id=number(part(item, "head", "repo", "id")),
        base_ref=plain(part(item, "base", "ref"), NAME_LENGTH),
        state=state,
        title=plain(item.get("title")),
        created_at=moment(item.get("created_at")),
        updated_at=moment(item.get("updated_at")),
        merged_at=merged_at,
        closed_at=moment(item.get("closed_at")),
    )


def first_page(repo: Repo, _cursor: Mapping[str, Any]) -> Page:
    """The most recently updated ones, whatever their state."""
    params = {"state": "all", "sort": "updated", "direction": "desc", "per_page": "50"}
    return Page(f"repositories/{repo.github_id}/pulls", params)


def reached(cursor: Mapping[str, Any], items: Sequence[Item]) -> bool:
    """Whether the page goes back to the last look; the first look reads one page."""
    until = moment(cursor.get(UNTIL))
    if until is None:
        return True
    return any(when <= until for item in items if (when := moment(item.get("updated_at"))))


def judge(seen: Seen) -> Judged:
    """Opened, pushed to, closed or merged since the last look, oldest first."""
    repo, cursor, now = seen.repo, seen.cursor, seen.now
    known: dict[str, list[str]] = dict(cursor.get("pulls", {}))
    until = moment(cursor.get(UNTIL))
    news: list[Happening] = []
    newest = until
    pulls = {pull.number: pull for pull in map(read_pull, seen.items) if pull}
    for pull in sorted(pulls.values(), key=lambda each: each.updated_at or now):
        if pull.updated_at and (newest is None or pull.updated_at > newest):
            newest = pull.updated_at
        if (
            pull.number not in seen.interest.numbers
            and pull.head_repo_id not in seen.interest.repo_ids
        ):
            continue
        before = known.pop(str(pull.number), None)
        known[str(pull.number)] = [pull.head_sha, pull.state]
        happening = moved(repo.github_id, repo.full_name, pull, before)
        if happening and until is not None:
            news.append(happening)
    kept = dict(list(known.items())[-REMEMBERED:])
    return Judged({UNTIL: (newest or now).isoformat(), "pulls": kept}, tuple(news))


def moved(
    repo_id: int, full_name: str, pull: Pull, before: Sequence[str] | None
) -> Happening | None:
    """The event of a pull request that was `before` (head, state), or was not known."""
    if before is not None and list(before) == [pull.head_sha, pull.state]:
        return None
    kind: EventKind
    if pull.state == "merged":
        kind, word = "pr_merged", "merged"
    elif before is None and pull.state == "open":
        kind, word = "pr_opened", "opened"
    else:
        kind = "pr_updated"
        word = pull.state if before and before[1] != pull.state else "updated"
    return Happening(
        kind,
        f"gh:pr:{repo_id}:{pull.number}:{pull.head_sha}:{pull.state}",
        f"{full_name}#{pull.number} {word}: {pull.title}",
        {
            "number": pull.number,
            "head_sha": pull.head_sha,
            "head_repo_id": pull.head_repo_id,
            "base_ref": pull.base_ref,
            "state": pull.state,
            "merged_at": pull.merged_at.isoformat() if pull.merged_at else None,
            "title": pull.title,
        },
        pull.merged_at or pull.closed_at or pull.updated_at,
    )
