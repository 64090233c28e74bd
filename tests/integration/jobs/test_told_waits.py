"""What a waiting job says of the machine, the rig, the needs and the person behind it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlmodel import Session
from support.rows import NOON, Rows
from support.work import request
from typer.testing import CliRunner

from jobs import db
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.errors import UsageError
from jobs.lifecycle import SOURCE_SHARE
from jobs.model import Kind, Lane, RigState, State
from jobs.planner import BY_HAND
from jobs.planning.drafts import LeftOut, Why
from jobs.rig_tables import RigHealthRow
from jobs.store import overview, reasons, rules, source_health, source_states, work
from jobs.store.expectations import Expectations
from jobs.tables import JobRow

MINUTE = timedelta(minutes=1)
HERE, THERE = "machine.1", "machine.2"


@pytest.fixture
def session(database: Engine):
    with db.writing(database) as opened:
        yield opened


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    return Settings()


def run(*words: str) -> str:
    done = CliRunner().invoke(build_app(words[0]), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def put(rows: Rows, state: State, **fields) -> JobRow:
    common = {"estimate_seconds": 600.0, "created_at": NOON, "due_at": NOON}
    return rows.job(state=state, **common | fields)


def told(session: Session, row: JobRow) -> tuple[str, dict[str, str]]:
    found = reasons.why(session, row.id or 0, NOON, share=SOURCE_SHARE)
    return found.job.expected, {wait.code: wait.says for wait in found.waits}


def build(rows: Rows, **fields) -> JobRow:
    return put(rows, State.QUEUED, kind=Kind.BUILD, queue="build", **fields)


def test_a_build_waits_until_the_bench_leaves_its_machine(session: Session) -> None:
    """A bench keeps its machine quiet; a builder elsewhere is not kept by it."""
    rows = Rows(session)
    rows.worker(name=f"build@{HERE}", queue="build")
    rows.worker(name=f"bench.cpu@{HERE}")
    running = put(rows, State.RUNNING, leased_by=f"bench.cpu@{HERE}", started_at=NOON - 4 * MINUTE)
    waiting = build(rows)
    phrase = f"waits until bench {running.id} leaves the machine"
    expected, waits = told(session, waiting)
    assert expected == f"starts in about 6 min, {phrase}, done in about 15 min"
    assert waits["machine"] == f"it {phrase}: {running.title}"
    running.estimate_seconds = None
    session.flush()
    assert told(session, waiting)[0] == f"not known, {phrase}"
    rows.worker(name=f"build@{THERE}", queue="build")
    expected, waits = told(session, waiting)
    assert expected == "starts soon, done in about 10 min"
    assert "machine" not in waits


def test_a_bench_waits_until_the_build_leaves_its_machine(session: Session) -> None:
    """It is alone there."""
    rows = Rows(session)
    rows.worker(name=f"bench.cpu@{HERE}")
    busy = put(
        rows,
        State.RUNNING,
        kind=Kind.BUILD,
        queue="build",
        leased_by=f"build@{HERE}",
        started_at=NOON,
    )
    expected, _ = told(session, put(rows, State.QUEUED))
    assert expected.startswith(f"starts in about 10 min, waits until build {busy.id} leaves")


def test_a_quarantined_rig_knows_no_start(session: Session) -> None:
    """Nobody knows when a person releases it; what is blocked there neither."""
    rows = Rows(session)
    rows.worker()
    rows.worker(queue="build")
    session.add(RigHealthRow(rig="cpu", state=RigState.QUARANTINED, why="fan", since=NOON))
    need = build(rows)
    blocked = put(rows, State.BLOCKED, needs=[need], blocked_by=f"job:{need.id}")
    for row in (put(rows, State.QUEUED), blocked):
        assert told(session, row)[0] == "not known, after the release of cpu"


def test_all_needs_are_named_and_the_ended_ones_with_their_way_out(session: Session) -> None:
    """Also where only the second of them is over; what is superseded waits for nothing."""
    rows = Rows(session)
    first, second, third = (build(rows) for _ in range(3))
    needs = [first, second, third]
    blocked = put(rows, State.BLOCKED, needs=needs, blocked_by=f"job:{first.id}")
    put(rows, State.SUPERSEDED, needs=[first])
    waits = told(session, blocked)[1]
    assert waits["needs"] == f"waits for jobs {first.id}, {second.id}, {third.id}"
    work.cancel(session, second.id or 0, NOON)
    says = f"blocked by cancelled job {second.id}: `forkscout retry {second.id}`"
    assert told(session, blocked)[1]["needs"] == f"{says}; waits for jobs {first.id}, {third.id}"
    assert (blocked.message, blocked.blocked_by) == (
        f"{says}; waits for jobs {first.id}, {third.id}",
        f"job:{second.id}",
    )
    lower = reasons.why(session, first.id or 0, NOON, share=SOURCE_SHARE)
    assert [each.id for each in lower.dependents] == [blocked.id]
    work.retry(session, second.id or 0, NOON)
    assert (blocked.message, blocked.blocked_by) == ("", f"job:{first.id}")


def test_many_jobs_are_told_what_each_is_told_alone(session: Session) -> None:
    """Places, starts and ends, over several queues, with blocked ones among them."""
    rows = Rows(session)
    for queue in ("bench.cpu", "build"):
        rows.worker(queue=queue)
    made = [put(rows, State.QUEUED, lane=lane, estimate_seconds=60.0 * lane) for lane in (4, 2, 3)]
    made += [build(rows), build(rows, estimate_seconds=None), build(rows)]
    made += [put(rows, State.BLOCKED, needs=[need]) for need in made[3:]]
    made += [put(rows, State.BLOCKED, needs=made[-3:])]
    alone = [Expectations(session, NOON).alone(row) for row in made]
    assert list(Expectations(session, NOON).each(made)) == alone
    assert [each.position for each in alone] == [3, 1, 2, 1, 2, 3, None, None, None, None]
    shown = {job.id: job.position for job in overview.jobs(session, now=NOON, limit=20)}
    assert shown == {row.id: each.position for row, each in zip(made, alone, strict=True)}


def test_a_person_who_joins_planned_work_is_told_of(session: Session) -> None:
    """Once, with the moment; work that a person began has no second one."""
    planned, own = request("a", source="engine:buun"), request("b", source=BY_HAND)
    work.enqueue(session, [planned, own], NOON)
    found = [
        work.enqueue(session, [request(name, source=BY_HAND)], NOON + MINUTE * minutes)
        for minutes in (5, 9)
        for name in ("a", "b")
    ]
    joined, begun = (next(iter(each.values())) for each in found[:2])
    assert joined is not None
    assert begun is not None
    origins = reasons.why(session, joined.id or 0, NOON, share=SOURCE_SHARE).origins
    assert [(o.kind, o.at) for o in origins if o.kind == "person"] == [
        ("person", NOON + 5 * MINUTE)
    ]
    assert "joined_at" not in begun.cause


def test_a_retry_of_what_needs_none_says_where_to_look(settings: Settings) -> None:
    """Queued, running and succeeded jobs are left as they are: a wrong wish, no failure."""
    database = db.open_database(settings)
    with db.writing(database) as session:
        rows = Rows(session)
        made = [
            rows.job(state=state, lane=Lane.FRESH).id
            for state in (State.QUEUED, State.RUNNING, State.SUCCEEDED)
        ]
    for number in made:
        with pytest.raises(UsageError, match="only what ended without an answer") as caught:
            run("retry", str(number))
        assert f"--why {number}" in caught.value.advice
    database.dispose()


def test_commands_name_whom_a_cancel_holds_and_what_a_retry_queues(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cancel` tells who waits now, `jobs` which need is over, `retry` what it queued besides."""
    monkeypatch.setenv("COLUMNS", "200")
    database = db.open_database(settings)
    with db.writing(database) as session:
        rows = Rows(session)
        need = put(rows, State.QUEUED, kind=Kind.BUILD, queue="build", lane=Lane.FRESH)
        bench = put(rows, State.BLOCKED, needs=[need], blocked_by=f"job:{need.id}", lane=Lane.FRESH)
        first, second, title = need.id, bench.id, need.title
    assert f"until then 1 job cannot start: {second}" in run("cancel", str(first))
    assert f"blocked by cancelled job {first}: `forkscout retry {first}`" in run("jobs")
    told = run("retry", str(second))
    assert f"job {first}, which it waits for, is queued again: {title}" in told
    listed = {each["id"]: each for each in json.loads(run("jobs", "--json"))}
    assert (listed[first]["position"], listed[second]["waits_for"]) == (1, [first])
    run("queue", "pause", "build", "--reason", "disk")
    shown = run("jobs")
    assert "fresh 1" in shown
    assert "build is paused since" in shown
    assert "(disk)" in shown
    assert {each["id"]: each["paused"] for each in json.loads(run("jobs", "--json"))} == {
        first: True,
        second: False,
    }
    database.dispose()


