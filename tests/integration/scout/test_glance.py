"""One look by hand over packages, git and GitHub: one summary, one exit code, one object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from support import github_json as make
from support.github import GitHub
from support.package_index import PackageIndex
from typer.testing import CliRunner, Result

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, writing
from jobs.errors import UsageError
from jobs.sightings import RepositoryRow
from jobs.store import fleet
from scout.cli import app
from scout.github.governor import Tier

UPSTREAM = 612354784
WHEEL = """\
[[engine]]
name = "wheel"
family = "xllamacpp"
package = "stub"
trust = "package"
"""
FORK = """\
[[engine]]
name = "upstream"
family = "llama.cpp"
repo = "ggml-org/llama.cpp"
"""


@pytest.fixture
def github(
    tmp_path: Path, package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GitHub]:
    """A home that watches one wheel, and one fork that only GitHub's API is asked about."""
    package_index.offer("stub", "1.0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    monkeypatch.setenv("FORKSCOUT_GITHUB_TOKEN", "s3cret")
    (tmp_path / "list.toml").write_text(WHEEL)
    monkeypatch.setenv("FORKSCOUT_WATCHLIST", str(tmp_path / "list.toml"))
    with GitHub() as server:
        server.public = server.url
        monkeypatch.setenv("FORKSCOUT_GITHUB_API", server.url)
        server.add(UPSTREAM, "ggml-org/llama.cpp")
        database = open_database(Settings())
        with writing(database) as session:
            session.add(
                RepositoryRow(
                    github_id=UPSTREAM,
                    full_name="ggml-org/llama.cpp",
                    tier=Tier.WATCHED,
                    first_seen_at=clock.now(),
                    last_seen_at=clock.now(),
                )
            )
        database.dispose()
        yield server


def say(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def release_later(github: GitHub) -> None:
    """One that is published after the first look."""
    late = clock.now() + timedelta(hours=1)
    github.put(UPSTREAM, "releases", make.release(2, "b9200", f"{late:%Y-%m-%dT%H:%M:%SZ}"))


def test_all_sources_in_one_summary(github: GitHub) -> None:
    """Packages, then GitHub; progress goes to standard error; a quiet second look is short."""
    ran = say("scout", "run")
    assert ran.exit_code == 0, ran.output
    assert "wheel: 1.0" in ran.stdout
    assert "new: wheel 1.0 released" in ran.stdout
    assert " looks with " in ran.stdout
    assert "looking at wheel ..." in ran.stderr
    assert ran.stderr.count("looking at github_releases ...") == 1
    asked = len(github.asked)
    again = say("scout", "run")
    assert "GitHub: 0 looks with 0 requests" in again.stdout
    assert "nothing new" in again.stdout
    assert len(github.asked) == asked
    assert "s3cret" not in ran.output


def test_json_is_one_object(github: GitHub) -> None:
    """With the news of all sources in one list."""
    say("scout", "run", "--source", "github")
    release_later(github)
    seen = json.loads(say("scout", "run", "--source", "github_releases", "--json").stdout)
    assert [each["key"] for each in seen["new"]] == ["gh:rel:2"]
    assert seen["troubles"] == []
    assert seen["github"]["requests"] >= 1
    whole = json.loads(say("scout", "run", "--json").stdout)
    assert whole["looked"] == {"wheel": ["1.0"]}
    assert set(whole) == set(seen)


def test_a_github_that_fails_hides_no_package(github: GitHub) -> None:
    """And a package that fails hides no news of GitHub; either is exit code 1."""
    github.fail("", times=99, status=502, body=b"<html>")
    ran = say("scout", "run")
    assert ran.exit_code == 1
    assert "new: wheel 1.0 released" in ran.stdout
    assert "ggml-org/llama.cpp: GitHub answered 502" in ran.stderr


def test_one_reason_is_told_once_with_what_to_do(github: GitHub) -> None:
    """Many sources that fail alike are one line, and each line has a next step."""
    github.fail("", times=99, status=502, body=b"<html>")
    lines = say("scout", "run").stderr.splitlines()
    (at,) = (number for number, line in enumerate(lines) if "GitHub answered 502" in line)
    assert lines[at].startswith("ggml-org/llama.cpp")
    assert lines[at].count("ggml-org/llama.cpp") == 1
    assert lines[at + 1].startswith("  next: ")


def test_a_refused_token_is_one_line_with_what_to_do(github: GitHub) -> None:
    """Not one for each source that waits for it."""
    github.fail("", times=99, status=401, body=b"{}")
    ran = say("scout", "run")
    assert ran.exit_code == 1
    assert ran.stderr.count("set FORKSCOUT_GITHUB_TOKEN") <= 2
    assert ran.stderr.count("refused the token (until") == 1


def test_a_package_that_fails_hides_no_news_of_github(
    github: GitHub, package_index: PackageIndex
) -> None:
    """The other way round."""
    say("scout", "run", "--source", "github")
    package_index.status = 503
    release_later(github)
    with_force = say("scout", "run", "--source", "github_releases")
    assert "new: ggml-org/llama.cpp released b9200" in with_force.stdout
    ran = say("scout", "run", "--json")
    assert ran.exit_code == 1
    seen = json.loads(ran.stdout)
    assert [each["engine"] for each in seen["troubles"]] == ["wheel"]
    assert seen["github"] is not None


def test_a_crash_of_ours_at_github_hides_nothing(
    github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that is none is told beside what the package index said."""
    monkeypatch.setenv("FORKSCOUT_GITHUB_API", "no address")
    ran = say("scout", "run")
    assert ran.exit_code == 1
    assert "new: wheel 1.0 released" in ran.stdout
    assert "GitHub: That cannot be done as asked: 'no address' is no address" in ran.stderr
    with pytest.raises(UsageError):
        say("scout", "run", "--source", "github_releases")


def test_without_a_token_only_what_is_cheap_is_asked(
    github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repositories and releases, an hour apart; it says so."""
    monkeypatch.delenv("FORKSCOUT_GITHUB_TOKEN")
    github.limit = github.remaining = 60
    ran = say("scout", "run")
    assert ran.exit_code == 0, ran.output
    assert "without a token only github_repositories, github_releases were due" in ran.stderr
    assert len(github.asked) == 2
    say("scout", "run")
    assert len(github.asked) == 2


def test_nobody_asks_github_where_nothing_is_set(
    github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No token and GitHub's own address: it is left alone, which is said."""
    monkeypatch.delenv("FORKSCOUT_GITHUB_TOKEN")
    monkeypatch.delenv("FORKSCOUT_GITHUB_API")
    ran = say("scout", "run")
    assert ran.exit_code == 0
    assert "GitHub's API was not asked: set FORKSCOUT_GITHUB_TOKEN" in ran.stderr
    assert github.asked == []
    assert json.loads(say("scout", "run", "--json").stdout)["github"] is None


def test_packages_and_git_are_sources_too(github: GitHub, tmp_path: Path) -> None:
    """Each looks at its own kind; nothing else is called unwatched, and GitHub is not asked."""
    ran = say("scout", "run", "--source", "packages")
    assert "new: wheel 1.0 released" in ran.stdout
    assert ran.exit_code == 0
    git = json.loads(say("scout", "run", "--source", "git", "--json").stdout)
    assert (git["looked"], git["unwatched"], git["github"]) == ({}, [], None)
    assert github.asked == []


def test_a_wrong_source_is_refused_with_the_nearest(github: GitHub) -> None:
    """Also one that needs a token and has none."""
    for word, near in (("package", "packages"), ("github_push", "github_pushes"), ("gti", "git")):
        with pytest.raises(UsageError) as refused:
            say("scout", "run", "--source", word)
        assert f"did you mean {near!r}" in refused.value.advice


def test_a_source_for_tokens_is_refused_without_one(
    github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to set."""
    monkeypatch.delenv("FORKSCOUT_GITHUB_TOKEN")
    with pytest.raises(UsageError) as refused:
        say("scout", "run", "--source", "github_pushes")
    assert "FORKSCOUT_GITHUB_TOKEN" in refused.value.advice
    assert github.asked == []


@pytest.mark.needs("git")
def test_a_repository_git_cannot_reach_hides_nothing(
    github: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One engine, two ways to look at it: either may fail alone."""
    (tmp_path / "list.toml").write_text(WHEEL + FORK)
    (tmp_path / "gitconfig").write_text(
        f'[url "{github.url}/nowhere/"]\n\tinsteadOf = https://github.com/\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    ran = say("scout", "run")
    assert ran.exit_code == 1
    assert "upstream: " in ran.stderr
    assert "new: wheel 1.0 released" in ran.stdout
    assert any("/releases" in each.path for each in github.asked)


def test_the_schedule_of_packages_and_git_asks_no_api(github: GitHub) -> None:
    """GitHub has a schedule of its own; the demo, which only rings this one, stays without it."""
    from jobs.worker import open_station
    from scout.rounds import SCHEDULE, watch_round

    station = open_station(Settings(), "scout")
    watch_round(station, SCHEDULE, fleet.slot_of(clock.now(), minutes=30))
    station.database.dispose()
    assert github.asked == []
