"""The commands of trust on a real installation without workers."""

from __future__ import annotations

import getpass
import json

import pytest
from support.rows import Rows
from typer.testing import CliRunner

from jobs import db, planner
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.dispatch import revision_value
from jobs.errors import UsageError
from jobs.model import BuildTarget, Lane, State, Trust
from jobs.store import work

SHA = "a1" * 20
HOSTILE = "\x1b[2Jevil\u202e[red]x[/red]"


def run(*words: str) -> str:
    done = CliRunner().invoke(build_app("approve"), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def waiting(tmp_path, monkeypatch) -> int:
    """A build that waits; its number."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    with db.writing(db.open_database(Settings())) as session:
        rows = Rows(session)
        engine = rows.engine(name="fork", trust=Trust.APPROVE)
        revision = rows.revision(engine, commit=SHA, label=HOSTILE)
        value = revision_value(engine, revision)
        target = BuildTarget("cpu", "cmake")
        request = planner.build_request(value, revision.id, target, lane=Lane.FRESH, reason=HOSTILE)
        [job] = work.enqueue(session, [request], db.database_now(session)).values()
        return job.id


def test_what_waits_is_listed_approved_and_taken_back(waiting):
    """By the name of the account where nobody else is named."""
    assert f"fork@{SHA}" in run("approvals")
    assert "waits for a person's approval" in run("jobs", "--why", str(waiting))
    told = run("approve", f"fork@{SHA}", "--days", "3", "--note", HOSTILE)
    assert f"fork at {SHA} is approved by {getpass.getuser()} until" in told
    assert f"job {waiting} is queued" in told
    assert "nobody serves build" in told
    found = json.loads(run("approvals", "--json"))
    assert (found["waiting"], [a["state"] for a in found["approvals"]]) == ([], ["standing"])
    told = run("approve", f"fork@{SHA}", "--withdraw", "--by", "bob")
    assert "is withdrawn by bob" in told
    assert f"job {waiting} is blocked" in told
    assert "standing" not in run("approvals")
    assert "withdrawn by bob" in run("approvals", "--all")
    ended = json.loads(run("approve", f"fork@{SHA}", "--json"))
    assert ended["jobs"] == [{"id": waiting, "state": State.QUEUED, "cancel_requested": False}]


def test_the_words_of_strangers_do_not_drive_the_terminal(waiting):
    """Labels, reasons and notes are shown without what a terminal would obey."""
    told = run("approvals")
    run("approve", f"fork@{SHA}", "--note", HOSTILE, "--by", HOSTILE)
    for shown in (told, run("approvals"), run("jobs", "--why", str(waiting))):
        assert not {"\x1b", "\u202e"} & set(shown)
        assert "[red]x[/red]" in shown


def test_a_name_that_moves_is_refused(waiting):
    """The advice says how an exact commit is named."""
    with pytest.raises(UsageError) as caught:
        run("approve", "fork@main")
    assert "may move" in caught.value.advice


def test_a_first_look_says_that_there_is_nothing(waiting):
    """Neither anything that waits nor a word that stands."""
    run("cancel", str(waiting))
    assert run("approvals") == "nothing waits for a person, and no approval stands\n"
