"""What a stored result means against its cell, judged and written beside it; the caller commits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from sqlmodel import Session

from jobs import compare
from jobs.compare import BootRuns, Standing
from jobs.model import Verdict
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
) -> Verdict:
    """The verdict of a result of `revision`; `history` is its cell as it was before."""
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


def _speeds(session: Session, row: ResultRow) -> list[float]:
    return [boot.speed for boot in results.boots_of(session, cast(int, row.id))]
