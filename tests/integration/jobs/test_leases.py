"""Leases over both databases: one holder, a fence, beats, losses, cancels and what they free."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine
from support.work import NOW, request

from jobs import db
from jobs.errors import JobFailure, StaleLease, UsageError
from jobs.model import Blame, Lane, State
from jobs.planner import JobRequest
from jobs.store import fleet, leases, work
from jobs.store.leases import Lease
from jobs.tables import JobRow, WorkerRow

LIMIT = 3
START = NOW + timedelta(hours=1)


def put(database: Engine, *requests: JobRequest, now: datetime = NOW) -> list[int]:
    with db.writing(database) as session:
        found = work.enqueue(session, requests, now)
        return [row.id for row in found.values() if row is not None and row.id is not None]


def take(database: Engine, queue: str = "build", worker: str = "w1") -> Lease | None:
    with db.writing(database) as session:
        return leases.lease(session, queue, worker, START)


def held(database: Engine, queue: str = "build") -> Lease:
    found = take(database, queue)
    assert found is not None
    return found


def row(database: Engine, job_id: int) -> JobRow:
    with db.reading(database) as session:
        return work.job(session, job_id)


def test_an_empty_queue_gives_nothing(database: Engine) -> None:
    """A doorbell without a job is harmless."""
    assert take(database) is None


def test_a_job_is_leased_once_and_its_attempt_counted_first(database: Engine) -> None:
    """The second doorbell finds nothing; the attempt is on record before any work."""
    (job_id,) = put(database, request("a"))
    assert held(database).job_id == job_id
    assert take(database, worker="w2") is None
    found = row(database, job_id)
    assert (found.state, found.attempts, found.fence) == (State.LEASED, 1, 1)


def test_many_workers_share_many_jobs_without_a_double(database: Engine) -> None:
    """Six threads take forty jobs; each job goes to one of them."""
    put(database, *(request(f"job {number}") for number in range(40)))
    taken: list[int] = []

    def work_off(name: str) -> None:
        while (found := take(database, worker=name)) is not None:
            taken.append(found.job_id)

    threads = [threading.Thread(target=work_off, args=(f"w{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(set(taken))
    assert len(taken) == 40


def test_lanes_go_first_then_the_older_job(database: Engine) -> None:
    """On demand overtakes what was planned; within a lane the first come is served first."""
    put(database, request("planned 1", lane=Lane.BACKFILL), request("planned 2", lane=Lane.FRESH))
    put(database, request("planned 3", lane=Lane.FRESH), now=NOW + timedelta(seconds=0))
    put(database, request("by hand", lane=Lane.ON_DEMAND))
    order = [held(database).title for _ in range(4)]
    assert order == ["by hand", "planned 2", "planned 3", "planned 1"]


def test_what_is_not_due_is_not_served(database: Engine) -> None:
    """Due times live in the row, not in the broker (case C35)."""
    put(database, request("later"), now=NOW + timedelta(hours=6))
    assert take(database) is None


def test_a_result_with_an_old_fence_is_refused(database: Engine) -> None:
    """The first holder fell silent and comes back late: every write of its is refused."""
    (job_id,) = put(database, request("a"))
    late = held(database)
    with db.writing(database) as session:
        leases.start(session, late, NOW)
    with db.writing(database) as session:
        reaped = leases.reap(
            session, START + timedelta(minutes=1), silence=timedelta(seconds=45), limit=LIMIT
        )
    assert reaped == [job_id]
    with db.writing(database) as session:
        session.get_one(JobRow, job_id).due_at = NOW
    newer = held(database)
    assert newer.fence > late.fence
    for write in (
        lambda s: leases.succeed(s, late, NOW),
        lambda s: leases.beat(s, late, NOW, {}),
        lambda s: leases.release(s, late, NOW, ""),
        lambda s: leases.cancelled(s, late, NOW),
        lambda s: leases.fail(s, late, failure(), NOW, limit=LIMIT),
        lambda s: leases.check(s, late),
    ):
        with pytest.raises(StaleLease), db.writing(database) as session:
            write(session)
    assert row(database, job_id).state == State.LEASED


def failure(blame: Blame = Blame.ENGINE, failure_class: str = "assert") -> JobFailure:
    return JobFailure("it broke", failure_class=failure_class, blame=blame, advice="mend it")


def test_a_beating_job_is_left_alone(database: Engine) -> None:
    """The reaper looks at the last beat, not at the start."""
    put(database, request("a"))
    holder = held(database)
    with db.writing(database) as session:
        leases.beat(session, holder, NOW + timedelta(minutes=10), {"phase": "compile"})
    with db.writing(database) as session:
        assert not leases.reap(
            session,
            NOW + timedelta(minutes=10, seconds=30),
            silence=timedelta(seconds=45),
            limit=LIMIT,
        )


def test_the_third_loss_is_a_dead_letter_with_advice(database: Engine) -> None:
    """No state without an exit: the page shows it, `retry` takes it back (cases C36, C45)."""
    (job_id,) = put(database, request("a"))
    for attempt in (1, 2, 3):
        with db.writing(database) as session:
            session.get_one(JobRow, job_id).due_at = NOW
        assert held(database).attempts == attempt
        with db.writing(database) as session:
            leases.reap(
                session, START + timedelta(minutes=5), silence=timedelta(seconds=45), limit=LIMIT
            )
    found = row(database, job_id)
    assert (found.state, found.failure_class) == (State.DEAD, "worker_lost")
    assert "retry" in found.advice
    with db.writing(database) as session:
        work.retry(session, job_id, NOW)
    assert held(database).attempts == 1


def test_a_drained_job_goes_back_without_losing_an_attempt(database: Engine) -> None:
    """A stop of the worker is nobody's fault (case C44)."""
    (job_id,) = put(database, request("a"))
    holder = held(database)
    with db.writing(database) as session:
        leases.release(session, holder, NOW, "given back")
    found = row(database, job_id)
    assert (found.state, found.attempts, found.leased_by) == (State.QUEUED, 0, None)


