"""When a job may start and end, over both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Engine
from sqlmodel import Session
from support.rows import NOON, Rows
from support.work import request

from jobs import db
from jobs.lifecycle import SOURCE_SHARE
from jobs.line_tables import UseRow
from jobs.model import Kind, Lane, State
from jobs.store import overview, pauses, reasons, work

MINUTE = timedelta(minutes=1)


@pytest.fixture
def session(database: Engine):
    with db.writing(database) as opened:
        yield opened


def bench(rows: Rows, state: State = State.QUEUED, **fields):
    common = {"estimate_seconds": 600.0, "created_at": NOON, "due_at": NOON}
    return rows.job(state=state, **common | fields)


def expected(session: Session, row) -> str:
    found = overview.job(session, row.id, now=NOON)
    assert found is not None
    return found.expected


def test_what_runs_and_what_stands_before_are_added_up(session: Session) -> None:
    """The rest of the running job, then each before it in its queue; others do not count."""
    rows = Rows(session)
    rows.worker()
    bench(rows, State.RUNNING, started_at=NOON - 5 * MINUTE)
    first, second = bench(rows), bench(rows)
    bench(rows, queue="bench.other")
    assert expected(session, first) == "starts in about 5 min, done in about 15 min"
    assert expected(session, second) == "starts in about 15 min, done in about 25 min"
    shown = overview.queue(session, now=NOON)
    assert [job.expected for job in shown.waiting if job.queue == "bench.cpu"] == [
        "starts in about 5 min, done in about 15 min",
        "starts in about 15 min, done in about 25 min",
    ]
    assert shown.waiting[0].likely_end_at == NOON + 15 * MINUTE


def test_a_job_of_unknown_length_hides_what_comes_after_it(session: Session) -> None:
    """Nothing is guessed."""
    rows = Rows(session)
    rows.worker()
    first, second = bench(rows, estimate_seconds=None), bench(rows)
    assert expected(session, first) == "starts soon"
    assert expected(session, second) == "not known"


def test_a_bench_waits_for_its_build_and_its_build_for_its_turn(session: Session) -> None:
    """What blocks a job is taken into account."""
    rows = Rows(session)
    rows.worker()
    rows.worker(queue="build")
    earlier = bench(rows, queue="build", kind=Kind.BUILD)
    build = bench(rows, queue="build", kind=Kind.BUILD)
    waiting = bench(rows, State.BLOCKED, needs=[build], blocked_by=f"job:{build.id}")
    assert expected(session, earlier) == "starts soon, done in about 10 min"
    assert expected(session, waiting) == "starts in about 20 min, done in about 30 min"
    build.state = State.FAILED
    session.flush()
    assert expected(session, waiting) == "not known"


def test_nobody_knows_when_an_unserved_or_paused_queue_goes_on(session: Session) -> None:
    """Unless the pause says it."""
    rows = Rows(session)
    job = bench(rows)
    assert expected(session, job) == "not known"
    worker = rows.worker()
    assert expected(session, job) == "starts soon, done in about 10 min"
    pauses.pause(session, "bench.cpu", NOON)
    assert expected(session, job) == "not known, after `forkscout queue resume bench.cpu`"
    pauses.pause(session, "bench.cpu", NOON, until=NOON + 30 * MINUTE)
    assert expected(session, job) == "starts in about 30 min, done in about 40 min"
    worker.beat_at = NOON - timedelta(hours=1)
    session.flush()
    assert expected(session, job) == "not known"


def test_an_estimate_is_what_jobs_like_it_took(session: Session) -> None:
    """Set when the job is queued; the request's own word goes before."""
    rows = Rows(session)
    for minutes in (4, 5, 6):
        rows.job(
            kind=Kind.SMOKE, queue="build", started_at=NOON - minutes * MINUTE, finished_at=NOON
        )
    asked = [request("a"), request("b", estimate_seconds=7.0), request("c", queue="publish")]
    found = work.enqueue(session, asked, NOON)
    assert [row.estimate_seconds for row in found.values() if row] == [300.0, 7.0, None]


