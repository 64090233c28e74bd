"""What `forkscout doctor` finds on machines that lack one thing each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from sqlalchemy.engine import make_url
from typer.testing import CliRunner

from jobs import db
from jobs.config import Settings
from jobs.errors import ScoutError
from workers import doctor
from workers.cages import Cage
from workers.cli import app
from workers.uncaged import Uncaged


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    return tmp_path / "var"


def open_cage(_settings: Settings) -> Cage:
    return Cage(Uncaged(), ("bubblewrap: setting up uid map: Permission denied",))


def found(settings: Settings, **more) -> dict[str, doctor.Finding]:
    return {each.name: each for each in doctor.examine(settings, cage=open_cage, **more)}


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, ["doctor", *words])
    if isinstance(result.exception, ScoutError):
        raise result.exception
    return result


def test_a_cage_that_does_not_hold_is_bad_and_says_what_to_do(home):
    """No fork runs; the way out is named."""
    cage = found(Settings())["cage"]
    assert (cage.state, "uid map" in cage.says) == (doctor.BAD, True)
    assert "docker.io" in cage.advice
    closed = found(Settings(sandbox="none"))["cage"]
    assert (closed.state, "packages alone" in closed.says) == (doctor.NOTE, True)


def test_a_machine_without_tools_builds_packages_only(home, tmp_path, monkeypatch):
    """Each missing tool is a note with the package that has it."""
    monkeypatch.setattr(doctor, "STEP_PATH", str(tmp_path))
    seen = found(Settings())
    assert {seen[name].state for name in ("compiler", *doctor.HELPFUL)} == {doctor.NOTE}
    assert "cmake and c++ missing" in seen["compiler"].says
    assert all(seen[name].advice for name in doctor.HELPFUL)


def test_a_full_disk_is_bad(home):
    """Before a job finds out."""
    disk = found(Settings(min_free_bytes=2**60))["disk"]
    assert (disk.state, "must stay free" in disk.says) == (doctor.BAD, True)


def test_a_database_is_asked_and_never_made(home):
    """None yet is a note, an empty one too; one that is no database is bad."""
    assert found(Settings())["database"].says == "none yet"
    assert not home.exists()
    db.open_database(Settings()).dispose()
    assert "0 engines are watched" in found(Settings())["database"].says
    Path(make_url(Settings().resolved_database_url).database or "").write_bytes(b"no" * 9000)
    broken = found(Settings())["database"]
    assert (broken.state, bool(broken.advice)) == (doctor.BAD, True)


def test_a_broker_answers_or_not(home, valkey_url):
    """A password in its address is never shown."""
    there = found(Settings(broker_url=valkey_url))["broker"]
    assert (there.state, there.says) == (doctor.GOOD, "answers")
    gone = found(Settings(broker_url="redis://:hidden-word@127.0.0.1:1/0"))["broker"]
    assert gone.state == doctor.BAD
    assert "hidden-word" not in gone.says
    assert found(Settings())["broker"].state == doctor.NOTE


def test_tokens_that_are_missing_are_a_note(home):
    """And those that are set are not shown."""
    assert {"GitHub", "model hub"} <= set(found(Settings()))
    given = {"github_token": "a", "hf_token": "b"}
    assert not {"GitHub", "model hub"} & set(found(Settings(**given)))


def test_the_command_tells_all_and_ends_by_the_worst(home, monkeypatch):
    """For people and for programs alike."""
    monkeypatch.setattr(doctor, "_proven", open_cage)
    result = run()
    assert result.exit_code == 1
    assert "bad: cage: no fork is built or run here" in result.stdout
    assert "  next: " in result.stdout
    told = json.loads(run("--json").stdout)
    assert [each["name"] for each in told][:2] == ["cage", "compiler"]
    monkeypatch.setenv("FORKSCOUT_SANDBOX", "none")
    assert run().exit_code == 0
