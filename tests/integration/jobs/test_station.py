"""A worker's desk over both databases and a real broker, with handlers made up here."""

from __future__ import annotations

import errno
import threading
import time
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from support.waiting import wait_for
from support.work import request

from jobs import clock, db
from jobs.errors import JobFailure, Later, Permanent, StaleLease, Transient
from jobs.model import Blame, Kind, State
from jobs.station import is_settled, quiet_machine, reap, serve
from jobs.store import catalog, fleet, leases, work
from jobs.tables import WorkerRow


@pytest.fixture
def station(make_station, database, embedded):
    return make_station(database, embedded)


def put(station, *requests):
    with db.writing(station.database) as session:
        found = work.enqueue(session, requests, clock.now())
        return [row.id for row in found.values()]


def row(station, job_id):
    with db.reading(station.database) as session:
        return work.job(session, job_id)


def greet(station):
    now = clock.now()
    worker = WorkerRow(
        name=station.name, queue="build", host="here", pid=1, started_at=now, beat_at=now
    )
    with db.writing(station.database) as session:
        fleet.greet(session, worker)


def ends_with(outcome):
    """A handler that raises an exception or leaves a sentence behind."""

    def handler(station, held, control):
        if isinstance(outcome, Exception):
            raise outcome
        return lambda _session: outcome

    return {Kind.SMOKE: handler}


def works_until_stopped(began):
    """A handler that goes on until it is asked to stop."""

    def handler(station, held, control):
        began.set()
        while True:
            control.wait(60)

    return {Kind.SMOKE: handler}


class Serving:
    """`serve` in a thread; `wait` gives back how many jobs it did."""

    def __init__(self, station, handlers, queue="build"):
        self.done = None
        self.thread = threading.Thread(target=self._serve, args=(station, queue, handlers))
        self.thread.start()

    def _serve(self, station, queue, handlers):
        self.done = serve(station, queue, handlers)

    def wait(self, seconds=30):
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "serve did not end"
        return self.done


def test_everything_due_is_done_and_recorded(station):
    """One look serves the whole queue; each job ends with its handler's sentence."""
    ids = put(station, request("a"), request("b"), request("c", queue="bench.cpu"))
    assert serve(station, "build", ends_with("well done")) == 2
    assert serve(station, "build", ends_with("well done")) == 0
    first, second, other = (row(station, each) for each in ids)
    assert (first.state, first.message, first.attempts) == (State.SUCCEEDED, "well done", 1)
    assert second.state == State.SUCCEEDED
    assert other.state == State.QUEUED
    assert first.leased_by is None
    assert first.finished_at is not None


def test_what_becomes_due_by_a_job_is_rung_for(station, embedded):
    """The end of a job frees the next one in another queue, and its doorbell is waiting."""
    first = request("first")
    put(station, first, request("next", queue="bench.cpu", needs=(first.identity,)))
    assert serve(station, "build", ends_with("done")) == 1
    with embedded.client() as client:
        assert client.llen("bench.cpu") == 1
        assert client.llen("build") == 0


@pytest.mark.parametrize(
    ("blame", "state"),
    [
        (Blame.ENGINE, State.FAILED),
        (Blame.CONFIGURATION, State.FAILED),
        (Blame.INFRASTRUCTURE, State.QUEUED),
        (Blame.ENVIRONMENT, State.QUEUED),
    ],
)
def test_a_failure_is_kept_with_class_blame_and_advice(station, blame, state):
    """What an engine or a configuration did is final; the rest waits and is tried again."""
    failure = JobFailure("it broke", failure_class="odd", blame=blame, advice="look at it")
    (job,) = put(station, request("a"))
    assert serve(station, "build", ends_with(failure)) == 1
    found = row(station, job)
    assert (found.state, found.failure_class, found.blame) == (state, "odd", blame)
    assert (found.message, found.advice, found.attempts) == ("it broke", "look at it", 1)
    assert (found.due_at > clock.now()) == (state is State.QUEUED)


