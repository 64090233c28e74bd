"""Goldens, quarantine and doubt over both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from support.rows import Rows
from support.work import NOW, request

from jobs import clock, db, rig_care
from jobs.errors import UsageError
from jobs.health import Measured
from jobs.machine_check import Obstacle
from jobs.model import Blame, Kind, Lane, RigState, State, Validity
from jobs.payloads import BenchPayload, HealthPayload
from jobs.station import has_due, serve
from jobs.store import board, fleet, leases, line, reasons, results, rigs, work, workshop
from jobs.tables import JobRow, ResultRow, WorkerRow

QUEUE = "bench.cpu"
SLOW = Measured(speed=20.0)
WELL = Measured(speed=66.0)


@pytest.fixture
def rig(database):
    """A rig `cpu` with a learned golden: one result of 66 t/s, measured at NOW."""
    with db.writing(database) as session:
        rows = Rows(session)
        rows.rig(name="cpu")
        engine = rows.engine(
            name="wheel",
            family="xllamacpp",
            package="xllamacpp",
            targets=[{"rig": "cpu", "via": "wheel"}],
        )
        revision = rows.revision(engine, label="1.0", commit="c" * 64)
        model = rows.model_file(name="golden:q4")
        learned = rigs.learn(
            session,
            "cpu",
            payload(revision.id, model.id),
            revision=revision.label,
            speeds=[65.0, 66.0, 67.0],
            text_sha256="",
            now=NOW,
        )
        assert learned is not None
    return "cpu"


def payload(revision_id, model_id):
    return BenchPayload(
        revision_id=revision_id,
        build_identity="b" * 64,
        model_file_id=model_id,
        scenario="decode-128",
        rig="cpu",
        stack="tiny-cpu",
    )


def run(database, found, *, at, job_id=None, environment=None):
    with db.writing(database) as session:
        golden = rigs.golden_of(session, "cpu")
        return rigs.record_run(session, golden, found, at, job_id=job_id, environment=environment)


def state(database):
    with db.reading(database) as session:
        return rigs.health_of(session, "cpu").state


def shut(database):
    run(database, SLOW, at=NOW + timedelta(hours=1))
    return run(database, SLOW, at=NOW + timedelta(hours=2))


def ask(database, at, served=(QUEUE,)):
    with db.writing(database) as session:
        work.take_turn(session)
        return rig_care.ask_due(session, at, served=set(served))


def test_the_first_result_is_the_golden_and_trusts_the_rig(database, rig) -> None:
    """A second result changes nothing; nothing is asked that day, one short run the next."""
    assert state(database) is RigState.TRUSTED
    with db.writing(database) as session:
        assert (
            rigs.learn(
                session, "cpu", payload(1, 1), revision="2.0", speeds=[9.0], text_sha256="", now=NOW
            )
            is None
        )
    assert ask(database, NOW + timedelta(hours=11)) == []
    jobs = ask(database, NOW + timedelta(days=1))
    (job,) = [each for each in jobs if each.kind == Kind.SMOKE]
    wanted = HealthPayload.model_validate(job.payload)
    assert (job.lane, job.queue, wanted.boots, wanted.runs) == (Lane.HEALTH, QUEUE, 1, 3)
    assert job.reason == "golden of cpu: daily"
    assert ask(database, NOW + timedelta(days=1, hours=1)) == []


def test_nothing_is_asked_of_a_rig_that_nobody_serves(database, rig) -> None:
    """A rig in a drawer collects no jobs."""
    assert ask(database, NOW + timedelta(days=1), served=["build"]) == []


def test_a_quarantined_rig_serves_health_jobs_alone(database, rig) -> None:
    """Others keep their place and are told why; the rest of the queues goes on."""
    with db.writing(database) as session:
        jobs = work.enqueue(
            session,
            [
                request("bench", kind=Kind.BENCH, queue=QUEUE, lane=Lane.ON_DEMAND),
                request("other", kind=Kind.BENCH, queue="bench.other"),
            ],
            NOW,
        )
        waiting = next(each.id for each in jobs.values() if each and each.queue == QUEUE)
    assert "cpu is quarantined" in shut(database)
    later = NOW + timedelta(hours=3)
    with db.writing(database) as session:
        assert leases.lease(session, QUEUE, "w1", later) is None
        assert line.due_in(session, QUEUE, later, most=9) == 0
        assert leases.lease(session, "bench.other", "w2", later) is not None
        says = [each.says for each in reasons.why(session, waiting, later, share=1).waits]
        assert any("quarantined since" in each and "20.0 t/s" in each for each in says)
    (health_job,) = [each for each in ask(database, later) if each.kind == Kind.SMOKE]
    with db.writing(database) as session:
        row = session.get_one(JobRow, health_job.id)
        row.state, row.blocked_by = State.QUEUED.value, None
        session.add(row)
    with db.writing(database) as session:
        held = leases.lease(session, QUEUE, "w1", later)
        assert held is not None
        assert (held.job_id, held.kind) == (health_job.id, Kind.SMOKE)
        assert leases.lease(session, QUEUE, "w1", later) is None


def test_what_was_measured_since_the_last_good_run_is_doubtful(database, rig) -> None:
    """It leaves ranks and baselines, is said beside the number, and no engine is blamed."""
    with db.writing(database) as session:
        rows = Rows(session)
        rig_id = workshop.shown_rigs(session) and rigs.catalog.rig_named(session, "cpu").id
        before = rows.result(rig_id=rig_id, created_at=NOW - timedelta(minutes=1))
        after = rows.result(rig_id=rig_id, created_at=NOW + timedelta(minutes=5), cell=before.cell)
        elsewhere = rows.result(created_at=NOW + timedelta(minutes=5))
        failed = rows.job(
            state=State.FAILED,
            blame=Blame.ENGINE,
            message="crashed",
            finished_at=NOW + timedelta(minutes=6),
        )
    shut(database)
    with db.reading(database) as session:
        kept = [session.get_one(ResultRow, each.id).doubt for each in (before, elsewhere)]
        assert kept == ["", ""]
        shown = board.result(session, after.id).entry
        assert (shown.validity, session.get_one(ResultRow, after.id).validity) == (
            Validity.DOUBTFUL,
            Validity.OK,
        )
        assert "quarantined at 2026-11-30 14:00 UTC" in shown.validity_reason
        assert after.id not in [each.id for each in results.cell_history(session, after.cell)]
        row = session.get_one(JobRow, failed.id)
        assert (row.blame, row.state) == (Blame.ENVIRONMENT, State.FAILED)
        assert row.message.startswith("crashed; no engine is blamed")
        (found,) = [each for each in workshop.shown_rigs(session) if each.name == "cpu"]
        assert found.doubtful_results == 1
    with db.writing(database) as session:
        assert rigs.clear_doubt(session, "cpu") == 1


def test_a_rig_that_recovers_is_trusted_by_itself(database, rig) -> None:
    """An hour later it is asked, then once more at once; two in the band lift the quarantine."""
    shut(database)
    assert ask(database, NOW + timedelta(hours=2, minutes=30)) == []
    run(database, WELL, at=NOW + timedelta(hours=4))
    assert state(database) is RigState.QUARANTINED
    (job,) = [e for e in ask(database, NOW + timedelta(hours=4)) if e.kind == Kind.SMOKE]
    run(database, WELL, at=NOW + timedelta(hours=5), job_id=job.id)
    assert state(database) is RigState.TRUSTED


def test_another_environment_is_a_new_baseline(database, rig) -> None:
    """A new driver that is half as fast blames nobody: the golden is measured anew."""
    run(database, WELL, at=NOW + timedelta(hours=1), environment={"driver": "570"})
    says = run(database, SLOW, at=NOW + timedelta(hours=2), environment={"driver": "575"})
    assert says.startswith("baseline: 20.0 t/s")
    assert state(database) is RigState.TRUSTED
    run(database, WELL, at=NOW + timedelta(hours=3), environment={"driver": "575"})
    with db.reading(database) as session:
        newest = rigs.runs(session, "cpu", most=9)
    assert [each.outcome for each in newest] == ["out_of_band", "baseline", "in_band"]


def test_a_health_job_that_died_speaks_against_the_rig(database, rig) -> None:
    """A machine that is lost each time is quarantined; one that a person cancels is not."""
    for hours, (ending, expected) in enumerate(
        [
            (State.CANCELLED, RigState.TRUSTED),
            (State.DEAD, RigState.TRUSTED),
            (State.DEAD, RigState.QUARANTINED),
        ]
    ):
        at = NOW + timedelta(days=1 + hours)
        (job,) = [each for each in ask(database, at) if each.kind == Kind.SMOKE]
        with db.writing(database) as session:
            row = session.get_one(JobRow, job.id)
            row.state, row.finished_at, row.message = ending.value, at, "worker fell silent"
            session.add(row)
        ask(database, at + timedelta(minutes=1))
        assert state(database) is expected
        with db.writing(database) as session:
            for row in session.exec(line.select(JobRow)):
                if row.state in work.LIVE:
                    row.state, row.finished_at = State.SUCCEEDED.value, at


def test_a_golden_of_a_watch_list_takes_the_place_of_a_learned_one(database, rig) -> None:
    """It is measured at once; one whose revision is not known yet says so and queues nothing."""
    with db.writing(database) as session:
        rows = Rows(session)
        model = rows.model_file(name="tiny:f32")
        engine = rigs.catalog.engine_named(session, "wheel")
        rigs.catalog.upsert_stack(
            session,
            "tiny-cpu",
            now=NOW,
            values={"engine_id": engine.id, "target": model.name, "scenarios": ["decode-128"]},
        )
        assert rigs.upsert_golden(session, rigs.Wish("cpu", "tiny-cpu", "9.9", 60, 75), NOW)
        assert not rigs.upsert_golden(session, rigs.Wish("cpu", "tiny-cpu", "9.9", 60, 75), NOW)
    later = NOW + timedelta(minutes=1)
    assert ask(database, later) == []
    with db.writing(database) as session:
        assert "9.9" in rigs.golden_of(session, "cpu").fault
        rigs.upsert_golden(session, rigs.Wish("cpu", "tiny-cpu", "1.0", 60, 75), later)
    (job,) = [e for e in ask(database, later) if e.kind == Kind.SMOKE]
    assert job.payload["golden_id"]
    run(database, Measured(speed=59.0), at=later)
    assert state(database) is RigState.TRUSTED
    run(database, Measured(speed=59.0), at=later)
    assert state(database) is RigState.QUARANTINED


def test_only_rigs_that_exist_are_shut(database) -> None:
    """A misspelt name shuts nothing silently."""
    with db.writing(database) as session, pytest.raises(UsageError, match="rig"):
        rigs.quarantine(session, "cpuu", "why", NOW)


def test_a_machine_that_is_not_well_takes_no_bench_and_harms_no_job(
    database, make_station, embedded
) -> None:
    """A card that is lost holds its worker back; forty jobs keep state and attempts (case C114)."""
    station = make_station(database, embedded)
    now = clock.now()
    with db.writing(database) as session:
        jobs = [request(f"job {number}", queue=QUEUE) for number in range(40)]
        work.enqueue(session, jobs, now)
        worker = WorkerRow(
            name=station.name, queue=QUEUE, host="h", pid=1, started_at=now, beat_at=now
        )
        fleet.greet(session, worker)
    lost = Obstacle("card_lost", "the card does not answer: version mismatch", "restart")
    handlers = {Kind.SMOKE: lambda *_: lambda _session: "done"}
    assert serve(station, QUEUE, handlers, check=lambda _: lost) == 0
    with db.reading(database) as session:
        rows = session.exec(line.select(JobRow)).all()
        assert {(row.state, row.attempts) for row in rows} == {("queued", 0)}
        says = [each.says for each in reasons.why(session, rows[0].id, now, share=1).waits]
        assert any("takes no bench: the card does not answer" in each for each in says)
        (found,) = workshop.workers_at_work(session, now, silent_seconds=45)
        assert (found.condition, found.advice) == ("held", "restart")
    assert has_due(station, QUEUE)
    assert serve(station, QUEUE, handlers, check=lambda _: None) == 40
    with db.reading(database) as session:
        (found,) = workshop.workers_at_work(session, now, silent_seconds=45)
        assert (found.condition, found.trouble) == ("idle", "")


def test_what_waits_for_a_bench_to_leave_the_machine_is_no_alarm(database) -> None:
    """The worker of builds is idle because the machine is kept quiet; another machine's is not."""
    with db.writing(database) as session:
        rows = Rows(session)
        rows.worker(name="build@a.1", queue="build", beat_at=NOW, started_at=NOW, heard_at=NOW)
        work.enqueue(session, [request("a")], NOW - timedelta(minutes=20))
        bench = rows.job(state=State.RUNNING, queue="bench.cpu", leased_by="bench.cpu@a.1")
        assert workshop.workshop(session, NOW, silent_seconds=45).alarms == ()
        bench.leased_by = "bench.cpu@b.1"
        session.add(bench)
        session.flush()
        assert len(workshop.workshop(session, NOW, silent_seconds=45).alarms) == 1


