"""The pages of forks as values: who was found, where each stands, what it understands; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.errors import UsageError
from jobs.git import repo_url
from jobs.store.forks import BLOCKED, KNOWN
from jobs.store.shown_forks import (
    Ability,
    ForkDetail,
    Forks,
    OtherFork,
    ShownFork,
    ShownIssue,
)
from jobs.store.shown_negatives import ShownNegative
from web import words
from web.lineage_figure import lineage_figure
from web.pages import Page


@dataclass(frozen=True)
class ForkLine:
    """A watched repository as a row: what it is, where it leads, how old its upstream is."""

    fork: ShownFork
    href: str
    days: int | None
    is_shown: bool = False


@dataclass(frozen=True)
class OtherLine:
    """A fork that is not watched, with the address of its page at GitHub."""

    fork: OtherFork
    address: str | None
    tier: str


@dataclass(frozen=True)
class IssueLine:
    """A linked issue or pull request, with its address."""

    issue: ShownIssue
    address: str | None


@dataclass(frozen=True)
class AbilityLine:
    """One kind of names, spoken, with what is beyond upstream and the parent."""

    kind: str
    ability: Ability


def forks(found: Forks, *, now: datetime) -> Page:
    """The watched repositories, the others that were found, the linked issues."""
    return Page(
        "forks.html",
        "forks.html",
        "Forks",
        {
            "watched": [_line(fork, now=now) for fork in found.watched],
            "others": [
                OtherLine(
                    fork,
                    address(fork.full_name, state=fork.state),
                    words.TIER.get(fork.tier, "known by name"),
                )
                for fork in found.others
            ],
            "scored_at": max(
                (each.score.worked_out_at for each in found.others if each.score), default=None
            ),
            "more": found.others_total - len(found.others),
            "issues": _issue_lines(found.issues),
        },
    )


def fork(found: ForkDetail, *, now: datetime, negatives: Sequence[ShownNegative] = ()) -> Page:
    """One watched repository: its chain drawn and as a table, its abilities, its news."""
    shown = found.fork
    standing = shown.standing
    return Page(
        f"forks/{shown.id}.html",
        "fork.html",
        shown.engine,
        {
            "fork": shown,
            "standing": standing,
            "address": address(shown.full_name, state=shown.state),
            "chain": [_line(each, now=now, shown=shown.id) for each in found.chain],
            "figure": lineage_figure(found.chain, shown.engine),
            "staleness": words.staleness(standing, now=now) if standing else None,
            "age": words.age(standing.committed_at, now=now)
            if standing and standing.committed_at
            else None,
            "ids": {each.engine: each.id for each in found.chain},
            "abilities": [
                AbilityLine(words.ABILITY.get(each.kind, words.spoken(each.kind)), each)
                for each in (standing.abilities if standing else ())
            ],
            "detail": found,
            "issues": _issue_lines(found.issues),
            "negatives": negatives,
        },
    )


def address(full_name: str, tail: str = "", *, state: str = KNOWN) -> str | None:
    """The page of a repository at GitHub; None for a name that is none, whoever gave it.

    A blocked repository may not be linked to either.
    """
    if state == BLOCKED:
        return None
    try:
        return f"{repo_url(full_name)}{tail}"
    except UsageError:
        return None


def _issue_lines(issues: Sequence[ShownIssue]) -> list[IssueLine]:
    return [
        IssueLine(
            issue,
            address(issue.full_name, f"/issues/{issue.number}", state=issue.repository_state),
        )
        for issue in issues
    ]


def _line(found: ShownFork, *, now: datetime, shown: int | None = None) -> ForkLine:
    sync = found.standing.last_sync if found.standing else None
    return ForkLine(
        found,
        f"forks/{found.id}.html",
        None if sync is None else max((now - sync.upstream_at).days, 0),
        found.id == shown,
    )