def test_a_running_job_hears_its_cancel(database: Engine) -> None:
    """Cancel of a held job is a wish; its holder is told and ends it."""
    (job_id,) = put(database, request("a"))
    holder = held(database)
    with db.writing(database) as session:
        work.cancel(session, job_id, NOW)
    with db.reading(database) as session:
        assert leases.orders(session, holder, "w1").stop == "cancelled"
    with db.writing(database) as session:
        leases.cancelled(session, holder, NOW)
    assert row(database, job_id).state == State.CANCELLED


def test_a_cancelled_job_whose_worker_dies_stays_cancelled(database: Engine) -> None:
    """The reaper does not bring back what somebody ended."""
    (job_id,) = put(database, request("a"))
    held(database)
    with db.writing(database) as session:
        work.cancel(session, job_id, NOW)
    with db.writing(database) as session:
        leases.reap(session, START + timedelta(hours=1), silence=timedelta(seconds=45), limit=LIMIT)
    assert row(database, job_id).state == State.CANCELLED


def test_a_draining_worker_is_told_to_stop(database: Engine) -> None:
    """The worker's own row carries the wish."""
    put(database, request("a"))
    holder = held(database)
    station = WorkerRow(name="w1", queue="build", host="h", pid=1, started_at=NOW, beat_at=NOW)
    with db.writing(database) as session:
        fleet.greet(session, station)
        fleet.drain(session, "w1")
    with db.reading(database) as session:
        assert leases.orders(session, holder, "w1").stop == "draining"


def test_success_frees_what_waited(database: Engine) -> None:
    """A bench starts when its build and its weights are there, not before."""
    build, fetch = request("build"), request("fetch")
    bench = request("bench", queue="bench.cpu", needs=(build.identity, fetch.identity))
    *_, bench_id = put(database, build, fetch, bench)
    assert take(database, "bench.cpu") is None
    for _ in range(2):
        holder = held(database)
        assert row(database, bench_id).state == State.BLOCKED
        with db.writing(database) as session:
            leases.start(session, holder, NOW)
        with db.writing(database) as session:
            leases.succeed(session, holder, NOW)
    assert held(database, "bench.cpu").job_id == bench_id


def test_a_failed_build_blocks_its_benches_with_one_cause(database: Engine) -> None:
    """Nothing else fails, and a retry of the bench retries the build (case C17)."""
    build = request("build")
    benches = [request(f"bench {n}", queue="bench.cpu", needs=(build.identity,)) for n in range(3)]
    build_id, *bench_ids = put(database, build, *benches)
    holder = held(database)
    with db.writing(database) as session:
        leases.start(session, holder, NOW)
        leases.fail(session, holder, failure(), NOW, limit=LIMIT)
    assert row(database, build_id).state == State.FAILED
    for bench_id in bench_ids:
        found = row(database, bench_id)
        assert (found.state, found.blocked_by) == (State.BLOCKED, f"job:{build_id}")
        assert f"failed job {build_id} (assert)" in found.message
    with db.writing(database) as session:
        work.retry(session, bench_ids[0], NOW)
    assert held(database).job_id == build_id


