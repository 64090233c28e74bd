"""Strangers' code waits for a person's word on its exact commit, over both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlmodel import select
from support.rows import NOON, Rows

from jobs import db, planner
from jobs.dispatch import revision_value
from jobs.errors import JobFailure, UsageError
from jobs.lifecycle import NOT_APPROVED
from jobs.model import Blame, BuildTarget, Kind, Lane, State, Trust
from jobs.planner import JobRequest
from jobs.store import approvals, catalog, leases, reasons, work
from jobs.tables import EngineRow, JobRow, RevisionRow

SHA = "a1" * 20
OTHER = "b2" * 20
TARGET = BuildTarget("cpu", "cmake")


class Scene:
    """One engine that needs a word, and short words for asking, approving and leasing."""

    def __init__(self, database, **engine):
        self.database = database
        self.now = NOON
        with db.writing(database) as session:
            rows = Rows(session)
            row = rows.engine(**({"name": "fork", "trust": Trust.APPROVE} | engine))
            rows.revision(row, commit=SHA, label="main")
            rows.revision(row, commit=OTHER, label="main")

    def ask(self, commit=SHA, *, engine="fork", bench=False, target=TARGET):
        with db.writing(self.database) as session:
            found = session.exec(select(EngineRow).where(EngineRow.name == engine)).one()
            revision = session.exec(
                select(RevisionRow).where(
                    RevisionRow.engine_id == found.id, RevisionRow.commit == commit
                )
            ).one()
            build = planner.build_request(
                revision_value(found, revision), revision.id, target, lane=Lane.FRESH, reason="x"
            )
            requests = [build]
            if bench:
                needs = (build.identity,)
                requests.append(
                    JobRequest(Kind.BENCH, "bench.cpu", Lane.FRESH, "b", "bench", {}, "x", needs)
                )
            return list(work.enqueue(session, requests, self.now).values())

    def approve(self, place=f"fork@{SHA}", **more):
        with db.writing(self.database) as session:
            return approvals.approve(session, place, **({"by": "ann", "now": self.now} | more))

    def withdraw(self, place=f"fork@{SHA}"):
        with db.writing(self.database) as session:
            return approvals.withdraw(session, place, by="bob", now=self.now)

    def job(self, number):
        with db.reading(self.database) as session:
            return session.get_one(JobRow, number)

    def lease(self):
        with db.writing(self.database) as session:
            return leases.lease(session, "build", "w", self.now)

    def missing(self, commit=SHA):
        with db.reading(self.database) as session:
            query = select(RevisionRow.id).where(RevisionRow.commit == commit)
            return approvals.missing(session, session.exec(query).first(), self.now)

    def why(self, number):
        with db.reading(self.database) as session:
            return reasons.why(session, number, self.now, share=1.0)


@pytest.fixture
def scene(database):
    return Scene(database)


def test_a_build_waits_and_says_for_what(scene):
    """Visible, with the command that lets it in; nobody can lease it, its bench waits too."""
    build, bench = scene.ask(bench=True)
    assert (build.state, build.blocked_by) == (State.BLOCKED, NOT_APPROVED)
    assert bench.state == State.BLOCKED
    assert scene.lease() is None
    [wait] = [each for each in scene.why(build.id).waits if each.code == "approval"]
    assert "waits for a person's approval" in wait.says
    assert f"forkscout approve fork@{SHA}" in wait.says
    with db.reading(scene.database) as session:
        [waiting] = approvals.waiting(session)
    assert (waiting.job_id, waiting.engine, waiting.commit) == (build.id, "fork", SHA)


def test_a_word_lets_in_that_commit_and_no_other(scene):
    """The next push waits for one of its own."""
    first, second = scene.ask()[0], scene.ask(OTHER)[0]
    done = scene.approve()
    assert [job.id for job in done.jobs] == [first.id]
    assert scene.job(first.id).state == State.QUEUED
    assert scene.job(first.id).message == ""
    assert scene.job(second.id).state == State.BLOCKED
    assert scene.lease().job_id == first.id
    assert scene.lease() is None


def test_a_word_may_come_before_the_wish(scene):
    """Then nothing waits; a full sha need not be known yet."""
    scene.approve()
    assert scene.ask()[0].state == State.QUEUED
    assert scene.approve(f"fork@{'c3' * 20}").jobs == ()


def test_a_word_ends(scene):
    """After fourteen days, or what was said; what is asked later waits again and says why."""
    scene.approve()
    scene.approve(f"fork@{OTHER}", days=2)
    scene.now += timedelta(days=2)
    assert scene.missing() is None
    assert "that of ann ended" in scene.missing(OTHER).says
    scene.now += timedelta(days=12)
    assert "that of ann ended" in scene.missing().says
    assert scene.ask()[0].state == State.BLOCKED
    scene.approve(by="cid")
    assert scene.missing() is None


def test_a_word_that_ends_while_the_job_waits_holds_it_at_the_worker(scene):
    """Its failure blocks the job instead of ending it, and a new word frees it."""
    scene.approve()
    job = scene.ask()[0]
    scene.now += timedelta(days=15)
    held = scene.lease()
    found = scene.missing()
    failure = JobFailure(
        found.says, failure_class=NOT_APPROVED, blame=Blame.CONFIGURATION, advice=found.advice
    )
    with db.writing(scene.database) as session:
        leases.start(session, held, scene.now)
        leases.fail(session, held, failure, scene.now, limit=3)
    row = scene.job(job.id)
    assert (row.state, row.blocked_by, row.attempts) == (State.BLOCKED, NOT_APPROVED, 0)
    scene.approve()
    assert scene.job(job.id).state == State.QUEUED


def test_a_word_that_is_taken_back_holds_what_waits_and_stops_what_runs(scene):
    """Who gave it, who took it back and when stay on file; a second time there is nothing."""
    scene.approve()
    scene.approve(f"fork@{OTHER}")
    running = scene.ask()[0]
    scene.lease()
    scene.withdraw()
    assert scene.job(running.id).cancel_requested
    waiting = scene.ask(OTHER)[0]
    done = scene.withdraw(f"fork@{OTHER}")
    assert [job.id for job in done.jobs] == [waiting.id]
    assert scene.job(waiting.id).state == State.BLOCKED
    assert "that of ann was withdrawn by bob" in scene.job(waiting.id).message
    with db.reading(scene.database) as session:
        told = approvals.approvals(session, scene.now, everything=True)
        assert approvals.approvals(session, scene.now) == []
    assert {(a.approved_by, a.withdrawn_by, a.state) for a in told} == {("ann", "bob", "withdrawn")}
    with pytest.raises(UsageError, match="no approval of fork"):
        scene.withdraw()


def test_what_is_built_is_not_run_once_the_word_is_taken_back(scene):
    """A word that only ended does not stop a bench: the code was looked at."""

    def taken_back():
        with db.reading(scene.database) as session:
            query = select(RevisionRow.id).where(RevisionRow.commit == SHA)
            return approvals.taken_back(session, session.exec(query).one())

    assert taken_back() is None
    scene.approve()
    scene.now += timedelta(days=15)
    assert taken_back() is None
    scene.approve()
    scene.withdraw()
    assert "withdrawn by bob" in taken_back().says
    scene.approve()
    assert taken_back() is None


@pytest.mark.parametrize(
    ("values", "waits"),
    [
        ({"trust": Trust.AUTO}, False),
        ({"trust": Trust.AUTO, "retired": True}, True),
        ({"trust": Trust.APPROVE, "retired": True}, True),
        ({"trust": Trust.PACKAGE}, False),
    ],
)
def test_who_is_asked_about(database, values, waits):
    """Engines that the watch list does not trust, and any that no list names any more."""
    scene = Scene(database, **values)
    assert (scene.ask()[0].state == State.BLOCKED) == waits


def propose(scene, commit=SHA):
    with db.writing(scene.database) as session:
        row = session.exec(select(RevisionRow).where(RevisionRow.commit == commit)).one()
        row.proposed = True
        session.add(row)
        return row.engine_id


def test_a_pull_request_waits_whoever_is_trusted(database):
    """Its exact commit needs a word, also where every commit of the branches is built."""
    scene = Scene(database, trust=Trust.AUTO)
    propose(scene)
    job = scene.ask()[0]
    assert (job.state, job.blocked_by) == (State.BLOCKED, NOT_APPROVED)
    assert scene.ask(OTHER)[0].state == State.QUEUED
    scene.approve()
    assert scene.job(job.id).state == State.QUEUED
    scene.withdraw()
    assert scene.job(job.id).state == State.BLOCKED


def test_a_pull_request_that_a_branch_took_in_is_its_own(database):
    """Seen as a head it needs no word; what nobody looked at says nothing."""
    scene = Scene(database, trust=Trust.AUTO)
    engine_id = propose(scene)
    for merged, waits in ((None, True), (True, True), (False, False), (True, False)):
        with db.writing(scene.database) as session:
            catalog.add_revision(
                session, engine_id=engine_id, commit=SHA, label="x", proposed=merged, now=NOON
            )
        assert (scene.missing() is not None) == waits


def test_a_dockerfile_waits_whoever_is_trusted(database):
    """Its lines are root of a container, which is less than a cage; an image runs none."""
    scene = Scene(database, trust=Trust.AUTO)
    image = (("image", f"images.example.org/engine@sha256:{'a' * 64}"), ("tag", "v1"))
    job = scene.ask(target=BuildTarget("cpu", "docker"))[0]
    assert (job.state, job.blocked_by) == (State.BLOCKED, NOT_APPROVED)
    assert scene.ask(target=BuildTarget("cpu", "docker", pins=image))[0].state == State.QUEUED
    scene.approve()
    assert scene.job(job.id).state == State.QUEUED
    scene.lease()
    scene.withdraw()
    assert scene.job(job.id).cancel_requested


def test_the_same_commit_in_a_trusted_fork_does_not_wait(scene):
    """It is the same code: the waiting job goes on, for the fork that may."""
    with db.writing(scene.database) as session:
        rows = Rows(session)
        rows.revision(rows.engine(name="trusted"), commit=SHA, label="v1")
    waiting = scene.ask()[0]
    assert scene.ask()[0].id == waiting.id
    assert scene.job(waiting.id).state == State.BLOCKED
    let_in = scene.ask(engine="trusted")[0]
    assert let_in.id == waiting.id
    row = scene.job(waiting.id)
    assert (row.state, row.blocked_by) == (State.QUEUED, None)
    assert "trusted" in row.title


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("fork@main", "names no exact commit"),
        ("fork@v0.1", "names no exact commit"),
        ("fork", "names no exact commit"),
        (f"fork@{SHA[:11]}", "names no exact commit"),
        (f"fork@{SHA}0", "no known revision"),
        ("fork@" + "d4" * 6, "no known revision"),
        (f"frok@{SHA}", "unknown engine"),
        (f"fork@{SHA}; drop table job", "names no exact commit"),
    ],
)
def test_only_an_exact_commit_can_be_approved(scene, place, words):
    """A name may move between the look and the build."""
    with pytest.raises(UsageError, match=words):
        scene.approve(place)


def test_enough_letters_of_a_known_commit_will_do(scene):
    """Where they mean one alone."""
    job = scene.ask()[0]
    scene.approve(f"fork@{SHA[:12].upper()}")
    assert scene.job(job.id).state == State.QUEUED
    with db.writing(scene.database) as session:
        rows = Rows(session)
        engine = session.exec(select(EngineRow).where(EngineRow.name == "fork")).one()
        rows.revision(engine, commit=SHA[:12] + "0" * 28)
    with pytest.raises(UsageError, match="means 2 revisions"):
        scene.approve(f"fork@{SHA[:12]}")


@pytest.mark.parametrize("days", [0, -1, 366, float("nan")])
def test_a_word_holds_for_a_sensible_time(scene, days):
    """Neither for no time nor for good."""
    with pytest.raises(UsageError):
        scene.approve(days=days)


def test_never_stays_never(database):
    """A word cannot let in what the watch list forbids."""
    scene = Scene(database, trust=Trust.NEVER)
    with pytest.raises(UsageError, match="never built"):
        scene.approve()
