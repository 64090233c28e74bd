"""What moved among issues: closed and opened again; a pull request is no issue here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scout.event_kinds import EventKind
from scout.github.base import Happening, Repo
from scout.github.desk import Page, iso
from scout.github.governor import Pace, Tier
from scout.github.lists import UNTIL, Item, Judged, Seen
from scout.github.texts import moment, number, part, plain

NAME = "github_issues"
PACE = Pace({Tier.CHAIN: 5})
REMEMBERED = 500


@dataclass(frozen=True)
class Issue:
    """One issue; who wrote it may have been deleted."""

    number: int
    state: str
    state_reason: str
    title: str
    comments: int
    closed_at: datetime | None
    updated_at: datetime | None
    is_pull: bool


def read_issue(item: Item) -> Issue | None:
    """The issue; None where it has no number."""
    found = number(item.get("number"))
    if found is None:
        return None
    return Issue(
        number=found,
        state="closed" if item.get("state") == "closed" else "open",
        state_reason=plain(item.get("state_reason"), 40),
        title=plain(item.get("title")),
        comments=number(item.get("comments")) or 0,
        closed_at=moment(item.get("closed_at")),
        updated_at=moment(item.get("updated_at")),
        is_pull=part(item, "pull_request") is not None,
    )


def first_page(repo: Repo, cursor: Mapping[str, Any]) -> Page:
    """What was updated since the last look; the first look reads one page."""
    params = {"state": "all", "sort": "updated", "direction": "desc", "per_page": "100"}
    if until := moment(cursor.get(UNTIL)):
        params["since"] = iso(until)
    return Page(f"repositories/{repo.github_id}/issues", params)


def reached(cursor: Mapping[str, Any], _items: Sequence[Item]) -> bool:
    """`since` bounds the list, so all of it is read; the first look reads one page."""
    return not cursor


def judge(seen: Seen) -> Judged:
    """Closed or opened again since the last look, oldest first."""
    repo, cursor, now = seen.repo, seen.cursor, seen.now
    known: dict[str, list[str]] = dict(cursor.get("issues", {}))
    until = moment(cursor.get(UNTIL))
    newest = until
    news: list[Happening] = []
    issues = {issue.number: issue for issue in map(read_issue, seen.items) if issue}
    for issue in sorted(issues.values(), key=lambda each: each.updated_at or now):
        if issue.updated_at and (newest is None or issue.updated_at > newest):
            newest = issue.updated_at
        if issue.is_pull:
            continue
        before = known.pop(str(issue.number), None)
        known[str(issue.number)] = remembered(issue, before)
        happening = moved(repo.github_id, repo.full_name, issue, before)
        if happening and until is not None and _since(issue, until, before):
            news.append(happening)
    kept = dict(list(known.items())[-REMEMBERED:])
    return Judged({UNTIL: (newest or now).isoformat(), "issues": kept}, tuple(news))


def remembered(issue: Issue, before: Sequence[str] | None) -> list[str]:
    """State and the last closing, which an issue that was opened again no longer tells."""
    closed = issue.closed_at.isoformat() if issue.closed_at else (before[1] if before else "")
    return [issue.state, closed]


def moved(
    repo_id: int, full_name: str, issue: Issue, before: Sequence[str] | None
) -> Happening | None:
    """The event of an issue that was `before` (state, last closing), or was not known."""
    if before is not None and list(before) == remembered(issue, before):
        return None
    state, closing = remembered(issue, before)
    if state == "open" and before is None and issue.state_reason != "reopened":
        return None
    kind: EventKind = "issue_closed" if state == "closed" else "issue_reopened"
    word = kind.removeprefix("issue_")
    return Happening(
        kind,
        f"gh:issue:{repo_id}:{issue.number}:{state}:{closing}",
        f"{full_name}#{issue.number} {word}: {issue.title}",
        {
            "number": issue.number,
            "state": issue.state,
            "state_reason": issue.state_reason,
            "closed_at": issue.closed_at.isoformat() if issue.closed_at else None,
            "title": issue.title,
            "comments": issue.comments,
        },
        issue.closed_at or issue.updated_at,
    )


def _since(issue: Issue, until: datetime, before: Sequence[str] | None) -> bool:
    """A comment moves an issue that was closed long ago; its closing is no news then."""
    if before is not None or issue.state == "open":
        return True
    return issue.closed_at is not None and issue.closed_at >= until