def test_an_infrastructure_fault_is_tried_again_later(database: Engine) -> None:
    """It waits in the row, then becomes due."""
    (job_id,) = put(database, request("a"))
    holder = held(database)
    with db.writing(database) as session:
        leases.start(session, holder, NOW)
        leases.fail(session, holder, failure(Blame.INFRASTRUCTURE, "disk_full"), NOW, limit=LIMIT)
    found = row(database, job_id)
    assert found.state == State.QUEUED
    assert found.due_at > NOW
    assert found.failure_class == "disk_full"


def test_no_sandbox_blocks_until_there_is_one(database: Engine) -> None:
    """The job waits without losing an attempt and is freed when a worker has proven its cage."""
    (job_id,) = put(database, request("a"))
    holder = held(database)
    with db.writing(database) as session:
        leases.start(session, holder, NOW)
        leases.fail(session, holder, failure(Blame.ENVIRONMENT, "no_sandbox"), NOW, limit=LIMIT)
    found = row(database, job_id)
    assert (found.state, found.blocked_by, found.attempts) == (State.BLOCKED, "no_sandbox", 0)
    with db.writing(database) as session:
        assert work.unblock(session, "no_sandbox", "build") == 1
    assert held(database).job_id == job_id


def test_one_question_is_one_live_job(database: Engine) -> None:
    """Asking again joins the waiting job and may hurry it; once it ended a new one is made."""
    (first,) = put(database, request("a", lane=Lane.BACKFILL))
    assert put(database, request("a", lane=Lane.ON_DEMAND)) == [first]
    assert row(database, first).lane == Lane.ON_DEMAND
    with db.writing(database) as session:
        work.cancel(session, first, NOW)
    assert put(database, request("a")) != [first]


def test_a_restarted_worker_takes_back_what_it_held(database: Engine) -> None:
    """A killed worker's job does not wait for the reaper when the worker is back first."""
    (job_id,) = put(database, request("a"))
    held(database)
    with db.writing(database) as session:
        assert leases.take_back(session, "w1", NOW, limit=LIMIT) == [job_id]
    assert held(database).attempts == 2


def test_unknown_and_ended_jobs_are_refused_clearly(database: Engine) -> None:
    """The person is told what is wrong and where to look."""
    with pytest.raises(UsageError, match="no job 99"), db.writing(database) as session:
        work.cancel(session, 99, NOW)
    (job_id,) = put(database, request("a"))
    with db.writing(database) as session:
        work.cancel(session, job_id, NOW)
    with pytest.raises(UsageError, match="already ended"), db.writing(database) as session:
        work.cancel(session, job_id, NOW)


def test_a_slot_is_taken_once(database: Engine) -> None:
    """Two schedulers, one slot, one job; days of missed slots collapse to one (case C42)."""
    moment = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
    slot = fleet.slot_of(moment + timedelta(minutes=7), minutes=30)
    assert slot == moment
    with db.writing(database) as session:
        assert fleet.take_slot(session, "scout", slot, NOW)
    with db.writing(database) as session:
        assert not fleet.take_slot(session, "scout", slot, NOW)


def test_a_cancelled_job_that_finds_no_cage_is_cancelled_and_not_blocked(database: Engine) -> None:
    """It does not come back when a cage is proven."""
    (job_id,) = put(database, request("a"))
    lease = held(database)
    failure = JobFailure("no cage", failure_class="no_sandbox", blame=Blame.INFRASTRUCTURE)
    with db.writing(database) as session:
        leases.start(session, lease, START)
        work.cancel(session, job_id, START)
        leases.fail(session, lease, failure, START, limit=LIMIT)
        assert work.unblock(session, "no_sandbox", "build") == 0
    assert row(database, job_id).state == State.CANCELLED


def test_three_days_of_missed_slots_are_one(database: Engine) -> None:
    """A scheduler that was away for three days catches up once: one slot, one job (C42)."""
    every = timedelta(minutes=30)
    first = fleet.slot_of(NOW, minutes=30)
    with db.writing(database) as session:
        assert fleet.take_slot(session, "scout", first, NOW)
    later = NOW + timedelta(days=3)
    taken = 0
    for _ in range(3):
        with db.writing(database) as session:
            taken += fleet.take_slot(session, "scout", fleet.slot_of(later, minutes=30), later)
    assert taken == 1
    missed = (fleet.slot_of(later, minutes=30) - first) // every
    assert missed == 144