@pytest.mark.parametrize(
    ("fault", "failure_class", "state"),
    [
        (Transient("a hiccup", advice="wait"), "transient", State.QUEUED),
        (Permanent("no way", advice="change it"), "refused", State.FAILED),
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full", State.QUEUED),
        (RuntimeError("oh"), "bug", State.QUEUED),
    ],
)
def test_every_exception_gets_a_class(station, fault, failure_class, state):
    """Only our own bug is logged with its traceback; each row says what happened and what next."""
    (job,) = put(station, request("a"))
    with capture_logs() as logs:
        serve(station, "build", ends_with(fault))
    found = row(station, job)
    assert (found.state, found.failure_class) == (state, failure_class)
    assert found.message
    assert found.advice
    (entry,) = [each for each in logs if each["event"] == "job failed"]
    assert entry["exc_info"] is (failure_class == "bug")


def test_the_last_attempt_makes_a_dead_letter(make_station, database, embedded):
    """A fault of the machine is tried again as often as the setting says, then it is told."""
    station = make_station(database, embedded, max_attempts=1)
    (job,) = put(station, request("a"))
    serve(station, "build", ends_with(Transient("again and again")))
    assert row(station, job).state == State.DEAD


def test_a_running_job_is_cancelled_within_seconds(station):
    """The keeper hears of the cancel, the handler stops, the row says cancelled."""
    began = threading.Event()
    (job,) = put(station, request("a"))
    serving = Serving(station, works_until_stopped(began))
    assert began.wait(30)
    with db.writing(station.database) as session:
        work.cancel(session, job, clock.now())
    asked = time.monotonic()
    assert serving.wait() == 1
    assert time.monotonic() - asked < 5
    found = row(station, job)
    assert (found.state, found.message) == (State.CANCELLED, "cancelled while it ran")
    assert found.leased_by is None


def test_a_drained_worker_gives_its_job_back(station):
    """The attempt does not count, the next job is left alone, and the lease is free."""
    began = threading.Event()
    greet(station)
    job, other = put(station, request("a"), request("b"))
    serving = Serving(station, works_until_stopped(began))
    assert began.wait(30)
    with db.writing(station.database) as session:
        fleet.drain(session, station.name)
    assert serving.wait() == 0
    found = row(station, job)
    assert (found.state, found.attempts, found.leased_by) == (State.QUEUED, 0, None)
    assert row(station, other).attempts == 0


def test_a_draining_worker_takes_nothing(station):
    """A doorbell that comes too late finds a closed desk."""
    greet(station)
    (job,) = put(station, request("a"))
    with db.writing(station.database) as session:
        fleet.drain(session, station.name)
    assert serve(station, "build", ends_with("done")) == 0
    assert row(station, job).attempts == 0


def test_a_result_of_a_lost_lease_is_refused(station):
    """What somebody else has taken over is neither ended nor recorded by the first holder."""
    recorded = []
    (job,) = put(station, request("a"))

    def handler(station, held, control):
        with db.writing(station.database) as session:
            leases.take_back(session, station.name, clock.now(), limit=3)
            leases.lease(session, "build", "w2", clock.now() + timedelta(seconds=1))
        return lambda _session: recorded.append("written") or "mine"

    with capture_logs() as logs:
        serve(station, "build", {Kind.SMOKE: handler})
    found = row(station, job)
    assert (found.state, found.leased_by, found.attempts) == (State.LEASED, "w2", 2)
    assert recorded == []
    assert any("lease is lost" in each["event"] for each in logs)


def test_a_lost_lease_stops_the_work(station):
    """The keeper tells a handler whose job was taken over; its failure is not recorded either."""
    began = threading.Event()
    (job,) = put(station, request("a"))
    serving = Serving(station, works_until_stopped(began))
    assert began.wait(30)
    with db.writing(station.database) as session:
        leases.take_back(session, station.name, clock.now(), limit=1)
    serving.wait()
    assert row(station, job).state == State.DEAD


def test_a_record_that_fails_leaves_nothing(station):
    """Result and end of job are one transaction: what was written before the fault is undone."""
    (job,) = put(station, request("a"))

    def handler(station, held, control):
        def record(session):
            fleet.rig(session, "half", clock.now())
            raise RuntimeError("in the middle")

        return record

    serve(station, "build", {Kind.SMOKE: handler})
    found = row(station, job)
    assert (found.state, found.failure_class) == (State.QUEUED, "bug")
    with db.reading(station.database) as session:
        assert catalog.rigs(session) == []


