"""From news to jobs over both databases."""

from __future__ import annotations

import pytest
from support.rows import NOON, Rows

from jobs import db
from jobs.dispatch import plan_events
from jobs.lifecycle import NOT_APPROVED
from jobs.model import Kind, Lane, State, Trust
from jobs.store import catalog, needs
from jobs.tables import StackRow


@pytest.fixture
def planned(database):
    """Put a release of an engine in, and plan; `changes` goes to the engine."""

    def put(*, scenarios=("decode-128",), rigs=("cpu",), kind="release", **changes):
        with db.writing(database) as session:
            rows = Rows(session)
            engine = rows.engine(
                **{
                    "name": "wheels",
                    "family": "xllamacpp",
                    "repo": None,
                    "package": "wheels",
                    "trust": Trust.PACKAGE,
                    "targets": [{"rig": rig, "via": "wheel"} for rig in rigs],
                }
                | changes
            )
            rows.model_file(name="gemma:q4", stored_in=None)
            session.add(
                StackRow(
                    name="gemma-cpu",
                    engine_id=engine.id,
                    target="gemma:q4",
                    intent={"context": 1024},
                    scenarios=list(scenarios),
                    created_at=NOON,
                )
            )
            revision = rows.revision(engine, label="1.0", commit="1" * 64)
            rows.event(engine, kind=kind, revision_id=revision.id, planned=False, title="news")
        return plan(database)

    return put


def plan(database):
    with db.writing(database) as session:
        return plan_events(session, NOON)


def test_a_release_is_fetched_built_and_benched(database, planned):
    """One event, three jobs that wait for each other, and its title says why."""
    jobs = planned()
    assert [job.kind for job in jobs] == [Kind.FETCH_MODEL, Kind.BUILD, Kind.BENCH]
    assert {(job.lane, job.reason) for job in jobs} == {(Lane.FRESH, "news")}
    fetch, build, bench = jobs
    assert (bench.state, bench.payload["context_tokens"]) == (State.BLOCKED, 1024)
    with db.reading(database) as session:
        assert [need.id for need in needs.needs_of(session, bench.id)] == [fetch.id, build.id]


def test_an_event_is_planned_once(database, planned):
    """A second look at the same news queues nothing."""
    assert planned()
    assert plan(database) == []


def test_a_later_release_waits_for_the_weights_that_an_earlier_one_asked_for(database, planned):
    """The fetch is under way already; the second bench must not start without it."""
    fetch, *_ = planned()
    with db.writing(database) as session:
        rows = Rows(session)
        engine = catalog.engine_named(session, "wheels")
        revision = rows.revision(engine, label="2.0", commit="2" * 64)
        rows.event(engine, kind="release", revision_id=revision.id, planned=False, title="more")
    jobs = plan(database)
    bench = next(job for job in jobs if job.kind == Kind.BENCH)
    with db.reading(database) as session:
        assert fetch.id in [need.id for need in needs.needs_of(session, bench.id)]


def test_one_build_serves_all_scenarios_and_each_rig_has_its_own(planned):
    """Two scenarios on two rigs: one fetch, two builds, four benches."""
    jobs = planned(scenarios=("decode-128", "completion-128"), rigs=("cpu", "big"))
    kinds = [job.kind for job in jobs]
    assert [kinds.count(k) for k in (Kind.FETCH_MODEL, Kind.BUILD, Kind.BENCH)] == [1, 2, 4]
    assert {job.queue for job in jobs} == {"build", "bench.cpu", "bench.big"}


def test_what_a_person_has_to_let_in_is_queued_and_waits(planned):
    """Visible at the commit that the event is about; nothing of it can be leased."""
    jobs = planned(trust=Trust.APPROVE)
    states = {job.kind: (job.state, job.blocked_by) for job in jobs}
    assert states[Kind.BUILD] == (State.BLOCKED, NOT_APPROVED)
    assert states[Kind.BENCH][0] == State.BLOCKED


@pytest.mark.parametrize(
    "changes",
    [
        {"trust": Trust.NEVER},
        {"retired": True},
        {"kind": "replaced"},
        {"targets": []},
    ],
)
def test_what_nobody_approved_is_not_queued(database, planned, changes):
    """News of an engine that may not run, or that asks for nothing, is put on file only."""
    assert planned(**changes) == []
    assert plan(database) == []
