"""The scout's commands as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.chain import Chain
from support.hub import Hub
from support.package_index import PackageIndex
from support.watching import CHAIN, engine
from typer.testing import CliRunner, Result

from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.errors import UsageError
from jobs.store.standings import standings
from scout.cli import app

LIST = """\
[[engine]]
name = "wheel"
family = "xllamacpp"
package = "stub"
trust = "package"
[[engine.build]]
rig = "cpu"
via = "wheel"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of its own for every test."""
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.toml").write_text(LIST)
    return tmp_path


def say(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_from_list_to_events(package_index: PackageIndex) -> None:
    """Check, import, look, read: each says what happened, for people and for programs."""
    package_index.offer("stub", "1.0")
    assert "list.toml is right" in say("watchlist", "check", "list.toml").stdout
    assert "engine wheel is new" in say("watchlist", "import", "list.toml").stdout
    assert "nothing changed" in say("watchlist", "import", "list.toml").stdout
    assert "new: wheel 1.0 released" in say("scout", "run").stdout
    again = json.loads(say("scout", "run", "--json").stdout)
    assert again["looked"] == {"wheel": ["1.0"]}
    assert again["new"] == []
    assert "wheel 1.0 released" in say("events").stdout
    (event,) = json.loads(say("events", "--json").stdout)
    assert event["kind"] == "release"
    (engine,) = json.loads(say("watchlist", "list", "--json").stdout)["engines"]
    assert (engine["name"], engine["revisions"]) == ("wheel", 1)


def test_a_dead_index_is_exit_code_one(package_index: PackageIndex) -> None:
    """The reason and what to do go to standard error, JSON stays JSON."""
    package_index.status = 503
    say("watchlist", "import", "list.toml")
    result = say("scout", "run")
    assert result.exit_code == 1
    assert "the package index did not answer about stub" in result.stderr
    result = say("scout", "run", "--json")
    assert json.loads(result.stdout)["troubles"][0]["engine"] == "wheel"


def test_a_wrong_list_changes_nothing(home: Path) -> None:
    """A list with one wrong word is refused before the database is opened."""
    (home / "list.toml").write_text(LIST.replace("trust", "trsut"))
    with pytest.raises(UsageError, match="line 5: unknown key 'trsut'"):
        say("watchlist", "import", "list.toml")
    assert not (home / "var").exists()


@pytest.mark.parametrize("name", ["demo", "fork-chain"])
def test_shipped_lists_are_found_by_name(name: str) -> None:
    """No path is needed for a list that came with forkscout."""
    assert "is right" in say("watchlist", "check", name).stdout


def test_a_missing_list_names_the_shipped_ones() -> None:
    """The advice says what there is."""
    with pytest.raises(UsageError, match="cannot be read") as caught:
        say("watchlist", "check", "nowhere.toml")
    assert "demo" in caught.value.advice


def test_nothing_watched_says_what_to_do() -> None:
    """An empty installation tells the next command."""
    assert "forkscout watchlist import demo" in say("watchlist", "list").stdout
    assert "forkscout scout run" in say("events").stdout


@pytest.mark.needs("git")
def test_lineage_from_the_watch_list_to_the_tree(tmp_path: Path, chain: Chain) -> None:
    """After one look the chain is printed as a tree, and as JSON, and is kept in the same words."""
    (tmp_path / "chain.toml").write_text(CHAIN)
    say("watchlist", "import", "chain.toml")
    with pytest.raises(UsageError, match="no repository of 'bee' was seen yet"):
        say("lineage", "bee")
    assert "nothing new" in say("scout", "run").stdout
    text = say("lineage", "bee").stdout
    assert "upstream  master" in text
    assert "upstream +10 -2, buun +3 -1" in text
    assert "absorbed 1 patch of turbo (0 commits as they were)" in text
    assert "+N -M: commits ahead of and behind upstream" in text
    found = {each["engine"]: each for each in json.loads(say("lineage", "bee", "--json").stdout)}
    assert [each["parent"] for each in found.values()] == [None, "upstream", "turbo", "buun"]
    with pytest.raises(UsageError, match="beee"):
        say("lineage", "beee")
    database = open_database(Settings())
    with reading(database) as session:
        kept = [row.descent for row in standings(session).values()]
    database.dispose()
    assert sorted(kept, key=str) == sorted(found.values(), key=str)


def test_a_package_has_no_lineage(package_index: PackageIndex) -> None:
    """No look would ever help, so none is advised."""
    say("watchlist", "import", "list.toml")
    with pytest.raises(UsageError, match="wheel is a package and has no lineage") as caught:
        say("lineage", "wheel")
    assert "watchlist list" in caught.value.advice


def test_with_nothing_watched_the_demo_is_taken_and_told(package_index: PackageIndex) -> None:
    """Builds of something nobody asked for come with a word on why."""
    said = "nothing is watched: taking the shipped list demo"
    assert said in say("scout", "run", "--source", "packages").stderr
    assert said not in say("scout", "run", "--source", "packages").stderr


def test_a_place_on_the_hub_is_something_watched(
    tmp_path: Path, package_index: PackageIndex
) -> None:
    """Who watches drafters alone gets no engines beside them."""
    (tmp_path / "drafters.toml").write_text('[[models]]\nwatch = "author:spiritbuun"\n')
    say("watchlist", "import", "drafters.toml")
    assert "taking the shipped list" not in say("scout", "run", "--source", "packages").stderr


@pytest.mark.needs("git")
def test_a_lone_fork_is_told_why_it_stands_alone(tmp_path: Path, chain: Chain) -> None:
    """With what to type to give it company."""
    (tmp_path / "one.toml").write_text(engine("bee", "bee/engine"))
    say("watchlist", "import", "one.toml")
    say("scout", "run")
    assert "forkscout watchlist add OWNER/NAME" in say("lineage", "bee").stdout


@pytest.mark.needs("git")
def test_a_repository_that_is_not_there_is_exit_code_one(tmp_path: Path, hub: Hub) -> None:
    """It is named with what to do, and named again until it answers; it is never "unwatched"."""
    (tmp_path / "gone.toml").write_text(engine("gone", "no/where"))
    say("watchlist", "import", "gone.toml")
    first = say("scout", "run")
    assert first.exit_code == 1
    assert "no/where" in first.stderr
    again = say("scout", "run")
    assert again.exit_code == 1
    assert "not asked until" in again.stderr
    assert "forkscout scout run --source git" in again.stderr
    by_hand = say("scout", "run", "--source", "git")
    assert by_hand.exit_code == 1
    assert "not asked" not in by_hand.stderr
    assert "not watched yet" not in again.stdout


def test_events_are_filtered(package_index: PackageIndex) -> None:
    """By kind, engine and time; a word nobody knows gets the nearest right one."""
    package_index.offer("stub", "1.0")
    say("watchlist", "import", "list.toml")
    say("scout", "run")
    for words in (["--kind", "release"], ["--engine", "wheel"], ["--since", "1h"]):
        (event,) = json.loads(say("events", *words, "--json").stdout)
        assert event["engine"] == "wheel"
    assert json.loads(say("events", "--since", "9999-01-01", "--json").stdout) == []
    for kind in ("tag_moved", "copy_found"):
        assert "nothing of that" in say("events", "--kind", kind).stdout
    with pytest.raises(UsageError, match="'fork_pusht'") as caught:
        say("events", "--kind", "fork_pusht")
    assert "fork_pushed" in caught.value.advice
    with pytest.raises(UsageError, match="'weel'"):
        say("events", "--engine", "weel")


@pytest.mark.parametrize(
    "text", ["yesterday", "7", "0d", "-1d", "99999d", "0001-01-01T00:00+14:00"]
)
def test_a_moment_that_is_none_is_refused(text: str) -> None:
    """Before the database is asked."""
    with pytest.raises(UsageError, match="is no moment"):
        say("events", f"--since={text}")
