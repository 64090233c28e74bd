"""Many events, heads that replace each other, events of odd shape: what planning makes of them."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import event as sql_event
from sqlmodel import Session, select
from structlog.testing import capture_logs
from support.fit_rows import shaped_file
from support.rows import NOON, Rows
from support.shapes import qwen36

from jobs import db, leasing
from jobs.cli.explanation import told
from jobs.model import Kind, Lane, State, Trust
from jobs.planner import publish_request
from jobs.planning.drafts import Why
from jobs.planning_round import plan_round, planning
from jobs.planning_tables import BudgetRow, LeftOutRow, RuleRow
from jobs.store import reasons, rules, superseding, work
from jobs.tables import EngineRow, EventRow, JobRow, RevisionRow, StackRow

SCENARIOS = ("decode-128", "decode-800")


class Fork:
    """One fork with a stack on one rig; its pushes replace each other."""

    def __init__(self, database):
        self.database, self.heads = database, []
        with db.writing(database) as session:
            rows = Rows(session)
            engine = rows.engine(
                name="buun",
                repo="spiritbuun/buun-llama-cpp",
                trust=Trust.AUTO,
                targets=[{"rig": "big", "via": "cmake", "cuda_arch": "120"}],
            )
            self.engine_id = engine.id
            rows.rig(name="big", device="cuda", memory_bytes=48 * 2**30, facts={})
            shaped_file(rows, "qwen:q3", qwen36(), model_class="qwen3.6-27b")
            session.add(stack(engine.id, "qwen"))

    def push(self, *, kind="fork_pushed", **payload):
        number = len(self.heads) + 1
        commit = f"{number:040x}"
        with db.writing(self.database) as session:
            rows = Rows(session)
            revision = rows.revision(
                session.get_one(EngineRow, self.engine_id),
                commit=commit,
                label=f"master@{number}",
                order_key=f"{number:06}",
            )
            values = {"replaces": self.heads[-1]} if self.heads else {}
            event = EventRow(
                key=f"push:{number}",
                kind=kind,
                engine_id=self.engine_id,
                revision_id=revision.id,
                title=f"push {number}",
                payload=values | payload,
                seen_at=NOON + timedelta(seconds=number),
            )
            session.add(event)
            session.flush()
            self.heads.append(commit)
            return event.id

    def jobs(self, *states, kind=Kind.BENCH):
        """Labels of revisions and scenarios of jobs in these states."""
        query = select(JobRow, RevisionRow.label).where(JobRow.revision_id == RevisionRow.id)
        with db.reading(self.database) as session:
            return sorted(
                (label, row.payload.get("scenario", ""))
                for row, label in session.exec(query.where(JobRow.kind == kind.value))
                if row.state in (states or work.LIVE)
            )


def stack(engine_id, name, **fields):
    values = {
        "name": name,
        "engine_id": engine_id,
        "target": "qwen:q3",
        "intent": {"context": 8192},
        "scenarios": list(SCENARIOS),
        "created_at": NOON,
    }
    return StackRow(**values | fields)


@pytest.fixture
def fork(database):
    return Fork(database)


def both(label):
    return [(label, name) for name in SCENARIOS]


def test_heads_that_came_and_went_in_one_look_are_not_planned(fork, database):
    """The last push is; each other event says what took its place, and asks for nothing later."""
    for _ in range(12):
        fork.push()
    found = list(planning(database))
    assert [(each.event.title, each.stands_for) for each in found] == [("push 12", 11)]
    assert fork.jobs() == both("master@12")
    with db.reading(database) as session:
        left = session.exec(select(LeftOutRow)).all()
        assert Counter((row.why, row.ending) for row in left) == {
            (Why.REPLACED.value, "something newer took its place"): 11
        }
        assert "push 12" in left[0].detail
        assert all(row.planned for row in session.exec(select(EventRow)))
    assert plan_round(database) == []


def test_many_pushes_leave_one_head_and_one_baseline(fork, database):
    """Each look sees one push more: the replaced head is no baseline, the older one serves."""
    fork.push()
    plan_round(database)
    with db.writing(database) as session:
        for job in session.exec(select(JobRow)):
            job.state = State.RUNNING.value
    for _ in range(4):
        fork.push()
        plan_round(database)
    assert fork.jobs(State.QUEUED, State.BLOCKED) == both("master@5")
    assert fork.jobs(State.RUNNING) == both("master@1")
    assert fork.jobs(State.QUEUED, State.BLOCKED, kind=Kind.BUILD) == [("master@5", "")]


def test_a_baseline_serves_each_head_in_turn(fork, database):
    """It stays queued, names the newest head, and no replaced head joins it."""
    before = {"facts": {"before": "f" * 40, "forced": False}}
    fork.push(**before)
    plan_round(database)
    for _ in range(3):
        fork.push(**before)
        plan_round(database)
    assert fork.jobs() == sorted(both("master@4") + both("master@fffffffff"))
    with db.reading(database) as session:
        rows = {job.id: job for job in session.exec(select(JobRow)) if job.state in work.LIVE}
        for job in rows.values():
            if job.lane == Lane.BACKFILL:
                asked = rows[job.cause["baseline_of"]]
                assert (asked.lane, job.event_id) == (Lane.FRESH, asked.event_id)


def test_a_baseline_that_nothing_is_compared_with_goes_too(fork, database):
    """The stack is not asked for any more: its bench is superseded and so is its baseline."""
    before = {"facts": {"before": "f" * 40, "forced": False}}
    fork.push(**before)
    plan_round(database)
    with db.writing(database) as session:
        [row] = session.exec(select(StackRow)).all()
        row.scenarios = [SCENARIOS[0]]
    fork.push(**before)
    plan_round(database)
    assert fork.jobs() == [("master@2", SCENARIOS[0]), ("master@fffffffff", SCENARIOS[0])]
    assert ("master@fffffffff", SCENARIOS[1]) in fork.jobs(State.SUPERSEDED)


def test_a_new_head_takes_the_hours_of_the_one_it_replaces(fork, database):
    """A budget that is used up twice over cuts nothing of it; a second stack is cut, and said."""
    fork.push()
    plan_round(database)
    with db.writing(database) as session:
        session.add(BudgetRow(name="rig:big", rig="big", hours_per_day=0.1, created_at=NOON))
    fork.push()
    plan_round(database)
    assert fork.jobs() == both("master@2")
    with db.writing(database) as session:
        session.add(stack(fork.engine_id, "other", intent={"context": 4096}))
    fork.push()
    plan_round(database)
    assert fork.jobs() == both("master@3")
    with db.reading(database) as session:
        cut = rules.left_out(session, why=Why.BUDGET)
    assert {row.what for row in cut} == {f"other on big ({name})" for name in SCENARIOS}
    assert "worth" not in cut[0].detail


ODD = [
    {"asks": "abc"},
    {"asks": [{}]},
    {"asks": [7]},
    {"asks": [{"engine_id": 2**70, "revision_id": 2**70, "replaces": None}]},
    {"replaces": ["x"]},
    {"replaces": {"x": 1}},
    {"again_at": "yesterday"},
    {"again_at": "2026-12-01T00:00:00"},
    {"facts": [1], "low_priority": "x"},
]


@pytest.mark.parametrize("kind", ["fork_pushed", "issue_closed"])
def test_an_event_of_odd_shape_holds_up_no_other(fork, database, kind):
    """It is planned, or left out with the reason; the push beside it is benched."""
    with db.writing(database) as session:
        for number, payload in enumerate([*ODD, {"number": 2**70, "full_name": "a/b"}]):
            session.add(
                EventRow(
                    key=f"odd:{number}",
                    kind=kind,
                    engine_id=fork.engine_id,
                    title="odd",
                    payload=payload,
                    seen_at=NOON,
                )
            )
    fork.push()
    with capture_logs() as logs:
        plan_round(database)
    assert both("master@1")[0] in fork.jobs()
    with db.reading(database) as session:
        assert all(row.planned for row in session.exec(select(EventRow)))
        odd = rules.left_out(session, why=Why.UNREADABLE)
    refused = [each["event_id"] for each in logs if each["event"] == "event cannot be planned"]
    assert {row.event_id for row in odd} == set(refused)
    assert len(odd) >= 4
    assert all("Error" in row.detail for row in odd)


def test_others_write_between_two_events(fork, database):
    """Each event is committed by itself: what one led to is seen before the next is planned."""
    for number in range(3):
        fork.push(kind="release", replaces=None, number=number)
    seen = [len(fork.jobs()) for _ in planning(database, held_seconds=0)]
    assert seen == [2, 4, 6]


def test_two_rounds_at_once_plan_each_event_once(fork, database):
    """Whoever has the turn plans it; the other finds it planned."""
    for number in range(4):
        fork.push(kind="release", replaces=None, number=number)
    found = []
    threads = [
        threading.Thread(target=lambda: found.extend(planning(database, held_seconds=0)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(each.event.title for each in found) == [f"push {n}" for n in range(1, 5)]


def test_what_a_worker_takes_meanwhile_is_not_superseded(fork, database):
    """Its row is locked or no longer waits: it runs, and only the rest of that head ends."""
    fork.push()
    plan_round(database)
    with db.writing(database) as session:
        [build] = session.exec(select(JobRow).where(JobRow.kind == Kind.BUILD.value)).all()
    if database.dialect.name == "postgresql":
        with db.writing(database) as worker, db.writing(database) as session:
            worker.exec(select(JobRow).where(JobRow.id == build.id).with_for_update()).one()
            ended = superseding.supersede(session, build.revision_id, NOON, message="newer")
            assert {job.kind for job in ended} == {Kind.BENCH}
    held = leasing.take(database, "build", "w")
    with db.writing(database) as session:
        superseding.supersede(session, build.revision_id, NOON, message="newer")
        row = work.job(session, build.id)
        assert (row.state, row.leased_by) == (State.LEASED, "w")
    assert held.job_id == build.id


def test_what_a_budget_held_back_long_ago_is_found_among_many(database, fork):
    """More than a thousand cut today do not hide one of an earlier day."""
    old = fork.push()
    new = fork.push()
    with db.writing(database) as session:
        for row in session.exec(select(EventRow)):
            row.planned = True
        cut = {"what": "w", "why": Why.BUDGET.value}
        session.add(
            LeftOutRow(event_id=old, identity="old", left_at=NOON - timedelta(days=3), **cut)
        )
        session.add_all(
            LeftOutRow(event_id=new, identity=f"{n}", left_at=NOON, **cut) for n in range(1001)
        )
    with db.reading(database) as session:
        assert rules.held_back(session, NOON - timedelta(hours=12)) == [old]


def test_what_a_bench_with_priority_needs_is_as_early(fork, database):
    """The build is shared with a bench that has none; `--why` says the priority of each."""
    with db.writing(database) as session:
        session.add(stack(fork.engine_id, "second", intent={"context": 4096}))
        session.add(
            RuleRow(
                name="soon",
                place=0,
                asked="fork_pushed",
                does="bench",
                only={"stacks": ["second"]},
                priority=2,
                created_at=NOON,
            )
        )
    fork.push()
    jobs = plan_round(database)
    [build] = [job for job in jobs if job.kind == Kind.BUILD]
    soon = [job for job in jobs if job.payload.get("stack") == "second"]
    assert {job.created_at - job.turn_at for job in [build, *soon]} == {timedelta(hours=1)}
    with db.reading(database) as session:
        found = reasons.why(session, build.id, NOON, share=1.0)
    assert "  lane fresh, priority 2" in list(told(found))


def test_asking_again_with_priority_moves_the_waiting_job_forward(database):
    """Of two turns the earlier one holds, whoever asks later."""
    request = publish_request(lane=Lane.FRESH, reason="news")
    with db.writing(database) as session:
        [first] = work.enqueue(session, [request], NOON).values()
        later = NOON + timedelta(minutes=10)
        work.enqueue(session, [replace(request, priority=2)], later)
        assert first.turn_at == later - timedelta(hours=1)
        work.enqueue(session, [request], later)
        assert first.turn_at == later - timedelta(hours=1)


def test_the_cost_of_an_event_does_not_grow_with_what_is_queued(fork, database):
    """Superseding and finding a baseline ask indexes: no statement reads all live payloads."""
    fork.push()
    plan_round(database)
    fork.push()
    asked = []

    def note(_connection, _cursor, statement, *_rest):
        asked.append(statement)

    sql_event.listen(database, "before_cursor_execute", note)
    plan_round(database)
    sql_event.remove(database, "before_cursor_execute", note)
    assert not [each for each in asked if "payload" in each.partition("WHERE")[2]]
    assert not [each for each in asked if "cause" in each.partition("WHERE")[2]]


def test_a_migrated_row_knows_its_revision_and_event(database):
    """Rows that a factory or an older forkscout wrote are found by both."""
    with Session(database) as session:
        job = Rows(session).job(payload={"revision_id": 7}, cause={"event_id": 3})
        assert (job.revision_id, job.event_id) == (7, 3)


def test_a_baseline_whose_head_is_back_is_measured_as_the_head(fork, database):
    """The bench that waited as a baseline is asked for itself, and no longer ends with another."""
    before = {"facts": {"before": "f" * 40, "forced": False}}
    fork.push(**before)
    plan_round(database)
    with db.writing(database) as session:
        old = session.exec(select(RevisionRow).where(RevisionRow.commit == "f" * 40)).one()
        session.add(
            EventRow(
                key="back",
                kind="fork_pushed",
                engine_id=fork.engine_id,
                revision_id=old.id,
                title="back",
                payload={"replaces": fork.heads[-1]},
                seen_at=NOON + timedelta(hours=1),
            )
        )
    plan_round(database)
    assert fork.jobs() == both("master@fffffffff")
    with db.reading(database) as session:
        live = [job for job in session.exec(select(JobRow)) if job.state in work.LIVE]
    assert {job.lane for job in live} == {Lane.FRESH}
    assert not [job for job in live if "baseline_of" in job.cause]
