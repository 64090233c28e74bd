"""Commands about queues, workers and reasons, over a real database."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.rows import Rows
from typer.testing import CliRunner

from jobs import clock, db
from jobs.cli.queues import until_when
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.errors import UsageError
from jobs.model import State
from jobs.store import fleet

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOSTILE = "\x1b]0;owned\x07evil\u202e\nfake line"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    opened = db.open_database(Settings())
    yield opened
    opened.dispose()


def run(*words: str) -> str:
    done = CliRunner().invoke(build_app(words[0]), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def add(database, kind: str, **fields):
    with db.writing(database) as session:
        return getattr(Rows(session), kind)(**fields)


def test_a_paused_queue_is_told_and_resumed(database) -> None:
    """With reason and end, in the list, as JSON, and to whom waits."""
    job = add(database, "job", state=State.QUEUED)
    said = run("queue", "pause", "bench.cpu", "--until", "2h", "--reason", "new driver")
    assert "paused" in said
    assert "paused until" in run("queue", "list")
    (found,) = json.loads(run("queue", "list", "--json"))
    assert (found["queue"], found["waiting"], found["pause_reason"]) == (
        "bench.cpu",
        1,
        "new driver",
    )
    assert "is paused since" in run("jobs", "--why", str(job.id))
    assert run("queue", "resume", "bench.cpu") == "bench.cpu goes on\n"
    assert run("queue", "resume", "bench.cpu") == "bench.cpu was not paused\n"


@pytest.mark.parametrize(
    "name", ["scout", "bench.", "bench.a b", "benches", "", "../x", "x" * 9999]
)
def test_no_other_queue_can_be_paused(database, name: str) -> None:
    """A misspelt name pauses nothing silently."""
    for command in ("pause", "resume"):
        with pytest.raises(UsageError, match="there is no queue") as caught:
            run("queue", command, name)
        assert len(caught.value.message) < 200


def test_an_end_of_a_pause_lies_ahead() -> None:
    """A span or a moment, in UTC where it names no zone."""
    assert until_when("90m", NOW) == NOW + timedelta(minutes=90)
    assert until_when("2026-11-30T18:00", NOW) == NOW + timedelta(hours=6)
    assert until_when("2026-11-30T18:00+02:00", NOW) == NOW + timedelta(hours=4)
    for text in ("2026-11-29", "soon", "0h", "9" * 30 + "h", "-3h", "9" * 400):
        with pytest.raises(UsageError):
            until_when(text, NOW)


def test_workers_are_drained_by_name_or_queue_and_let_work_again(database) -> None:
    """A name that nobody has is an error with those there are."""
    worker = add(database, "worker", name="bench.cpu@host.1")
    for words in (("bench.cpu",), ("bench.cpu@host.1",)):
        assert "takes no more jobs" in run("drain", *words)
        with db.reading(database) as session:
            assert fleet.is_draining(session, worker.name)
        assert "takes jobs again" in run("drain", *words, "--undo")
        with db.reading(database) as session:
            assert not fleet.is_draining(session, worker.name)
    with pytest.raises(UsageError) as caught:
        run("drain", "nobody")
    assert "bench.cpu@host.1" in caught.value.advice


def test_dead_letters_are_listed_alone(database) -> None:
    """With their class, and the way on."""
    assert run("jobs", "--dead") == "there is no dead letter\n"
    add(database, "job", state=State.FAILED)
    dead = add(database, "job", state=State.DEAD, failure_class="worker_lost", message="gone")
    assert "[worker_lost] gone" in " ".join(run("jobs", "--dead").split())
    assert [row["id"] for row in json.loads(run("jobs", "--dead", "--json"))] == [dead.id]


def test_why_is_told_for_people_and_programs(database) -> None:
    """The same facts twice; what strangers wrote stays on its line and drives no terminal."""
    now = clock.now()
    with db.writing(database) as session:
        rows = Rows(session)
        rows.worker(beat_at=now)
        event = rows.event(title=f"released {HOSTILE}")
        job = rows.job(
            state=State.QUEUED,
            title=HOSTILE,
            cause={"event_id": event.id},
            estimate_seconds=1800.0,
        )
    text = run("jobs", "--why", str(job.id))
    for part in ("why it exists", "why it waits", "place 1 of bench.cpu", "done in about 30 min"):
        assert part in text
    assert "\nfake line" not in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    found = json.loads(run("jobs", "--why", str(job.id), "--json"))
    assert found["origins"][0]["id"] == event.id
    assert found["job"]["position"] == 1
    with pytest.raises(UsageError, match="there is no job 99"):
        run("jobs", "--why", "99")


def test_what_is_expected_is_listed(database) -> None:
    """As words in the table and in `show`, in seconds as JSON."""
    add(database, "worker", beat_at=clock.now())
    job = add(database, "job", state=State.QUEUED, estimate_seconds=1800.0)
    assert "about 30 min" in " ".join(run("jobs").split())
    assert "about 30 min" in " ".join(run("show", str(job.id)).split())
    (found,) = json.loads(run("jobs", "--json"))
    assert found["likely_end_in_seconds"] == 1800
