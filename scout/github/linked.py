"""Looks at issues and pull requests that people linked, by number; first sight is silent.

A link is bound to GitHub's number of its repository: the name may pass to somebody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlmodel import Session

from jobs.db import reading, writing
from jobs.sightings import LinkedIssueRow
from jobs.store import forks
from scout.github import issues, pulls
from scout.github.answers import Answer, Kind
from scout.github.base import Happening, Outcome, Repo, record, unanswered
from scout.github.blocks import note_blocked
from scout.github.desk import Desk, Held, Page, iso
from scout.github.governor import Pace, Tier
from scout.github.texts import identity, moment, number, part

NAME = "github_linked"
PACE = Pace({Tier.CHAIN: 5})
ISSUE, PULL = "issue", "pull"


@dataclass(frozen=True)
class Link:
    """One linked issue or pull request; `repo_id` once it is bound."""

    full_name: str
    number: int
    kind: str = ISSUE
    seen: bool = False
    repo_id: int | None = None

    @classmethod
    def of(cls, row: LinkedIssueRow) -> Link:
        """The value of a row."""
        seen, repo_id = bool(row.facts.get("before")), row.facts.get("repo_id")
        return cls(row.full_name, row.number, row.kind, seen, int(repo_id) if repo_id else None)

    @property
    def key(self) -> str:
        """Under what the look's state is kept."""
        return f"{NAME}:{self.full_name}#{self.number}"

    def page(self, repo: Repo) -> Page:
        """A pull request's own page tells its head commit, the issue's does not."""
        word = "pulls" if self.kind == PULL else "issues"
        return Page(f"repositories/{repo.github_id}/{word}/{self.number}", many=False)


def look(desk: Desk, link: Link) -> Outcome:
    """One look; whatever moved is one event."""
    repo = _repo(desk, link)
    if isinstance(repo, Outcome):
        return repo
    link, answer = _ask(desk, link, repo)
    if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
        return outcome or Outcome()
    if answer.kind is not Kind.PAGE:
        new = note_blocked(desk, repo, answer, source=NAME)
        note = f"{link.full_name}#{link.number}: {answer.reason}"
        return Outcome(new, note="" if answer.kind is Kind.UNCHANGED else note)
    item = answer.items[0]
    if number(item.get("number")) != link.number:
        return Outcome(failed=Answer(Kind.NOT_KNOWN, 200, reason="another issue answered"))
    with writing(desk.database) as session:
        row = forks.linked_issue(session, link.full_name, link.number)
        if row is None:
            return Outcome()
        news = _judge(session, row, link, repo, item, desk)
        desk.remember(session, link.page(repo), answer)
        return Outcome(record(session, news, source=NAME, repo=repo, now=desk.now()))


def _ask(desk: Desk, link: Link, repo: Repo) -> tuple[Link, Answer | Held]:
    """The page that says what it is. An issue that is said to be a pull request is one only where
    that has a page; a pull request without one is asked for as an issue again."""
    answer = desk.ask(link.page(repo), Tier.CHAIN, conditional=link.seen)
    if not isinstance(answer, Answer):
        return link, answer
    is_said_pull = answer.kind is Kind.PAGE and part(answer.items[0], "pull_request") is not None
    if link.kind == ISSUE and is_said_pull:
        other = replace(link, kind=PULL)
        found = desk.ask(other.page(repo), Tier.CHAIN, conditional=False)
        is_one = isinstance(found, Held) or found.kind is not Kind.MISSING
        return (other, found) if is_one else (link, answer)
    if link.kind == PULL and answer.kind is Kind.MISSING:
        other = replace(link, kind=ISSUE)
        found = desk.ask(other.page(repo), Tier.CHAIN, conditional=False)
        if isinstance(found, Answer) and found.kind is Kind.PAGE:
            return other, found
    return link, answer


def _judge(
    session: Session,
    row: LinkedIssueRow,
    link: Link,
    repo: Repo,
    item: Mapping[str, Any],
    desk: Desk,
) -> list[Happening]:
    before = row.facts.get("before") if row.kind == link.kind else None
    first = not before
    happening: Happening | None
    if link.kind == PULL:
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
    row.kind, row.title, row.state = link.kind, title, state
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
    """The repository by its number, under the name it has now; the number is asked for once."""
    with reading(desk.database) as session:
        row = forks.repository(session, link.repo_id) if link.repo_id else None
        if row is not None:
            return Repo.of(row)
        if link.repo_id:
            return Repo(link.repo_id, link.full_name, Tier.WATCHED)
        for known in forks.repositories_like(session, link.full_name):
            if known.github_id is not None and known.state == forks.KNOWN and not known.misses:
                return Repo.of(known)
    answer = desk.ask(Page(f"repos/{link.full_name}", many=False), Tier.CHAIN, conditional=False)
    if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
        return outcome or Outcome()
    repo_id = identity(answer.items[0].get("id")) if answer.items else None
    if repo_id is None:
        return Outcome(note=f"{link.full_name}: {answer.reason}")
    return Repo(repo_id, link.full_name, Tier.WATCHED)
