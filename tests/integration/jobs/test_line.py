"""The line of a queue over both databases: walked by index, ageing, expiring, shared, paused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, insert, text
from sqlmodel import select
from support.rows import digest
from support.work import NOW, request

from jobs import db, lifecycle
from jobs.errors import JobFailure
from jobs.line_tables import AttemptRow, UseRow
from jobs.model import Blame, Kind, Lane, State
from jobs.store import leases, line, needs, overview, pauses, upkeep, usage, work
from jobs.tables import JobRow

LIMIT = 3
DAY = lifecycle.AGES_AFTER


def put(database: Engine, *requests, now=NOW) -> list[int]:
    with db.writing(database) as session:
        found = work.enqueue(session, requests, now)
        return [row.id for row in found.values() if row is not None and row.id is not None]


def take(database: Engine, queue="build", now=NOW, share=1.0) -> leases.Lease | None:
    with db.writing(database) as session:
        return leases.lease(session, queue, "w1", now, share=share)


def titles(database: Engine, count: int, **words) -> list[str]:
    return [held.title for _ in range(count) if (held := take(database, **words)) is not None]


def end(database: Engine, held: leases.Lease, now) -> None:
    with db.writing(database) as session:
        leases.start(session, held, now - timedelta(hours=1))
        leases.succeed(session, held, now)


def fail(database: Engine, held: leases.Lease, now, blame=Blame.INFRASTRUCTURE) -> None:
    fault = JobFailure("it broke", failure_class="disk_full", blame=blame, advice="mend it")
    with db.writing(database) as session:
        leases.start(session, held, now)
        leases.fail(session, held, fault, now, limit=LIMIT)


def row(database: Engine, job_id: int) -> JobRow:
    with db.reading(database) as session:
        return work.job(session, job_id)


def long_line(database: Engine, count: int = 3000) -> None:
    """Three queues, three lanes, seven sources; a third waits for a later time, a third ended."""
    common = {"payload": {}, "cause": {}, "progress": {}, "reason": "a test", "attempts": 0}
    values: list[dict[str, Any]] = []
    for number in range(count):
        later, ended = number % 3 == 1, number % 3 == 2
        values.append(
            common
            | {
                "kind": Kind.SMOKE,
                "queue": f"bench.r{number % 4}",
                "state": State.SUCCEEDED if ended else State.QUEUED,
                "lane": (Lane.FRESH, Lane.RETEST, Lane.BACKFILL)[number % 5 % 3],
                "identity": digest(f"long {number}"),
                "title": f"job {number}",
                "source": f"engine:{number % 7}",
                "created_at": NOW,
                "due_at": NOW + (DAY if later else timedelta(0)),
                "turn_at": NOW + timedelta(seconds=number),
                "put_off": later,
                "finished_at": NOW if ended else None,
                "estimate_seconds": 60.0,
            }
        )
    with db.writing(database) as session:
        session.execute(insert(JobRow), values)
        for source in ("engine:0", "engine:1"):
            session.add(UseRow(queue="bench.r0", hour=NOW, source=source, seconds=60.0))
    if database.dialect.name == "postgresql":
        with database.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("ANALYZE"))


@contextmanager
def statements(database: Engine) -> Iterator[list[tuple[str, Any]]]:
    """What is asked of the job table meanwhile."""
    asked: list[tuple[str, Any]] = []

    def note(_conn, _cursor, statement, parameters, *_):
        if " job" in statement:
            asked.append((statement, parameters))

    event.listen(database, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(database, "before_cursor_execute", note)


def plan_of(database: Engine, statement: str, parameters: Any) -> str:
    word = "EXPLAIN" if database.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
    with database.connect() as connection:
        rows = connection.exec_driver_sql(f"{word} {statement}", parameters).all()
        connection.rollback()
    return "\n".join(str(each[-1]) for each in rows)


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_a_lease_walks_an_index_however_long_the_line(database: Engine, share: float) -> None:
    """No scan of the table and no sort of the line, with quotas as without."""
    long_line(database)
    with statements(database) as asked:
        assert take(database, "bench.r0", NOW, share) is not None
        with db.reading(database) as session:
            assert line.due_queues(session, NOW, most=8) == {f"bench.r{n}": 8 for n in range(4)}
        with db.writing(database) as session:
            upkeep.age(session, NOW)
            upkeep.expire(session, NOW)
            leases.reap(session, NOW, silence=timedelta(minutes=1), limit=LIMIT)
    plans = [plan_of(database, *each) for each in asked if not each[0].startswith("INSERT")]
    assert len(plans) > 5
    for plan, (statement, _) in zip(plans, asked, strict=False):
        walks = [
            each for each in plan.splitlines() if "SCAN job" in each or "Seq Scan on job" in each
        ]
        assert not [part for part in walks if "INDEX" not in part], f"{statement}\n{plan}"
        leases_one = statement.startswith("UPDATE job SET") and "LIMIT" in statement
        if leases_one or ("LIMIT" in statement and "job.id =" not in statement):
            assert "TEMP B-TREE FOR ORDER BY" not in plan, f"{statement}\n{plan}"
            assert "Sort Key: job" not in plan, f"{statement}\n{plan}"


def test_the_line_is_shown_from_its_head(database: Engine) -> None:
    """A long queue shows those that are served first, places counted for each queue."""
    long_line(database)
    with db.reading(database) as session:
        shown = overview.queue(session, now=NOW, waiting=12)
        first = overview.job(session, shown.waiting[0].id, now=NOW)
    assert [job.lane for job in shown.waiting] == [Lane.FRESH] * 12
    assert {job.position for job in shown.waiting} >= {1, 2, 3}
    assert shown.waiting_total == 2000
    assert first is not None
    assert first.position == 1


def test_a_put_off_job_stands_in_line_when_its_time_has_come(database: Engine) -> None:
    """Nothing is rung or leased for it before, and exactly one lease follows (case C35)."""
    (job_id,) = put(database, request("a"))
    held = take(database)
    assert held is not None
    fail(database, held, NOW)
    due = row(database, job_id).due_at
    with db.reading(database) as session:
        assert line.due_queues(session, NOW, most=8) == {}
        assert line.due_queues(session, due, most=8) == {"build": 1}
    assert take(database, now=due - timedelta(seconds=1)) is None
    assert titles(database, 3, now=due) == ["a"]


def test_who_waits_too_long_moves_up_one_lane_at_a_time(database: Engine) -> None:
    """A day in each lane, never before what people asked for; the row says so."""
    (job_id,) = put(database, request("old", lane=Lane.BACKFILL))
    lanes = []
    for days in (0.9, 1, 1.5, 2, 3, 9):
        with db.writing(database) as session:
            upkeep.age(session, NOW + days * DAY)
        lanes.append(row(database, job_id).lane)
    assert lanes == [50, 40, 40, 30, 30, 30]
    says = row(database, job_id).message
    assert "moved up from backfill to retest" in says
    assert "moved up from retest to fresh" in says
    put(
        database,
        request("new", lane=Lane.FRESH),
        request("asked", lane=Lane.ON_DEMAND),
        now=NOW + 9 * DAY,
    )
    assert titles(database, 3, now=NOW + 9 * DAY) == ["asked", "old", "new"]


def test_what_is_worth_nothing_any_more_expires_and_tells_its_dependents(database: Engine) -> None:
    """Queued and blocked alike; what runs is finished; no worker gets it (case C34)."""
    soon = NOW + timedelta(hours=1)
    build = request("build", expires_at=soon)
    bench = request("bench", queue="bench.cpu", needs=(build.identity,))
    held_id, build_id, bench_id = put(database, request("held", expires_at=soon), build, bench)
    held = take(database)
    assert held is not None
    assert held.job_id == held_id
    assert take(database, now=soon) is None
    with db.writing(database) as session:
        assert upkeep.expire(session, soon) == 1
    assert row(database, build_id).state == State.EXPIRED
    assert "retry" in row(database, build_id).advice
    assert (row(database, bench_id).state, row(database, held_id).state) == ("blocked", "leased")
    assert "blocked by expired job" in row(database, bench_id).message
    with db.writing(database) as session:
        work.retry(session, bench_id, soon)
    assert titles(database, 2, now=soon) == ["build"]


def test_asking_again_lets_a_job_last_longer(database: Engine) -> None:
    """The longer of two wishes counts, and none is the longest."""
    (job_id,) = put(database, request("a", expires_at=NOW + DAY))
    put(database, request("a", expires_at=NOW + DAY / 2))
    assert row(database, job_id).expires_at == NOW + DAY
    put(database, request("a", expires_at=NOW + 2 * DAY))
    assert row(database, job_id).expires_at == NOW + 2 * DAY
    put(database, request("a"))
    assert row(database, job_id).expires_at is None


def used_by(database: Engine, source: str, *, hours: int) -> None:
    for number in range(hours):
        put(database, request(f"{source} past {number}", source=source))
        held = take(database)
        assert held is not None
        end(database, held, NOW)


def test_a_source_that_used_its_share_lets_others_go_first(database: Engine) -> None:
    """Those of its lane, until all have had theirs; it waits for no idle worker."""
    used_by(database, "engine:hog", hours=3)
    used_by(database, "engine:other", hours=1)
    put(
        database,
        *(request(f"hog {n}", source="engine:hog") for n in range(2)),
        request("other", source="engine:other"),
        request("new", source="engine:new"),
    )
    assert titles(database, 4, share=0.5) == ["other", "new", "hog 0", "hog 1"]


def test_another_lane_is_not_let_past(database: Engine) -> None:
    """A quota is among equals: what is less urgent stays behind."""
    used_by(database, "engine:hog", hours=2)
    put(
        database,
        request("hog", source="engine:hog"),
        request("later", source="engine:other", lane=Lane.BACKFILL),
    )
    assert titles(database, 2, share=0.5) == ["hog", "later"]


def test_people_share_too_and_confirmations_do_not(database: Engine) -> None:
    """One person's hundred wishes do not hold up another's; a confirmation never waits."""
    used_by(database, "person:ann", hours=2)
    for lane in (Lane.ON_DEMAND, Lane.CONFIRM):
        put(
            database,
            request(f"ann {lane.word}", source="person:ann", lane=lane),
            request(f"bob {lane.word}", source="person:bob", lane=lane),
        )
    assert titles(database, 4, share=0.5) == [
        "bob on demand",
        "ann on demand",
        "ann confirm",
        "bob confirm",
    ]


def test_usage_is_forgotten_after_a_day(database: Engine) -> None:
    """Yesterday's hog is today's guest."""
    used_by(database, "engine:hog", hours=2)
    later = NOW + DAY + timedelta(minutes=1)
    put(database, request("hog", source="engine:hog"), request("b", source="engine:b"), now=later)
    assert titles(database, 2, now=later, share=0.5) == ["hog", "b"]


def test_a_paused_queue_leases_nothing_and_rings_for_nothing(database: Engine) -> None:
    """Until it is resumed or its time is over; other queues go on."""
    put(database, request("a"), request("b", queue="publish"))
    with db.writing(database) as session:
        pauses.pause(session, "build", NOW, reason="a new driver", until=NOW + DAY)
        assert line.due_queues(session, NOW, most=8) == {"publish": 1}
    assert take(database) is None
    assert titles(database, 1, queue="publish") == ["b"]
    assert titles(database, 1, now=NOW + DAY) == ["a"]


def test_a_resumed_queue_goes_on(database: Engine) -> None:
    """Its jobs kept their places."""
    put(database, request("a"))
    with db.writing(database) as session:
        pauses.pause(session, "build", NOW)
    assert take(database) is None
    with db.writing(database) as session:
        assert pauses.resume(session, "build")
        assert not pauses.resume(session, "build")
    assert titles(database, 1) == ["a"]


def test_a_stage_is_counted_in_rows_however_its_members_end(database: Engine) -> None:
    """Five members, one fails, no result is stored anywhere: one summary follows (case C48)."""
    members = [request(f"member {number}") for number in range(5)]
    summary = request("summary", queue="publish", after=tuple(m.identity for m in members))
    *_, summary_id = put(database, *members, summary)
    for number in range(5):
        assert take(database, "publish") is None
        held = take(database)
        assert held is not None
        if number == 2:
            fail(database, held, NOW, Blame.ENGINE)
        else:
            end(database, held, NOW)
    held = take(database, "publish")
    assert held is not None
    assert held.job_id == summary_id
    with db.reading(database) as session:
        assert needs.stage_of(session, summary_id) == {State.SUCCEEDED: 4, State.FAILED: 1}
    assert take(database, "publish") is None


def test_a_persons_job_is_the_second_to_run_behind_twenty(database: Engine) -> None:
    """A worker holds one job and no stock of them: order is decided at each lease (case C47)."""
    put(database, *(request(f"night {n}", lane=Lane.BACKFILL) for n in range(20)))
    first = titles(database, 1)
    put(database, request("by hand", lane=Lane.ON_DEMAND), now=NOW + timedelta(minutes=1))
    assert first + titles(database, 2, now=NOW + timedelta(minutes=1)) == [
        "night 0",
        "by hand",
        "night 1",
    ]


def test_every_lease_that_is_over_leaves_a_trace(database: Engine) -> None:
    """Who held the job, for how long, and what came of it: also when it succeeds in the end."""
    (job_id,) = put(database, request("a"))
    held = take(database)
    assert held is not None
    fail(database, held, NOW)
    later = NOW + timedelta(hours=2)
    held = take(database, now=later)
    assert held is not None
    end(database, held, later)
    with db.reading(database) as session:
        found = session.exec(select(AttemptRow).order_by(AttemptRow.fence)).all()
        assert [(a.number, a.outcome, a.failure_class) for a in found] == [
            (1, "queued", "disk_full"),
            (2, "succeeded", None),
        ]
        assert {a.job_id for a in found} == {job_id}
        assert usage.of_sources(session, "build", later) == {"": 3600.0}
