"""How often and why a negative is tried again, over both databases: never for what wavers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlmodel import select
from support.one_stack import RIG, Bench, crash

from jobs import db
from jobs.lifecycle import NOT_APPROVED
from jobs.model import Blame, State, Trust
from jobs.negative_tables import NegativeRow
from jobs.store import approvals, negatives, noted, retests
from jobs.tables import EngineRow, JobRow, RigRow, StackRow, WorkerRow

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def bench(database):
    return Bench(database, NOON)


def fail(bench, failure_class="fattn", **fields):
    """The stack fails at the newest revision; its negative."""
    bench.ask(**fields)
    (known,) = bench.work_off(failure=crash(failure_class))
    return known.born


def worker(bench, name, *, sandbox, silent_for=timedelta(0)):
    with db.writing(bench.database) as session:
        row = session.get(WorkerRow, name) or WorkerRow(
            name=name, queue=f"bench.{RIG}", host="h", pid=1, started_at=NOON, beat_at=NOON
        )
        row.sandbox, row.beat_at = sandbox, bench.now - silent_for
        session.add(row)


def retested(bench, *, times, every, change=None):
    """How many benches a sweep asks for, looked at so often; each of them fails again."""
    count = 0
    for number in range(times):
        bench.later(seconds=every)
        if change is not None:
            change(number)
        count += sum(job.kind == "bench" for job in bench.look())
        bench.work_off(failure=crash())
    return count


def refusals(bench):
    with db.reading(bench.database) as session:
        rows = session.exec(select(NegativeRow)).all()
        return [m.refusal for m in noted.moves_of(session, [row.id for row in rows])]


@pytest.mark.parametrize("name", ["a-worker", "z-worker"])
def test_two_workers_with_different_cages_ask_nothing(bench, name) -> None:
    """The answer depended on the cage of the worker that held the job, and that is still there."""
    worker(bench, name, sandbox="landlock")
    worker(bench, "w1", sandbox="bubblewrap")
    row = fail(bench)
    assert row.grounds["sandbox"] == "bubblewrap"
    assert retested(bench, times=10, every=5) == 0


@pytest.mark.parametrize("name", ["a-worker", "z-worker"])
def test_the_row_of_a_worker_that_was_killed_says_nothing(bench, name) -> None:
    """It said no farewell, and its cage is nobody's."""
    worker(bench, "w1", sandbox="bubblewrap")
    fail(bench)
    worker(bench, name, sandbox="landlock", silent_for=timedelta(days=90))
    assert retested(bench, times=3, every=5) == 0
    worker(bench, "w1", sandbox="landlock")
    assert retested(bench, times=3, every=5) == 1


def test_a_driver_that_goes_to_and_fro_is_tried_once(bench) -> None:
    """What stood in an earlier answer is no news, 144 times a day."""
    fail(bench)

    def flip(number):
        bench.change(RigRow, RIG, facts={"driver": ("580.2", "570.1")[number % 2]})

    assert retested(bench, times=144, every=600, change=flip) == 1


def test_flags_that_go_to_and_fro_are_tried_once(bench) -> None:
    """The same holds for the words of the watch list."""
    fail(bench)

    def flip(number):
        bench.change(StackRow, "qwen-dflash", flags=[["--x"], []][number % 2])

    assert retested(bench, times=20, every=5 * 3600, change=flip) == 1


def test_a_machine_that_is_new_each_time_is_tried_once_a_day(bench) -> None:
    """Whatever it says it is."""
    fail(bench)

    def anew(number):
        bench.change(RigRow, RIG, facts={"driver": f"600.{number}"})

    assert retested(bench, times=20, every=6 * 3600, change=anew) == 5
    assert noted.ONCE_A_DAY in refusals(bench)


def test_a_revision_and_a_person_do_not_wait_a_day(bench) -> None:
    """A push after the retest of a driver is tried at once."""
    fail(bench)
    bench.change(RigRow, RIG, facts={"driver": "580.2"})
    bench.look()
    bench.work_off(failure=crash())
    bench.later(minutes=5)
    assert [job.kind for job in bench.push("2")] == ["build", "bench"]
    bench.work_off(failure=crash())
    with db.writing(bench.database) as session:
        last = negatives.standing(session)[-1].id
        assert retests.retry(session, last, bench.now)


