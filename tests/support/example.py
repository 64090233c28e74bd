"""A small site's worth of rows: results of every sort, jobs in every state, hostile names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine
from support.fit_rows import fill_fit
from support.fork_rows import fill_forks
from support.negative_rows import fill_negatives
from support.rows import NOON, Rows

from jobs import db
from jobs.config import Settings
from jobs.model import Blame, Kind, Lane, State, Validity, VerdictKind

HOSTILE = '"><img src=x onerror=alert(1)>'


def write_log(settings: Settings, job_id: int, text: str) -> None:
    """Make this the log of a job."""
    path = settings.job_log(job_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def fill(engine: Engine) -> dict[str, int]:
    """Put the example in; returns the ids that tests ask for."""
    now = datetime.now(UTC)
    with db.writing(engine) as session:
        rows = Rows(session)
        wheel = rows.engine(
            name="xllamacpp", family="xllamacpp", repo=None, package="xllamacpp", branches=[]
        )
        fork = rows.engine(name="beellama", repo="Anbeeld/beellama.cpp", parent="buun")
        evil = rows.engine(name=HOSTILE, repo=None)
        first = rows.result(
            rows.revision(wheel, label="2026.9.11020"),
            runs=[(67.0, 67.2, 66.9), (73.8, 73.1, 73.4), (70.1, 70.4, 70.2)],
            sandbox="uncaged",
            created_at=now - timedelta(hours=2),
        )
        second = rows.result(
            rows.revision(wheel, label="2026.10.11549"),
            runs=[(73.1, 73.9, 73.8), (72.0, 72.5, 72.2), (73.3, 73.1, 73.6)],
            sandbox="uncaged",
            created_at=now - timedelta(hours=1),
        )
        chained = rows.result(
            rows.revision(fork, label="v0.1.2"),
            sample={"draft_n": 221, "draft_accepted_n": 61},
            created_at=now - timedelta(days=20),
        )
        broken = rows.result(
            rows.revision(evil, label=HOSTILE),
            runs=[(3.4, 1.5, 0.97)],
            validity=Validity.UNSTABLE,
            validity_reason=f"Runs fall within one boot. {HOSTILE}",
        )
        rows.verdict(first, kind=VerdictKind.FIRST, sentence="The first of its series.")
        rows.verdict(
            second,
            kind=VerdictKind.CANNOT_TELL,
            sentence="Cannot tell below 9.4 %.",
            baseline_id=first.id,
        )
        rows.verdict(chained)
        rows.event(fork, title=f"beellama released {HOSTILE}")
        build = rows.job(
            kind=Kind.BUILD,
            queue="build",
            state=State.RUNNING,
            title="build beellama",
            progress={"phase": "compile", "done": 3, "total": 9, "unit": "steps", "note": HOSTILE},
            leased_by="build-1",
            beat_at=now,
            started_at=now,
        )
        waiting = rows.job(state=State.QUEUED, needs=[build], lane=Lane.BACKFILL)
        blocked = rows.job(state=State.BLOCKED, blocked_by="no_sandbox")
        failed = rows.job(
            kind=Kind.BUILD,
            state=State.FAILED,
            title=f"build {HOSTILE}",
            failure_class="compile_error",
            blame=Blame.ENGINE,
            message=f"/home/alice/build/x.cu:12: error {HOSTILE}",
            advice="Wait for the next commit.",
            started_at=NOON,
            finished_at=now,
        )
        rows.worker(name="build-1", queue="build", beat_at=now)
        rows.worker(name="bench-1", beat_at=now - timedelta(hours=1))
        named = {
            "first": first,
            "second": second,
            "chained": chained,
            "broken": broken,
            "running": build,
            "waiting": waiting,
            "blocked": blocked,
            "failed": failed,
        }
        fill_fit(rows, wheel, fork, HOSTILE)
        forks = fill_forks(rows, fork, evil)
        said = fill_negatives(
            rows,
            fork,
            evil,
            now,
            works=chained.job_id,
            retest=waiting.id or 0,
            harm=f"/home/alice/x {HOSTILE}",
        )
        return forks | said | {name: row.id or 0 for name, row in named.items()}
