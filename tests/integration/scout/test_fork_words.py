"""What commands say of forks that were found, of watches, and of names nobody can have."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.errors import UsageError
from jobs.sightings import RepositoryRow
from jobs.store import catalog, chains, forks, refs, source_states
from scout.cli import app
from scout.forks_cli import issue_place
from scout.github.governor import Tier

NOW = datetime.now(UTC)
UPSTREAM, WORK = 1, 9


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of its own for every test."""
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def say(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def found(name: str = "new/work-dflash", **facts: Any) -> None:
    """A fork that GitHub's list showed, pushed to yesterday."""
    values = {"github_id": WORK, "parent_github_id": UPSTREAM, "tier": Tier.CANDIDATE,
              "created_at": NOW - timedelta(days=9), "pushed_at": NOW - timedelta(days=1),
              "first_seen_at": NOW, "last_seen_at": NOW} | facts  # fmt: skip
    database = open_database(Settings())
    with writing(database) as session:
        session.add(RepositoryRow(full_name=name, **values))
    database.dispose()


def test_nothing_is_invented_of_a_repository_without_a_number() -> None:
    """It has no parent by sharing "no number" with others, and nothing is known of its pushes."""
    for name in ("a/engine", "b/engine"):
        found(name, github_id=None, parent_github_id=None, created_at=None, pushed_at=None)
    said = say("forks", "show", "a/engine").stdout
    assert "a fork of" not in said
    assert "never pushed to" not in said
    assert "a/engine: no score: nothing is known of its pushes" in said
    assert json.loads(say("forks", "show", "a/engine", "--json").stdout)["parent"] == ""


def test_a_fork_of_a_parent_is_said_to_be_one() -> None:
    """Also where the parent is gone by now."""
    found("up/llama.cpp", github_id=UPSTREAM, parent_github_id=None, state=forks.GONE)
    found()
    assert "a fork of up/llama.cpp" in say("forks", "show", "new/work-dflash").stdout


def test_the_next_step_fits_what_is_so() -> None:
    """Watched already: how to end it; not looked at: which look does it; built: how to add it."""
    found()
    said = say("forks", "show", "new/work-dflash").stdout
    assert "git has not looked at it yet: forkscout scout run --source candidates" in said
    assert "forkscout watch fork new/work-dflash" in said
    assert "forkscout watchlist add new/work-dflash --via cmake" in said
    say("watch", "fork", "new/work-dflash")
    said = say("forks", "show", "new/work-dflash").stdout
    assert "forkscout unwatch fork new/work-dflash" in said
    assert "forkscout watch fork" not in said


def test_watches_are_listed_in_plain_words() -> None:
    """A fork that is there is a fork; what became of another is said."""
    found(tier=Tier.WATCHED)
    assert say("watch", "list").stdout.endswith("new/work-dflash  fork\n")
    found("old/gone", github_id=10, tier=Tier.WATCHED, state=forks.GONE)
    assert "old/gone  fork, is gone from GitHub" in say("watch", "list").stdout


def test_a_fork_nobody_found_has_a_near_one() -> None:
    """And the way to look for it."""
    found()
    with pytest.raises(UsageError) as refused:
        say("watch", "fork", "new/work-dflsh")
    assert "did you mean 'new/work-dflash'? Else look first: " in refused.value.advice


def test_a_long_name_is_not_given_back() -> None:
    """A hundred thousand letters are no name, and no message either."""
    with pytest.raises(UsageError) as refused:
        say("watch", "fork", "a" * 100_000)
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    "text",
    [
        "up/llama.cpp#35",
        "https://github.com/up/llama.cpp/issues/35",
        "https://github.com/up/llama.cpp/pull/35",
        "github.com/up/llama.cpp/pull/35/files#diff-0",
        "https://github.com/up/llama.cpp/issues/35#issuecomment-1",
    ],
)
def test_the_address_of_an_issue_is_taken(text: str) -> None:
    """As a browser shows it."""
    assert issue_place(text) == ("up/llama.cpp", 35)


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com.evil.test/up/llama.cpp/issues/35",
        "https://evil.test/github.com/up/llama.cpp/issues/35",
        "https://github.com/up/llama.cpp/issues/0",
        "https://github.com/up/../issues/35",
        "https://github.com/--upload-pack=x/y/issues/35",
        "https://github.com/up/llama.cpp/wiki/35",
    ],
)
def test_no_other_address_is(text: str) -> None:
    """Neither another host, nor another page, nor a name that is none."""
    with pytest.raises(UsageError):
        issue_place(text)


@pytest.mark.parametrize(
    "words",
    [
        ("forks", "show"), ("watch", "fork"), ("unwatch", "fork"), ("watch", "issue"),
        ("unwatch", "issue"), ("lineage",), ("watchlist", "add"), ("watchlist", "remove"),
        ("watchlist", "check"), ("watchlist", "import"), ("events", "--engine"),
        ("events", "--kind"), ("events", "--since"), ("scout", "run", "--source"),
        ("models", "show"), ("gguf",), ("fit",), ("pair", "--engine"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_half_a_character_is_a_wrong_name(words: tuple[str, ...]) -> None:
    """An argument that is no text is refused in a sentence by every command that takes a name."""
    found()
    result = CliRunner().invoke(app, [*words, "new/\udcff"])
    assert isinstance(result.exception, UsageError | SystemExit), result.exception
    assert result.exit_code != 0


def test_a_pull_request_is_shown_where_it_is_the_source() -> None:
    """Two engines of one repository are told apart in the list."""
    Path("list.toml").write_text(
        '[[engine]]\nname = "mtp"\nfamily = "llama.cpp"\nrepo = "up/llama.cpp"\n'
        'branches = ["pull/22673"]\n'
    )
    say("watchlist", "import", "list.toml")
    assert "up/llama.cpp pull/22673" in say("watchlist", "list").stdout


def test_a_release_is_on_the_page_of_its_fork() -> None:
    """As the last look at releases found it."""
    Path("list.toml").write_text(
        '[[engine]]\nname = "up"\nfamily = "llama.cpp"\nrepo = "up/llama.cpp"\n'
    )
    say("watchlist", "import", "list.toml")
    database = open_database(Settings())
    with writing(database) as session:
        row = refs.repository_of(session, catalog.engine_named(session, "up"), NOW)
        row.github_id = UPSTREAM
        state = source_states.lock_source_state(session, f"github_releases:{UPSTREAM}", NOW)
        state.cursor = {"latest": "v2.8.3"}
    with reading(database) as session:
        assert [each.latest_release for each in chains.watched(session)] == ["v2.8.3"]
    database.dispose()
