"""What a person may set, and what happens with a setting that is wrong."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy import Engine

from jobs import db
from jobs.cli.root import wrong_setting
from jobs.config import Settings
from jobs.errors import Permanent, UsageError
from jobs.worker import worker_name


def settings(home: Path, **changes: object) -> Settings:
    return Settings(_env_file=None, home=home, **changes)  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "0"),
        ("PORT", "70000"),
        ("PORT", "abc"),
        ("SWEEP_SECONDS", "inf"),
        ("SWEEP_SECONDS", "nan"),
        ("SANDBOX", "dokcer"),
        ("RIG", "../../x"),
        ("RIG", "a,b"),
        ("HEARTBEAT_SECONDS", "60"),
        ("HOME", "/tmp/two\nlines"),
    ],
)
def test_an_impossible_value_is_named_as_it_was_typed(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message holds the variable's own name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"FORKSCOUT_{name}", value)
    with pytest.raises(ValidationError) as caught:
        Settings()
    assert f"FORKSCOUT_{name}" in wrong_setting(caught.value)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_an_empty_variable_is_the_default(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`FORKSCOUT_HOST=` does not open the site to the world, `FORKSCOUT_HOME=` is no folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"FORKSCOUT_{name.upper()}", "")
    assert getattr(Settings(), name) == Settings.model_fields[name].default


@pytest.mark.parametrize("name", ["a b", "q'\"q", "ünï", "q?x=1#y%20z", "100%", "l" * 120])
def test_any_home_holds_its_own_database_and_a_usable_socket(name: str, tmp_path: Path) -> None:
    """Signs that mean something in addresses do not lead out of the home folder."""
    ours = settings(tmp_path / name)
    db.open_database(ours).dispose()
    assert (tmp_path / name / "forkscout.sqlite").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert len(os.fsencode(ours.broker_socket)) < 108
    assert ours.resolved_broker_url == f"redis+socket://{ours.broker_socket}"
    assert not set(str(ours.broker_socket)) & set(" ?#%'\"@")
    ours.runtime.rmdir()


def test_a_folder_for_sockets_that_others_planted_is_refused(tmp_path: Path) -> None:
    """Neither a link in its place nor a folder others can write to holds our broker."""
    ours = settings(tmp_path / "a home whose path is no socket's")
    assert not ours.runtime.is_relative_to(ours.root)
    ours.runtime.symlink_to(tmp_path)
    try:
        with pytest.raises(PermissionError, match="only we can write"):
            ours.prepare()
    finally:
        ours.runtime.unlink()
    ours.runtime.mkdir()
    ours.runtime.chmod(0o777)
    try:
        with pytest.raises(PermissionError, match="only we can write"):
            ours.prepare()
    finally:
        ours.runtime.rmdir()


def test_a_home_is_private(tmp_path: Path) -> None:
    """Logs, weights and sockets are nobody else's business."""
    ours = settings(tmp_path / "home")
    ours.prepare()
    for folder in (ours.root, ours.runtime, ours.logs, ours.artifacts, ours.locks):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("url", ["nonsense", "mysql://u@h/d", "nosuch://x", "sqlite+nosuch:///x"])
def test_an_address_of_no_database_is_a_usage_error(url: str, tmp_path: Path) -> None:
    """The message names the setting."""
    with pytest.raises(UsageError, match="FORKSCOUT_DATABASE_URL"):
        db.open_database(settings(tmp_path, database_url=url))


def test_a_database_that_is_away_is_one_sentence_without_its_password(tmp_path: Path) -> None:
    """Who reads the message learns where, not with which secret."""
    url = "postgresql+psycopg://me:hunter2@127.0.0.1:1/none"
    with pytest.raises(Permanent, match="does not answer") as caught:
        db.open_database(settings(tmp_path, database_url=url))
    assert "hunter2" not in caught.value.message
    assert "\n" not in caught.value.message


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    """It is named, not overwritten."""
    file = tmp_path / "forkscout.sqlite"
    file.write_bytes(b"something else entirely" * 100)
    with pytest.raises(Permanent, match="not a database"):
        db.open_database(settings(tmp_path))
    assert file.read_bytes() == b"something else entirely" * 100


def test_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    """An older forkscout says that a newer one wrote this, and changes nothing."""
    ours = settings(tmp_path)
    engine: Engine = db.open_database(ours)
    engine.dispose()
    with sqlite3.connect(tmp_path / "forkscout.sqlite") as raw:
        raw.execute("update alembic_version set version_num = '9999'")
    raw.close()
    with pytest.raises(Permanent, match="does not know the schema"):
        db.open_database(ours)


def test_two_homes_on_one_host_have_workers_of_their_own(tmp_path: Path) -> None:
    """They may share a database; the job of one is never taken back by the other."""
    here, there = settings(tmp_path / "a"), settings(tmp_path / "b")
    assert worker_name(here, "build") == worker_name(here, "build")
    assert worker_name(here, "build") != worker_name(there, "build")
    assert worker_name(here, "build").startswith("build@")
