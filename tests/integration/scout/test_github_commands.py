"""Forks, linked issues and GitHub's sources as a person types them, and as the schedule rings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support import github_json as make
from support.github import GitHub
from typer.testing import CliRunner, Result

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.errors import UsageError
from jobs.store import catalog, forks
from jobs.worker import open_station
from scout.cli import app
from scout.github.schedule import github_round

UPSTREAM = 612354784
LIST = """\
[[engine]]
name = "upstream"
family = "llama.cpp"
repo = "ggml-org/llama.cpp"
"""


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    """An empty home, and GitHub's address set to a stand-in that names itself in its links."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    monkeypatch.setenv("FORKSCOUT_GITHUB_TOKEN", "s3cret")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "list.toml").write_text(LIST)
    monkeypatch.setenv("FORKSCOUT_WATCHLIST", str(tmp_path / "list.toml"))
    with GitHub() as server:
        server.public = server.url
        monkeypatch.setenv("FORKSCOUT_GITHUB_API", server.url)
        server.add(UPSTREAM, "ggml-org/llama.cpp")
        for number in range(120):
            server.add(1000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM)
        recent = (datetime.now(UTC) - timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        server.add(7, "some/dflash-llama.cpp", parent=UPSTREAM, pushed_at=recent, stars=5,
                   description="MTP \x1b[31mon\x07 Blackwell")  # fmt: skip
        yield server


def say(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_forks_are_found_and_ranked(github: GitHub) -> None:
    """The one somebody works on comes first, with reasons; hostile words are harmless."""
    ran = say("scout", "run", "--source", "github_forks")
    assert ran.exit_code == 0
    assert "GitHub: 3 looks with 3 requests" in ran.stdout
    found = json.loads(say("forks", "--rank", "--json", "--limit", "200").stdout)
    assert len(found) == 121
    assert found[0]["full_name"] == "some/dflash-llama.cpp"
    assert found[0]["description"] == "MTP [31mon Blackwell"
    assert "git has not looked at it yet" in found[0]["reasons"]
    assert found[0]["score"] > 10
    assert found[1]["shut_out"] == "nobody ever pushed to it"
    table = say("forks", "--rank", "--limit", "3").stdout
    assert "some/dflash" in table
    assert "\x1b" not in table
    assert "s3cret" not in ran.output


def test_a_source_nobody_knows_is_refused(github: GitHub) -> None:
    """With the nearest right word."""
    with pytest.raises(UsageError) as refused:
        say("scout", "run", "--source", "github_fork")
    assert "github_forks" in refused.value.advice


def test_a_source_that_does_not_answer_ends_with_1(github: GitHub) -> None:
    """And says which place had no answer."""
    github.fail("", times=99, status=502, body=b"<html>")
    ran = say("scout", "run", "--source", "github_releases")
    assert ran.exit_code == 1
    assert "ggml-org/llama.cpp: GitHub answered 502" in ran.output


def test_an_issue_is_watched_listed_and_forgotten(github: GitHub) -> None:
    """What it is called is known after the first look."""
    github.put(UPSTREAM, "issues", make.issue(35, "ggml-org/llama.cpp", "2026-05-18T11:00:00Z",
                                              title="slow drafts"))  # fmt: skip
    assert "watching ggml-org/llama.cpp#35" in say("watch", "issue", "ggml-org/llama.cpp#35").stdout
    assert "already watching" in say("watch", "issue", "ggml-org/llama.cpp#35").stdout
    say("scout", "run", "--source", "github_linked")
    assert "ggml-org/llama.cpp#35  issue open  slow drafts" in say("watch", "list").stdout
    assert json.loads(say("watch", "list", "--json").stdout)[0]["number"] == 35
    assert "no longer" in say("unwatch", "issue", "ggml-org/llama.cpp#35").stdout
    with pytest.raises(UsageError):
        say("unwatch", "issue", "ggml-org/llama.cpp#35")
    assert "no issue is watched" in say("watch", "list").stdout


def test_a_fork_is_watched_listed_and_let_go(github: GitHub) -> None:
    """Once it was found; the ranking shows its closer tier."""
    with pytest.raises(UsageError) as refused:
        say("watch", "fork", "some/dflash-llama.cpp")
    assert "forkscout watchlist add some/dflash-llama.cpp" in refused.value.advice
    say("scout", "run", "--source", "github_forks")
    assert "watching some/dflash" in say("watch", "fork", "some/dflash-llama.cpp").stdout
    assert "already watching" in say("watch", "fork", "some/dflash-llama.cpp").stdout
    assert "some/dflash-llama.cpp  fork\n" in say("watch", "list").stdout
    assert json.loads(say("watch", "list", "--json").stdout)[0]["kind"] == "fork"
    say("scout", "run", "--source", "github_forks")
    found = json.loads(say("forks", "--rank", "--json", "--limit", "200").stdout)
    assert (found[0]["full_name"], found[0]["tier"]) == ("some/dflash-llama.cpp", 1)
    assert "no longer" in say("unwatch", "fork", "some/dflash-llama.cpp").stdout
    with pytest.raises(UsageError):
        say("unwatch", "fork", "some/dflash-llama.cpp")


def test_a_copy_is_listed_as_what_it_is(github: GitHub) -> None:
    """Beside the forks, and marked: a name alike is no proof."""
    recent = (datetime.now(UTC) - timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    github.add(8, "other/llama.cpp", pushed_at=recent)
    say("scout", "run", "--source", "github_search")
    assert "other/llama.cpp (no fork on paper)" in say("forks").stdout.replace("\n", " ")
    (copy,) = json.loads(say("forks", "--json").stdout)
    assert (copy["unlinked"], copy["parent_id"]) == (True, None)


@pytest.mark.parametrize(
    "place",
    ["35", "a/b", "a/b#0", "a/b#x", "https://elsewhere.test/a/b/issues/1", "-x/b#1", "a/../b#1",
     "a/b#1 --x", "http://2130706433/#1"],
)  # fmt: skip
def test_only_a_place_is_taken(github: GitHub, place: str) -> None:
    """No address, no option, no path."""
    with pytest.raises(UsageError):
        say("watch", "issue", "--", place)


def test_a_token_that_another_link_took_along_is_not_lost(github: GitHub) -> None:
    """Relinked issues start with a fresh look though their page did not change."""
    github.put(UPSTREAM, "issues", make.issue(35, "ggml-org/llama.cpp", "2026-05-18T11:00:00Z"))
    for _ in range(2):
        say("watch", "issue", "ggml-org/llama.cpp#35")
        say("scout", "run", "--source", "github_linked")
        assert "issue open" in say("watch", "list").stdout
        say("unwatch", "issue", "ggml-org/llama.cpp#35")


def test_the_schedule_looks_once_per_slot(github: GitHub) -> None:
    """Two ringers, one round; its outcome is on record; nothing happens when it is off."""
    settings = Settings(github_minutes=10_000.0)
    database = open_database(settings)
    with writing(database) as session:
        values = {"family": "llama.cpp", "repo": "ggml-org/llama.cpp", "trust": "approve"}
        catalog.upsert_engine(session, "upstream", now=clock.now(), values=values)
    station = open_station(settings, "scout")
    found = github_round(station)
    assert found is not None
    assert found.requests > 3
    assert github_round(station) is None
    with reading(database) as session:
        assert len(forks.forks_of(session, UPSTREAM)) == 121
    asked = len(github.asked)
    silent = open_station(Settings(github_minutes=0), "scout")
    assert github_round(silent) is None
    assert len(github.asked) == asked
    for each in (database, station.database, silent.database):
        each.dispose()
