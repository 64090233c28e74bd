"""A list may build on what another list, or a person, has brought before it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.rows import Rows
from typer.testing import CliRunner

from jobs import db
from jobs.config import Settings
from jobs.errors import UsageError
from scout.watchlist_cli import app

MINE = """
[[stack]]
name = "mine"
engine = "xllamacpp"
target = "my-weights"

[[golden]]
rig = "cpu"
stack = "mine"
revision = "v1"

[[rule]]
on = "release"
do = "nothing"
stacks = ["mine"]

[[budget]]
rig = "cpu"
hours_per_day = 6
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    (tmp_path / "mine.toml").write_text(MINE)
    return tmp_path


def say(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_stacks_and_goldens_on_what_is_known(home: Path) -> None:
    """Refused alone; taken where the engine is listed and the weights were added by hand."""
    with pytest.raises(UsageError, match="unknown engine 'xllamacpp'"):
        say("check", "mine.toml")
    say("import", "demo")
    with pytest.raises(UsageError, match="unknown model 'my-weights'"):
        say("import", "mine.toml")
    database = db.open_database(Settings())
    with db.writing(database) as session:
        Rows(session).model_file(name="my-weights", source={})
    database.dispose()
    assert "rules: 1, budgets: 1" in say("check", "mine.toml")
    told = say("import", "mine.toml")
    assert "stack mine is new" in told
    assert "golden of cpu is new" in told
    listed = json.loads(say("list", "--json"))
    assert "mine" in [each["name"] for each in listed["stacks"]]
    assert [each["name"] for each in listed["rules"]] == ["release:nothing"]
    assert [each["hours_per_day"] for each in listed["budgets"]] == [6]
    assert "rules: 1, budgets: 1" in say("list")


def test_a_list_that_takes_the_place_of_all_stands_alone(home: Path) -> None:
    """What it would build on is gone with it."""
    say("import", "demo")
    with pytest.raises(UsageError, match="unknown engine 'xllamacpp'"):
        say("import", "mine.toml", "--replace")
