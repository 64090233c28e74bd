"""What a stored result means against its cell, judged and written beside it; the caller commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from sqlmodel import Session

from jobs import compare
from jobs.compare import BootRuns, Standing
from jobs.model import Validity, Verdict
from jobs.store import results
from jobs.tables import ResultRow, RevisionRow


def judged(
    session: Session,
    row: ResultRow,
    revision: RevisionRow,
    runs: Sequence[BootRuns],
    *,
    standing: Standing,
    history: Sequence[ResultRow],
    now: datetime,
    beside: ResultRow | None = None,
) -> Verdict:
    """The verdict of a result of `revision`; `history` is its cell as it was before.

    With the result of a baseline that was booted in turns with it, boots that have a partner are
    compared, and nothing else: heat and other work fell on both.
    """
    pairs = _pairs(session, runs, beside)
    if beside is not None and pairs and standing.validity is Validity.OK:
        return _in_turns(session, row, pairs, beside, standing=standing, history=history, now=now)
    baseline = results.baseline_for(session, revision, history)
    verdict = compare.judge(
        runs,
        standing=standing,
        baseline=_speeds(session, baseline) if baseline else (),
        baseline_label=results.revision_label(session, baseline) if baseline else "",
        history=[_speeds(session, old) for old in history],
    )
    results.record_verdict(
        session, cast(int, row.id), baseline.id if baseline else None, verdict, now
    )
    return verdict


def judged_again(session: Session, row: ResultRow, beside: ResultRow, now: datetime) -> None:
    """The verdict of a stored candidate whose baseline arrived after it."""
    history = [old for old in results.cell_history(session, row.cell) if old.id != row.id]
    judged(
        session,
        row,
        session.get_one(RevisionRow, row.revision_id),
        results.boots_of(session, cast(int, row.id)),
        standing=Standing(Validity(row.validity), row.validity_reason),
        history=history,
        now=now,
        beside=beside,
    )


def _pairs(
    session: Session, runs: Sequence[BootRuns], beside: ResultRow | None
) -> list[tuple[BootRuns, BootRuns]]:
    """The boots of both arms that have a partner; none where the other arm is not `ok`."""
    if beside is None or beside.validity != Validity.OK.value:
        return []
    theirs = {boot.number: boot for boot in results.boots_of(session, cast(int, beside.id))}
    return [(boot, theirs[boot.number]) for boot in runs if boot.number in theirs]


def _in_turns(
    session: Session,
    row: ResultRow,
    pairs: Sequence[tuple[BootRuns, BootRuns]],
    beside: ResultRow,
    *,
    standing: Standing,
    history: Sequence[ResultRow],
    now: datetime,
) -> Verdict:
    verdict = compare.judge(
        [ours for ours, _ in pairs],
        standing=standing,
        baseline=[theirs.speed for _, theirs in pairs],
        baseline_label=results.revision_label(session, beside),
        history=[_speeds(session, old) for old in history],
    )
    verdict = replace(verdict, sentence=f"in turns: {verdict.sentence}")
    results.record_verdict(session, cast(int, row.id), beside.id, verdict, now)
    return verdict


def _speeds(session: Session, row: ResultRow) -> list[float]:
    return [boot.speed for boot in results.boots_of(session, cast(int, row.id))]
