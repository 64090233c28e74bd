"""Changing one's mind over both databases: retries and cancels along a chain of jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.rows import Rows
from support.work import NOW, request

from jobs import db
from jobs.errors import JobFailure, ScoutError, UsageError
from jobs.model import Blame, Kind, State
from jobs.store import leases, results, work

LATER = NOW + timedelta(minutes=5)


@pytest.fixture
def chain(database):
    """Fetch and build, and the bench that needs both; their numbers."""
    fetch, build = request("fetch"), request("build")
    bench = request("bench", queue="bench.cpu", needs=(fetch.identity, build.identity))
    with db.writing(database) as session:
        found = work.enqueue(session, [fetch, build, bench], NOW)
        return [row.id for row in found.values()]


def serve(database, outcome="done", queue="build"):
    """Take the next job and end it, well or with a failure."""
    with db.writing(database) as session:
        held = leases.lease(session, queue, "w1", LATER)
        leases.start(session, held, LATER)
        if isinstance(outcome, JobFailure):
            leases.fail(session, held, outcome, LATER, limit=3)
        else:
            leases.succeed(session, held, LATER, outcome)
    return held.job_id


def change(database, what, job):
    with db.writing(database) as session:
        return what(session, job, LATER)


def states(database, ids):
    with db.reading(database) as session:
        return [work.job(session, each).state for each in ids]


BROKEN = JobFailure("no", failure_class="compile_error", blame=Blame.ENGINE)


def test_retrying_the_bench_revives_the_build_it_waits_for(database, chain):
    """One command on the job that matters is enough; its attempts start from nought."""
    serve(database)
    serve(database, BROKEN)
    assert states(database, chain) == [State.SUCCEEDED, State.FAILED, State.BLOCKED]
    change(database, work.retry, chain[2])
    assert states(database, chain) == [State.SUCCEEDED, State.QUEUED, State.BLOCKED]
    serve(database)
    assert states(database, chain) == [State.SUCCEEDED, State.SUCCEEDED, State.QUEUED]
    with db.reading(database) as session:
        bench = work.job(session, chain[2])
    assert (bench.blocked_by, bench.message) == (None, "")


def test_a_cancelled_need_holds_its_bench_until_it_is_retried(database, chain):
    """The bench says what it waits for, and is freed when that has been made good."""
    change(database, work.cancel, chain[1])
    serve(database)
    with db.reading(database) as session:
        bench = work.job(session, chain[2])
    assert bench.state == State.BLOCKED
    assert f"job {chain[1]}, which is cancelled" in bench.message
    change(database, work.retry, chain[1])
    serve(database)
    assert states(database, chain[2:]) == [State.QUEUED]


def test_a_cancelled_bench_leaves_what_it_needed_alone(database, chain):
    """Build and model are worth having; retrying the bench waits for them again."""
    change(database, work.cancel, chain[2])
    assert states(database, chain) == [State.QUEUED, State.QUEUED, State.CANCELLED]
    change(database, work.retry, chain[2])
    assert states(database, chain) == [State.QUEUED, State.QUEUED, State.BLOCKED]
    serve(database)
    serve(database)
    assert states(database, chain[2:]) == [State.QUEUED]


def test_what_succeeded_is_not_retried(database, chain):
    """A result stands; the same question again is a new job."""
    serve(database)
    with pytest.raises(ScoutError) as caught:
        change(database, work.retry, chain[0])
    assert "succeeded" in caught.value.message


def test_a_retry_does_not_make_a_second_live_job(database, chain):
    """A question that was asked again meanwhile is answered once."""
    change(database, work.cancel, chain[0])
    with db.writing(database) as session:
        work.enqueue(session, [request("fetch")], NOW)
    with pytest.raises(UsageError) as caught:
        change(database, work.retry, chain[0])
    assert "already queued" in caught.value.message


def test_an_ended_job_is_not_cancelled(database, chain):
    """It says how it ended."""
    serve(database)
    with pytest.raises(UsageError) as caught:
        change(database, work.cancel, chain[0])
    assert "succeeded" in caught.value.message


@pytest.mark.parametrize("outcome", [BROKEN, "cancelled"])
def test_the_same_question_asked_again_frees_what_its_first_job_held(database, chain, outcome):
    """What waits for a failed build waits for the next job of that build instead."""
    serve(database)
    if outcome == "cancelled":
        change(database, work.cancel, chain[1])
    else:
        serve(database, outcome)
    with db.writing(database) as session:
        again = work.enqueue(session, [request("build")], LATER)
        (build,) = again.values()
        assert build.id != chain[1]
    with db.reading(database) as session:
        bench = work.job(session, chain[2])
    assert (bench.blocked_by, bench.message) == (f"job:{build.id}", "")
    serve(database)
    assert states(database, chain[2:]) == [State.QUEUED]


def test_what_is_there_already_frees_what_its_failed_job_held(database, chain):
    """A build that came from elsewhere answers for the job that failed."""
    serve(database)
    serve(database, BROKEN)
    with db.writing(database) as session:
        rows = Rows(session)
        revision = rows.revision(rows.engine(name="fork"), commit="c" * 40)
        rows.build(revision, identity="b" * 64, job_id=chain[0])
        named = {"build_identity": "b" * 64, "revision_id": revision.id}
        build = request("build", kind=Kind.BUILD, payload=named)
        assert work.enqueue(session, [build], LATER) == {build.identity: None}
    assert states(database, chain[2:]) == [State.QUEUED]


def test_what_an_engines_own_cache_helped_to_make_serves_no_other_engine(database):
    """Its code could have put anything into that cache; without one, a build serves both."""
    commit, identity = "d" * 40, "e" * 64
    with db.writing(database) as session:
        rows = Rows(session)
        theirs = rows.revision(rows.engine(name="fork"), commit=commit)
        ours = rows.revision(rows.engine(name="upstream"), commit=commit)
        build = rows.build(theirs, identity=identity, provenance={"private": True})
        asked = {
            row.id: request(
                "build",
                kind=Kind.BUILD,
                payload={"build_identity": identity, "revision_id": row.id},
            )
            for row in (theirs, ours)
        }
        assert work.enqueue(session, [asked[theirs.id]], NOW) == {asked[theirs.id].identity: None}
        assert results.is_shared(session, ours.engine_id, commit)
        assert not results.may_use(session, build, ours.id)
        (job,) = work.enqueue(session, [asked[ours.id]], NOW).values()
        assert job.state == State.QUEUED
        work.cancel(session, job.id, NOW)
        build.provenance = {"private": False}
        session.add(build)
        assert work.enqueue(session, [asked[ours.id]], NOW) == {asked[ours.id].identity: None}


def test_what_was_tried_is_known(database, chain):
    """A failure counts as tried, a cancelled job does not."""
    change(database, work.cancel, chain[1])
    with db.reading(database) as session:
        assert work.was_tried(session, request("fetch").identity)
        assert not work.was_tried(session, request("build").identity)
        assert not work.was_tried(session, request("never asked").identity)