def test_what_moved_back_before_its_turn_is_not_tried(bench) -> None:
    """The reason is gone; the move says so."""
    fail(bench)
    bench.change(RigRow, RIG, facts={"driver": "580.2"})
    bench.look()
    bench.work_off(failure=crash())
    bench.change(RigRow, RIG, facts={"driver": "590.3"})
    bench.later(hours=1)
    assert bench.look() == []
    bench.change(RigRow, RIG, facts={"driver": "580.2"})
    bench.later(hours=25)
    assert bench.look() == []
    assert refusals(bench)[-1] == noted.MOVED_BACK


@pytest.mark.parametrize(
    ("forbids", "allows"),
    [
        ({"retired": True}, {"retired": False}),
        ({"trust": Trust.NEVER}, {"trust": Trust.AUTO}),
    ],
)
def test_what_was_refused_is_tried_once_it_may_be(bench, forbids, allows) -> None:
    """Not first when the date passes."""
    fail(bench)
    bench.change(EngineRow, "buun", **forbids)
    bench.change(RigRow, RIG, facts={"driver": "580.2"})
    bench.later(hours=1)
    assert bench.look() == []
    bench.change(EngineRow, "buun", **allows)
    bench.later(hours=1)
    (job,) = [job for job in bench.look() if job.kind == "bench"]
    assert job.reason == "the driver went from 570.1 to 580.2"
    assert bench.look() == []


def approve(bench, digit, **more):
    with db.writing(bench.database) as session:
        approvals.approve(session, f"buun@{digit * 40}", by="ann", now=bench.now, **more)


@pytest.fixture
def approving(bench):
    """An engine whose every commit needs a word, and the first commit failed with one."""
    bench.change(EngineRow, "buun", trust=Trust.APPROVE)
    approve(bench, "1")
    fail(bench)
    return bench


def test_an_approved_commit_is_tried_again_while_its_word_holds(approving) -> None:
    """Something beside the engine moved; nobody has to be asked twice."""
    approving.change(RigRow, RIG, facts={"driver": "580.2"})
    assert [job.state for job in approving.look()] == [State.QUEUED]


def test_a_newer_commit_without_a_word_does_not_keep_an_approved_one_from_it(approving) -> None:
    """It waits for its own; the driver is answered at the commit that may run."""
    approving.later(hours=1)
    [build, bench] = approving.push("2")
    assert (build.blocked_by, bench.blocked_by) == (NOT_APPROVED, f"job:{build.id}")
    approving.change(RigRow, RIG, facts={"driver": "580.2"})
    approving.later(hours=1)
    [job] = approving.look()
    assert (job.state, job.payload["revision_id"]) == (
        State.QUEUED,
        bench.payload["revision_id"] - 1,
    )


def test_a_retest_waits_and_says_for_whose_word(approving) -> None:
    """Of a build that is there, as a reason; it goes on once the word is given."""
    approving.change(RigRow, RIG, facts={"driver": "580.2"})
    approving.later(days=15)
    assert approving.look() == []
    says = refusals(approving)[-1]
    assert "buun at 111111111111 waits for a person's approval: that of ann ended" in says
    assert f"forkscout approve buun@{'1' * 40}" in says
    approve(approving, "1")
    approving.later(minutes=5)
    assert [job.kind for job in approving.look()] == ["bench"]


def test_a_push_that_nobody_approved_waits_as_a_build(approving) -> None:
    """It stands in the list of what waits, with its bench behind it, and goes on with the word."""
    approving.later(hours=1)
    [build, bench] = approving.push("2")
    assert (build.state, build.blocked_by) == (State.BLOCKED, NOT_APPROVED)
    approve(approving, "2")
    assert approving.job(build.id).state == State.QUEUED
    approving.work_off(50.0, 50.1, 50.2)
    assert approving.job(bench.id).state == State.SUCCEEDED


def test_a_retest_behind_a_build_that_ended_badly_holds_nothing(bench) -> None:
    """It is asked anew day by day, until a build succeeds, and then as its days say."""
    fail(bench)
    bench.revision("2", "master@2")
    measured = []
    lost = crash("disk_full", Blame.INFRASTRUCTURE)
    for day in range(32):
        bench.later(days=1)
        bench.look()
        if day < 2:
            for _ in range(3):
                bench.work_off(build_failure=lost)
                bench.later(hours=1)
            continue
        measured += bench.work_off(failure=crash())
    with db.reading(bench.database) as session:
        benches = session.exec(select(JobRow).where(JobRow.kind == "bench")).all()
        states = [job.state for job in benches]
    assert states.count(State.BLOCKED) == 0
    assert len(measured) >= 2