def test_a_stranger_forges_no_line(settings: Settings) -> None:
    """Reasons, names of workers and titles stay on the line on which they are printed."""
    database = db.open_database(settings)
    with db.writing(database) as session:
        rows = Rows(session)
        rows.worker(name="w\nworker b: fine", queue="build")
        rows.event(title="pushed\nevent 99: all is well\x1b[2J", planned=False)
    run("queue", "pause", "build", "--why", "one\ntwo\x1b[31m" + "x" * 1_000_000)
    told = [run("queue", "list"), run("events"), run("drain", "build"), run("plan", "--dry-run")]
    assert [text.count("\n") for text in told[:3]] == [1, 1, 1]
    assert len(told[0]) < 500
    assert "event 99: all is well" in told[3].splitlines()[0]
    assert "\x1b" not in "".join(told)
    database.dispose()


def test_both_reasons_of_a_quarantine_are_kept(settings: Settings) -> None:
    """And the second person hears of the first one."""
    database = db.open_database(settings)
    with db.writing(database) as session:
        Rows(session).rig(name="cpu")
    run("rig", "quarantine", "cpu", "--why", "fan")
    said = run("rig", "quarantine", "cpu", "--reason", "power")
    assert "cpu was quarantined already (fan); both reasons are kept" in said
    assert "power; before: fan" in run("rig", "show", "cpu")
    database.dispose()


def test_nothing_seen_nothing_moved_and_all_planned_differ(settings: Settings) -> None:
    """Each of them has another next step."""
    assert "scout run" in run("plan", "--dry-run", "--all")
    assert "nothing was seen yet" in run("events")
    database = db.open_database(settings)
    with db.writing(database) as session:
        source_states.lock_source_state(session, f"{source_health.KEY}packages", NOON)
    assert "nothing moved yet" in run("events")
    with db.writing(database) as session:
        Rows(session).event(planned=True)
    assert "every event is planned" in run("plan", "--dry-run", "--all")
    database.dispose()


def test_what_is_left_out_fits_the_width_that_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COLUMNS holds also where no terminal is; without it nothing is wrapped."""
    monkeypatch.delenv("COLUMNS", raising=False)
    database = db.open_database(settings)
    with db.writing(database) as session:
        event = Rows(session).event()
        long = LeftOut("id", "bench " + "a-long-name " * 9, Why.TRUST, "a person " * 20)
        rules.leave_out(session, event.id or 0, [long], NOON)
    assert max(map(len, run("plan", "--left-out").splitlines())) > 200
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, run("plan", "--left-out").splitlines())) <= 80
    database.dispose()
