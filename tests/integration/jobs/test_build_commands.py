"""The commands about builds, with a worker that really builds beside them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from support import tiny_engine
from support.rows import Rows
from support.workshop import Workshop, workshop
from typer.testing import CliRunner

from jobs import clock, db
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.errors import UsageError
from jobs.model import State

HOSTILE = "\x1b[2Jevil\u202e[red]x[/red]"


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(build_app("build"), list(words), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.fixture
def repository(hub):
    made = hub.add("owner/tiny")
    made.commit(tiny_engine.files())
    made.push()
    return made


@pytest.fixture
def shop(tmp_path, monkeypatch, repository, embedded) -> Workshop:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    monkeypatch.setenv("FORKSCOUT_BROKER_URL", embedded.url)
    database = db.open_database(Settings())
    return workshop(database, tmp_path / "var", repository)


@pytest.fixture
def worker(shop) -> Iterator[None]:
    """Somebody who serves the queue of builds until the test ends."""
    shop.rows(lambda rows: rows.worker(name="w1", queue="build", beat_at=clock.now()))
    over = threading.Event()

    def serve() -> None:
        while not over.wait(0.1):
            shop.work()

    thread = threading.Thread(target=serve)
    with capture_logs():
        thread.start()
        yield
        over.set()
        thread.join()


@pytest.mark.needs("bwrap", "cmake", "g++", "git")
def test_a_build_is_followed_to_its_end(shop, worker):
    """Phases with their times, the size, and where to look; asked again it is there already."""
    told = run("build", "--engine", "tiny", "--ref", "main", "--for", "cpu")
    lines = told.splitlines()
    assert lines[0].startswith("job 1: build tiny main for cpu")
    phases = [line.split()[0] for line in lines if line.endswith(" s") and line.startswith("  ")]
    assert phases == ["fetch", "configure", "compile", "install", "store", "describe"]
    assert "size:" in told
    assert "options: 3" in told
    assert "`forkscout build show 1`" in told
    assert "already built, build 1" in run("build", "--engine", "tiny", "--ref", "main")
    shown = run("build", "show", "1")
    assert shop.repository.git("rev-parse", "HEAD").strip() in shown
    assert "cmake version" in shown
    assert "-DCMAKE_BUILD_TYPE=Release" in shown
    found = json.loads(run("build", "show", "1", "--json"))
    assert (found["engine"], found["target"], found["options"]) == ("tiny", "cpu", 3)
    assert [each["name"] for each in found["phases"]] == phases
    assert found["log"].endswith(".log")
    assert "1 " in run("builds", "--engine", "tiny", "--state", "succeeded")
    assert json.loads(run("builds", "--state", "failed", "--json")) == []


@pytest.mark.needs("bwrap", "cmake", "g++", "git")
def test_a_build_that_fails_shows_cause_advice_and_the_logs_end(shop, worker):
    """The command ends with 1."""
    shop.repository.commit(tiny_engine.files(src__x="") | {"src/words.cpp": "int words( {"})
    shop.repository.push()
    told = run("build", "--engine", "tiny", code=1)
    assert "failed [compile_error]" in told
    assert "next: Report it to the fork" in told
    assert "  | " in told
    [line] = json.loads(run("builds", "--state", "failed", "--json"))
    assert (line["build_id"], line["failure_class"]) == (None, "compile_error")
    again = json.loads(run("build", "--engine", "tiny", "--json", code=1))
    assert again["job"]["failure_class"] == "compile_error"
    assert again["build"] is None


HEARING = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("jobs.cli", run_name="__main__")
"""
"""The command as a terminal starts it: a shell in the background has Ctrl-C ignored."""


@pytest.mark.needs("git")
def test_leaving_does_not_end_the_build(shop):
    """Ctrl-C says that the job goes on, and how to see it again."""
    shop.rows(lambda rows: rows.worker(name="w1", queue="build", beat_at=clock.now()))
    words = [sys.executable, "-c", HEARING, "build", "--engine", "tiny"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as cli:
        try:
            assert cli.stdout.readline().startswith("job 1: build tiny main for cpu")
            cli.send_signal(signal.SIGINT)
            _, complaints = cli.communicate(timeout=30)
        finally:
            cli.kill()
    assert cli.returncode == 130
    assert "job 1 goes on without you" in complaints
    assert shop.job(1).state == State.QUEUED


@pytest.mark.needs("git")
def test_nobody_is_kept_waiting_where_nobody_builds(shop):
    """Without a worker the command says so and ends; so it does when it shall not wait."""
    assert "nobody serves build" in run("build", "--engine", "tiny")
    shop.rows(lambda rows: rows.worker(name="w1", queue="build", beat_at=clock.now()))
    assert (
        run("build", "--engine", "tiny", "--no-wait") == "job 1: build tiny main for cpu (queued)\n"
    )
    told = json.loads(run("build", "--engine", "tiny", "--no-wait", "--json"))
    assert (told["job"]["id"], told["build"]) == (1, None)


@pytest.mark.needs("git")
def test_a_build_that_needs_a_word_says_so_and_ends(shop):
    """The command does not wait for a person, and prints what that person has to type."""
    values = {"name": "strange", "repo": "owner/tiny", "trust": "approve"}
    shop.rows(lambda rows: rows.engine(**values))
    shop.rows(lambda rows: rows.worker(name="w1", queue="build", beat_at=clock.now()))
    told = run("build", "--engine", "strange")
    assert "(blocked)" in told
    sha = shop.repository.git("rev-parse", "HEAD").strip()
    assert f"forkscout approve strange@{sha}" in told


def test_wrong_words_are_refused(shop):
    """An engine that is missing or unknown, a target that nothing names, a build that is not."""
    assert "which engine?" in CliRunner().invoke(build_app("build"), ["build"]).output
    for words in (
        ("build", "--engine", "tinny"),
        ("build", "--engine", "tiny", "--for", "gpu"),
        ("build", "show", "7"),
        ("builds", "--engine", "tinny"),
    ):
        with pytest.raises(UsageError):
            run(*words)


def test_the_words_of_strangers_do_not_drive_the_terminal(shop):
    """Labels, messages and steps are shown without what a terminal would obey."""

    def fill(rows: Rows) -> None:
        revision = rows.revision(label=HOSTILE)
        rows.build(revision, provenance={"steps": [[HOSTILE]], "source": HOSTILE})

    shop.rows(fill)
    shop.rows(lambda rows: rows.job(kind="build", state=State.FAILED, message=HOSTILE, payload={}))
    for words in (("builds",), ("build", "show", "1")):
        shown = run(*words)
        assert "evil[red]x[/red]" in shown, words
        assert not {"\x1b", "\u202e"} & set(shown), words


def test_a_first_look_says_how_to_build(shop):
    """An empty list is no error, and a filter that nothing passes is not called empty."""
    assert "forkscout build" in run("builds")
    assert run("builds", "--for", "gpu") == "no build is like that\n"