def test_progress_and_heartbeat_reach_the_row(station):
    """While a job runs its row says how far it is."""
    (job,) = put(station, request("a"))
    go_on = threading.Event()

    def handler(station, held, control):
        control.report("compile", done=3, total=9, unit="steps")
        assert go_on.wait(30)
        return lambda _session: "done"

    serving = Serving(station, {Kind.SMOKE: handler})
    found = wait_for(lambda: (r := row(station, job)).progress and r)
    beat = found.beat_at
    assert (found.progress["phase"], found.progress["done"]) == ("compile", 3)
    assert found.state == State.RUNNING
    wait_for(lambda: row(station, job).beat_at > beat, what="a second beat")
    go_on.set()
    assert serving.wait() == 1


def test_a_silent_job_is_reaped(make_station, database, embedded):
    """A holder that says nothing for longer than the lease loses the job, not its trace."""
    station = make_station(database, embedded, lease_seconds=0.3, heartbeat_seconds=0.1)
    (job,) = put(station, request("a"))
    with db.writing(database) as session:
        held = leases.lease(session, "build", "gone", clock.now())
    assert reap(station) == []
    time.sleep(0.5)
    assert reap(station) == [job]
    found = row(station, job)
    assert (found.state, found.failure_class, found.attempts) == (State.QUEUED, "worker_lost", 1)
    with db.writing(database) as session, pytest.raises(StaleLease):
        leases.succeed(session, held, clock.now())


def test_a_bench_waits_for_builds_and_goes_before_the_next(tmp_path):
    """The machine is quiet when a bench starts; a build that comes later waits behind it."""
    order = []
    build_in, build_may_go = threading.Event(), threading.Event()

    def first_build():
        with quiet_machine(tmp_path, alone=False):
            build_in.set()
            build_may_go.wait(30)
            order.append("build")

    def bench():
        with quiet_machine(tmp_path, alone=True):
            order.append("bench")
            time.sleep(0.3)

    def second_build():
        with quiet_machine(tmp_path, alone=False):
            order.append("next build")

    threads = [threading.Thread(target=first_build)]
    threads[0].start()
    assert build_in.wait(30)
    for late in (bench, second_build):
        threads.append(threading.Thread(target=late))
        threads[-1].start()
        time.sleep(0.5)
    assert order == []
    build_may_go.set()
    for thread in threads:
        thread.join(30)
    assert order == ["build", "bench", "next build"]


def test_builds_share_the_machine(tmp_path):
    """Two jobs that do not measure run side by side."""
    with quiet_machine(tmp_path, alone=False) as one, quiet_machine(tmp_path, alone=False) as two:
        assert one
        assert two


def test_waiting_for_a_quiet_machine_can_be_given_up(tmp_path):
    """A drained worker does not wait for a machine that stays busy."""
    with (
        quiet_machine(tmp_path, alone=False),
        quiet_machine(tmp_path, alone=True, give_up=lambda: True) as free,
    ):
        assert not free
    with quiet_machine(tmp_path, alone=True) as free:
        assert free


@pytest.mark.parametrize("state", [State.QUEUED, State.LEASED, State.RUNNING])
def test_the_system_is_settled_when_nothing_runs_by_itself(state):
    """Blocked jobs wait for a person or another job, and do not count."""
    assert is_settled({State.BLOCKED: 1, State.SUCCEEDED: 3})
    assert not is_settled({state: 1})


def test_a_job_that_is_put_off_waits_for_its_time_and_loses_no_attempt(station):
    """However often it happens."""
    [number] = put(station, request("later"))
    for _ in range(station.settings.max_attempts + 1):
        with db.writing(station.database) as session:
            due = work.job(session, number)
            due.due_at = clock.now()
            session.add(due)
        assert serve(station, "build", ends_with(Later("not yet", wait_seconds=300))) == 1
        found = row(station, number)
        assert (found.state, found.attempts, found.message) == (State.QUEUED, 0, "not yet")
        assert timedelta(seconds=290) < found.due_at - clock.now() <= timedelta(seconds=300)
