"""Failures that no rule knows wait on a list until somebody has read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.rows import Rows
from typer.testing import CliRunner

from jobs import clock, db
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.errors import JobFailure, UsageError
from jobs.model import Blame, State
from jobs.store import leases
from jobs.store.leases import Lease
from jobs.tables import JobRow

HOSTILE = "\x1b]0;owned\x07evil\u202e"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    database = db.open_database(Settings())
    yield database
    database.dispose()


def run(*words: str) -> str:
    done = CliRunner().invoke(build_app(words[0]), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def fail(database, failure_class: str, *, blame: Blame = Blame.ENGINE, **rest: object) -> int:
    """A job that failed so; its number."""
    with db.writing(database) as session:
        job = Rows(session).job(
            state=State.RUNNING, fence=3, attempts=1, identity=failure_class, leased_by="w"
        )
        held = Lease(job_id=job.id, fence=3, kind=job.kind, payload={}, title=job.title, attempts=1)
        failure = JobFailure("it ended", failure_class=failure_class, blame=blame, **rest)
        leases.fail(session, held, failure, clock.now(), limit=1)
        return job.id


def test_an_empty_list_says_what_to_do(database) -> None:
    """Nothing to read is no error."""
    assert "forkscout failures --all" in run("failures")
    assert run("failures", "--json") == "[]\n"
    assert run("failures", "--all") == "nothing has failed yet\n"


def test_an_unknown_failure_waits_until_it_was_read(database) -> None:
    """With its phase, how its process ended and the end of its log; a known one is not listed."""
    lines = [f"line {number}" for number in range(70)]
    job = fail(database, "unknown", phase="load", ending="exit code 1", lines=lines)
    fail(database, "oom_kv", blame=Blame.CONFIGURATION)
    [listed] = json.loads(run("failures", "--json"))
    assert listed["job_id"] == job
    assert (listed["phase"], listed["ending"]) == ("load", "exit code 1")
    assert listed["lines"] == lines[-50:]
    number = str(listed["id"])
    assert "line 69" in run("failures", "show", number)
    assert "off the list" in run("failures", "reviewed", number)
    assert "forkscout failures --all" in run("failures")
    assert {each["failure_class"] for each in json.loads(run("failures", "--all", "--json"))} == {
        "unknown",
        "oom_kv",
    }


def test_each_attempt_has_its_own_failure(database) -> None:
    """A retry that fails otherwise does not hide what happened first."""
    job = fail(database, "crash_load")
    with db.writing(database) as session:
        row = session.get_one(JobRow, job)
        row.state, row.fence = State.RUNNING, 4
    with db.writing(database) as session:
        row = session.get_one(JobRow, job)
        held = Lease(job_id=job, fence=4, kind=row.kind, payload={}, title=row.title, attempts=2)
        failure = JobFailure("again", failure_class="hung", blame=Blame.ENGINE)
        leases.fail(session, held, failure, clock.now(), limit=1)
    found = json.loads(run("failures", "--all", "--json"))
    assert [(each["fence"], each["failure_class"]) for each in found] == [
        (4, "hung"),
        (3, "crash_load"),
    ]


@pytest.mark.parametrize("number", ["0", "1", "99999999999"])
@pytest.mark.parametrize("command", ["show", "reviewed"])
def test_a_number_that_no_failure_has_is_a_usage_error(database, command, number) -> None:
    """Also one that no database can hold."""
    with pytest.raises(UsageError, match=f"there is no failure {number}"):
        run("failures", command, number)


def test_what_an_engine_wrote_does_not_drive_the_terminal(database) -> None:
    """Its log is text."""
    fail(database, "unknown", lines=[HOSTILE], phase=HOSTILE, ending=HOSTILE)
    for words in (("failures",), ("failures", "show", "1")):
        shown = run(*words)
        assert "\x1b" not in shown
        assert "\u202e" not in shown
