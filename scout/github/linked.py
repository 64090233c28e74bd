"""Looks at issues and pull requests that people linked, by number; first sight is silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from jobs.db import reading, writing
from jobs.sightings import LinkedIssueRow
from jobs.store import forks
from scout.github import issues, pulls
from scout.github.answers import Answer, Kind
from scout.github.base import Happening, Outcome, Repo, record, unanswered
from scout.github.desk import Desk, Page, iso
from scout.github.governor import Pace, Tier
from scout.github.texts import moment, number

NAME = "github_linked"
PACE = Pace({Tier.CHAIN: 5})
ISSUE, PULL = "issue", "pull"


@dataclass(frozen=True)
class Link:
    """One linked issue or pull request."""

    full_name: str
    number: int
    kind: str = ISSUE
    seen: bool = False

    @property
    def key(self) -> str:
        """Under what the look's state is kept."""
        return f"{NAME}:{self.full_name}#{self.number}"

    @property
    def page(self) -> Page:
        """A pull request's own page tells its head commit, the issue's does not."""
        word = "pulls" if self.kind == PULL else "issues"
        return Page(f"repos/{self.full_name}/{word}/{self.number}", many=False)


def look(desk: Desk, link: Link) -> Outcome:
    """One look; whatever moved is one event."""
    answer = desk.ask(link.page, Tier.CHAIN, conditional=link.seen)
    if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
        return outcome or Outcome()
    if answer.kind is not Kind.PAGE:
        note = "" if answer.kind is Kind.UNCHANGED else f"{link.full_name}#{link.number}: "
        return Outcome(note=f"{note}{answer.reason}" if note else "")
    item = answer.items[0]
    if link.kind == ISSUE and item.get("pull_request") is not None:
        with writing(desk.database) as session:
            row = forks.linked_issue(session, link.full_name, link.number)
            if row is not None:
                row.kind = PULL
                session.add(row)
        return look(desk, Link(link.full_name, link.number, PULL, link.seen))
    repo = _repo(desk, link)
    if isinstance(repo, Outcome):
        return repo
    with writing(desk.database) as session:
        row = forks.linked_issue(session, link.full_name, link.number)
        if row is None:
            return Outcome()
        news = _judge(session, row, repo, item, desk)
        desk.remember(session, link.page, answer)
        return Outcome(record(session, news, source=NAME, repo=repo, now=desk.now()))


def _judge(
    session: Session, row: LinkedIssueRow, repo: Repo, item: Mapping[str, Any], desk: Desk
) -> list[Happening]:
    first = not row.facts.get("before")
    before = row.facts.get("before")
    happening: Happening | None
    if row.kind == PULL:
        pull = pulls.read_pull(item)
        if pull is None:
            return []
        now_is, state, title = [pull.head_sha, pull.state], pull.state, pull.title
        happening = pulls.moved(repo.github_id, repo.full_name, pull, before)
    else:
        issue = issues.read_issue(item)
        if issue is None:
            return []
        now_is, state, title = issues.remembered(issue, before), issue.state, issue.title
        happening = issues.moved(repo.github_id, repo.full_name, issue, before)
    moved_at, known = moment(item.get("updated_at")), row.facts.get("updated") or ""
    updated = iso(moved_at) if moved_at else known
    stirred = bool(known) and known != updated
    if happening is None and stirred:
        happening = _answered(repo, row, state, title, updated, item)
    row.title, row.state = title, state
    row.facts = {**row.facts, "before": now_is, "updated": updated, "repo_id": repo.github_id}
    if happening is not None and not first:
        row.moved_at = desk.now()
    session.add(row)
    return [] if first or happening is None else [happening]


def _answered(
    repo: Repo, row: LinkedIssueRow, state: str, title: str, updated: str, item: Mapping[str, Any]
) -> Happening:
    return Happening(
        "issue_moved",
        f"gh:issue:{repo.github_id}:{row.number}:{state}:moved:{updated}",
        f"{repo.full_name}#{row.number} moved: {title}",
        {
            "number": row.number,
            "state": state,
            "comments": number(item.get("comments")),
            "title": title,
            "note": row.note,
        },
    )


def _repo(desk: Desk, link: Link) -> Repo | Outcome:
    """The repository with its numeric id, asked for once."""
    with reading(desk.database) as session:
        row = forks.linked_issue(session, link.full_name, link.number)
        known = forks.repositories_named(session, link.full_name)
        with_id = [each for each in known if each.github_id is not None]
        if with_id:
            return Repo.of(with_id[-1])
        if row is not None and row.facts.get("repo_id"):
            return Repo(int(row.facts["repo_id"]), link.full_name, Tier.WATCHED)
    answer = desk.ask(Page(f"repos/{link.full_name}", many=False), Tier.CHAIN, conditional=False)
    if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
        return outcome or Outcome()
    repo_id = number(answer.items[0].get("id")) if answer.items else None
    if repo_id is None:
        return Outcome(note=f"{link.full_name}: {answer.reason}")
    return Repo(repo_id, link.full_name, Tier.WATCHED)