def test_why_tells_event_needs_dependents_and_waits(session: Session) -> None:
    """Each part that `--why` prints, as values."""
    rows = Rows(session)
    event = rows.event(title="beellama released v0.2")
    rows.worker(queue="build")
    fetch = bench(rows, State.DEAD, queue="build", failure_class="worker_lost")
    build = bench(rows, State.BLOCKED, queue="build", needs=[fetch], blocked_by=f"job:{fetch.id}")
    job = bench(
        rows,
        State.BLOCKED,
        needs=[build],
        blocked_by=f"job:{build.id}",
        source="engine:beellama",
        cause={
            "event_id": event.id,
            "rule": "fresh",
            "negative_id": 4,
            "baseline_of": build.id,
        },
    )
    found = reasons.why(session, job.id, NOON, share=SOURCE_SHARE)
    assert [(o.kind, o.says) for o in found.origins] == [
        ("event", "beellama released v0.2"),
        ("rule", "rule fresh"),
        ("negative", "negative 4"),
        ("job", f"baseline of: {build.title}"),
        ("source", "engine beellama"),
        ("reason", "new revision"),
    ]
    assert [wait.code for wait in found.waits] == ["unserved", "needs"]
    (need,) = found.needs
    assert (need.id, need.state) == (build.id, State.BLOCKED)
    assert [(n.id, n.failure_class) for n in need.needs] == [(fetch.id, "worker_lost")]
    lower = reasons.why(session, build.id, NOON, share=SOURCE_SHARE)
    assert [d.id for d in lower.dependents] == [job.id]


def test_why_tells_place_pause_due_time_and_quota(session: Session) -> None:
    """Every reason at once where there are several."""
    rows = Rows(session)
    rows.worker()
    for source, seconds in (("engine:a", 90.0), ("engine:b", 10.0)):
        session.add(UseRow(queue="bench.cpu", hour=NOON, source=source, seconds=seconds))
    running = bench(rows, State.RUNNING, started_at=NOON)
    first = bench(rows, source="engine:a", lane=Lane.BACKFILL)
    alone = reasons.why(session, first.id, NOON, share=0.5)
    assert [wait.code for wait in alone.waits] == ["place", "busy"]
    bench(rows, source="engine:b", lane=Lane.BACKFILL)
    later = bench(rows, put_off=True, due_at=NOON + MINUTE, failure_class="disk_full")
    found = reasons.why(session, first.id, NOON, share=0.5)
    says = {wait.code: wait.says for wait in found.waits}
    assert list(says) == ["place", "busy", "over_share"]
    assert says["place"].startswith("place 1 of bench.cpu, lane backfill")
    assert says["busy"].startswith(f"job {running.id} runs there")
    assert says["over_share"].startswith("engine:a used 90% of bench.cpu in the last 24 h")
    pauses.pause(session, "bench.cpu", NOON, reason="new driver")
    found = reasons.why(session, later.id, NOON, share=0.5)
    assert [(wait.code, wait.says) for wait in found.waits] == [
        ("paused", "bench.cpu is paused since 2026-11-03 12:00 UTC (new driver)"),
        ("due_later", "it is due at 2026-11-03 12:01 UTC, after disk_full"),
    ]


def test_a_cause_that_names_nothing_is_no_obstacle(session: Session) -> None:
    """Rows of other releases and hostile ones: unknown numbers, words for numbers, huge ones."""
    rows = Rows(session)
    for number in (10**30, -1, "7; drop table job", None, True, 4711):
        cause = {"event_id": number, "confirms_job_id": number}
        job = bench(rows, cause=cause, event_id=None)
        found = reasons.why(session, job.id, NOON, share=SOURCE_SHARE)
        assert found.origins[-1].says == "new revision"
