"""The commands about jobs, on a real installation without workers."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from support.rows import Rows
from typer.testing import CliRunner

from jobs import clock, db
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.errors import UsageError
from jobs.model import Blame, State

HOSTILE = "\x1b[2J\x1b]0;owned\x07evil\u202e<script>[red]x[/red]"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    return Settings()


def run(*words: str) -> str:
    done = CliRunner().invoke(build_app("jobs"), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_first_look_says_that_there_is_nothing(settings: Settings) -> None:
    """An empty installation is no error."""
    assert "--all" in run("jobs")
    assert run("jobs", "--all") == "there is no job yet\n"
    assert json.loads(run("jobs", "--json")) == []


@pytest.mark.parametrize("command", ["show", "logs", "cancel", "retry"])
def test_a_number_that_no_job_has_is_a_usage_error(command: str, settings: Settings) -> None:
    """Also one that no database can hold."""
    for number in ("0", "1", "2147483648", "9" * 40):
        with pytest.raises(UsageError, match=f"there is no job {number}"):
            run(command, number)


def test_what_strangers_wrote_does_not_drive_the_terminal(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Title, message and advice are shown without escape sequences, markup stays text."""
    monkeypatch.setenv("COLUMNS", "200")
    database = db.open_database(settings)
    with db.writing(database) as session:
        job = Rows(session).job(
            state=State.FAILED,
            title=f"bench {HOSTILE}",
            failure_class="exit",
            blame=Blame.ENGINE,
            message=HOSTILE,
            advice=HOSTILE,
        )
        number = str(job.id)
    path = settings.attempt_log(int(number), 1)
    path.parent.mkdir(parents=True)
    path.write_text(f"{HOSTILE}\n")
    for words in (("jobs", "--all"), ("show", number), ("logs", number)):
        shown = run(*words)
        assert "evil<script>[red]x[/red]" in shown.replace("\n", ""), words
        assert not {"\x1b", "\x07", "\u202e"} & set(shown), words
    database.dispose()


def test_a_log_of_one_endless_line_is_shown_in_pieces(settings: Settings) -> None:
    """A sign of several bytes that lies on the border of two pieces stays whole."""
    database = db.open_database(settings)
    with db.writing(database) as session:
        number = Rows(session).job(state=State.FAILED).id or 0
    database.dispose()
    path = settings.attempt_log(number, 1)
    path.parent.mkdir(parents=True)
    path.write_text("x" + "ü" * 2**20)
    assert run("logs", str(number)) == "x" + "ü" * 2**20


def test_a_worker_that_fell_silent_serves_nobody(settings: Settings) -> None:
    """Who submits after a crash is told to start the workers again."""
    database = db.open_database(settings)
    with db.writing(database) as session:
        long_ago = clock.now() - timedelta(hours=1)
        Rows(session).worker(queue="publish", beat_at=long_ago)
    database.dispose()
    assert "nobody serves publish" in run("submit", "publish")
    run("cancel", "1")
    done = CliRunner().invoke(build_app("jobs"), ["retry", "1"], catch_exceptions=False)
    assert "nobody serves publish" in done.stdout
    assert "doorbell" not in done.output


def test_an_unknown_engine_on_an_empty_installation_says_what_to_do(settings: Settings) -> None:
    """The advice is a command that helps."""
    with pytest.raises(UsageError) as caught:
        run("submit", "bench", "--engine", "x")
    assert "watchlist import demo" in caught.value.advice


def test_the_version_is_told() -> None:
    """`forkscout --version` needs no installation."""
    done = CliRunner().invoke(build_app("jobs"), ["--version"])
    assert done.exit_code == 0
    assert done.stdout.startswith("forkscout ")


def test_show_keeps_long_words_whole_and_moments_short(settings: Settings) -> None:
    """A path longer than the terminal is wrapped, not cut; moments have no fractions."""
    path = "/a" * 150
    database = db.open_database(settings)
    with db.writing(database) as session:
        number = Rows(session).job(state=State.FAILED, message=f"no {path}").id
    database.dispose()
    shown = run("show", str(number))
    assert path in "".join(line.strip() for line in shown.splitlines())
    assert " UTC" in shown
    assert "+00:00" not in shown


@pytest.mark.parametrize(
    "ref",
    ["--upload-pack=touch x", "-h", " ", "a b", "HEAD~1", "@{-1}", "a/../b", "x\ny", "a" * 5000],
)
def test_a_ref_that_cannot_be_one_is_refused_before_anything_is_asked(
    settings: Settings, ref: str
) -> None:
    """No git starts, no mirror is made, and the sentence is short."""
    database = db.open_database(settings)
    with db.writing(database) as session:
        rows = Rows(session)
        engine = rows.engine(targets=[{"rig": "cpu", "via": "cmake"}]).name
        rows.rig(name="cpu")
    database.dispose()
    with pytest.raises(UsageError, match="cannot be a ref") as caught:
        run("submit", "build", "--engine", engine, "--ref", ref)
    assert len(caught.value.message) < 400
    assert not list(settings.mirrors.iterdir())
