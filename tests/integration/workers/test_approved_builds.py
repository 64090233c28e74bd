"""A worker builds nothing that nobody let in, whatever the queue says."""

from __future__ import annotations

import pytest
from support import tiny_engine
from support.workshop import workshop

from jobs import clock, db
from jobs.lifecycle import NOT_APPROVED
from jobs.model import State, Trust
from jobs.store import approvals
from jobs.tables import JobRow

pytestmark = pytest.mark.needs("bwrap", "cmake", "g++", "git")


@pytest.fixture
def shop(database, tmp_path, hub):
    repository = hub.add("owner/tiny")
    repository.commit(tiny_engine.files())
    repository.push()
    return workshop(database, tmp_path / "home", repository, trust=Trust.APPROVE)


def test_an_approved_commit_is_built_and_the_next_push_waits(shop):
    """Nothing is fetched, compiled or run before the word."""
    job = shop.ask("main").jobs[0]
    assert shop.work() == 0
    sha = shop.repository.git("rev-parse", "HEAD").strip()
    with db.writing(shop.database) as session:
        approvals.approve(session, f"tiny@{sha}", by="ann", now=clock.now())
    assert shop.work() == 1
    assert shop.job(job.id).state == State.SUCCEEDED, shop.job(job.id).message
    shop.repository.commit({"src/more.txt": "a push"})
    shop.repository.push()
    assert shop.ask(shop.repository.git("rev-parse", "HEAD").strip()).jobs[0].state == State.BLOCKED


def test_a_queue_that_was_meddled_with_lets_nothing_in(shop):
    """The worker asks for itself, and the job waits where it belongs."""
    job = shop.ask("main").jobs[0]
    with db.writing(shop.database) as session:
        row = session.get_one(JobRow, job.id)
        row.state, row.blocked_by = State.QUEUED.value, None
        session.add(row)
    shop.work()
    row = shop.job(job.id)
    assert (row.state, row.blocked_by) == (State.BLOCKED, NOT_APPROVED)
    assert "forkscout approve tiny@" in row.advice
    assert shop.builds() == []