def test_an_old_ready_job_beside_an_idle_worker_is_an_alarm(database) -> None:
    """Eleven minutes are told, nine are not; so is a worker that hears no doorbell (case C39)."""
    with db.writing(database) as session:
        worker = Rows(session).worker(beat_at=NOW, started_at=NOW, heard_at=NOW, queue="build")
        work.enqueue(session, [request("a")], NOW - timedelta(minutes=9))
    with db.writing(database) as session:
        assert workshop.workshop(session, NOW, silent_seconds=45).alarms == ()
        late = NOW + timedelta(minutes=2)
        session.get_one(WorkerRow, worker.name).beat_at = late
        (alarm,) = workshop.workshop(session, late, silent_seconds=45).alarms
        assert "due for 11 min" in alarm.says
        deaf = NOW + timedelta(minutes=16)
        session.get_one(WorkerRow, worker.name).beat_at = deaf
        says = [each.says for each in workshop.workshop(session, deaf, silent_seconds=45).alarms]
        assert any("no doorbell since" in each for each in says)


def test_a_silent_worker_is_said_so_with_its_age(database) -> None:
    """Three hours of silence are gone, one minute is silent, and the job is named (case C45)."""
    with db.writing(database) as session:
        rows = Rows(session)
        rows.worker(name="a", beat_at=NOW - timedelta(hours=3))
        rows.worker(name="b", beat_at=NOW - timedelta(minutes=1))
        rows.worker(name="c", beat_at=NOW)
        rows.job(state=State.RUNNING, leased_by="b", beat_at=NOW - timedelta(minutes=1))
        found = workshop.workers_at_work(session, NOW, silent_seconds=45)
    assert [(w.name, w.condition, w.beat_age_seconds) for w in found] == [
        ("a", "gone", 10_800),
        ("b", "silent", 60),
        ("c", "idle", 0),
    ]
    assert found[1].job is not None
    assert replace(found[1].job, title="").title == ""
