"""Ranking, explaining and watching forks as a person types it, over real git repositories."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.chain import Chain, copy_chain, patch
from support.hub import Hub
from support.watching import CHAIN
from typer.testing import CliRunner, Result

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.errors import UsageError
from jobs.sightings import RepositoryRow
from jobs.store import catalog, chains, forks, refs, source_states
from jobs.worker import open_station
from scout.cli import app
from scout.github.governor import Tier
from scout.rounds import CANDIDATES, candidates_round
from scout.scores import keep_scores

pytestmark = pytest.mark.needs("git")
NOW = datetime.now(UTC)
IDS = {"up/llama.cpp": (1, None), "tom/turbo": (2, 1), "buun/engine": (3, 2),
       "bee/engine": (4, 3)}  # fmt: skip


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_chain: Chain) -> Chain:
    """The chain in a watch list, looked at once, with two forks that GitHub listed."""
    hub = Hub(tmp_path / "outside")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hub.config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.toml").write_text(CHAIN)
    monkeypatch.setenv("FORKSCOUT_WATCHLIST", str(tmp_path / "list.toml"))
    chain = copy_chain(first_chain, hub)
    readme = "A fork of buun/engine; see https://github.com/new/work and github.com/bee/engine."
    chain.bee.commit({"README.md": readme}, message="readme", author="bee")
    chain.bee.push("HEAD:refs/heads/main")
    for name in ("new/work", "new/copy"):
        made = hub.add(name)
        made.git("reset", "--quiet", "--hard", made.take(chain.buun, "master"))
        if name == "new/work":
            patch(made, "faster dflash", "eve", 40, "ggml/src/ggml-cuda/fattn.cu")
        made.push()
    say("scout", "run")
    change(_list)
    return chain


def _list(session: Any) -> None:
    for row in refs.repositories_of_engines(session).values():
        row.github_id, row.parent_github_id = IDS[row.full_name]
        row.created_at, row.pushed_at = NOW - timedelta(days=90), NOW - timedelta(days=3)
        session.add(row)
    for number, name in ((8, "new/copy"), (9, "new/work")):
        row = RepositoryRow(github_id=number, full_name=name, parent_github_id=3, root_github_id=1,
                            default_branch="main", tier=Tier.CANDIDATE, stars=2,
                            created_at=NOW - timedelta(days=9), pushed_at=NOW - timedelta(days=1),
                            facts={"first_size_kib": 5, "size_kib": 5}, first_seen_at=NOW,
                            last_seen_at=NOW)  # fmt: skip
        session.add(row)


def change(what: Any) -> None:
    database = open_database(Settings())
    with writing(database) as session:
        what(session)
    database.dispose()


def say(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "240"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_forks_rank_by_their_own_work(chain: Chain) -> None:
    """Looked at by hand; the copy is shut out, the table has both counts."""
    assert "new/work: looked at" in say("scout", "run", "--source", "candidates").stdout
    found = json.loads(say("forks", "--rank", "--json").stdout)
    by_name = {each["full_name"]: each for each in found}
    work, copy = by_name["new/work"], by_name["new/copy"]
    assert (work["git"]["own_vs_upstream"], work["git"]["own_vs_parent"]) == (8, 1)
    assert work["named_in"] == []
    assert "size never changed" in copy["shut_out"]
    assert by_name["bee/engine"]["engine"] == "bee"
    lines = say("forks", "--rank").stdout.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.endswith("  new/work"))
    assert lines[at + 1].strip().startswith("own 8, beyond 1, tier 2, 2 stars, pushed ")
    assert "1 patch of its own beyond its parent buun" in lines[at + 2]
    assert "new/copy" in say("forks", "--limit", "9").stdout


def test_a_look_keeps_the_scores_for_the_pages(chain: Chain) -> None:
    """The same number and reasons as in the terminal, the best first; kept anew only if other."""
    say("scout", "run", "--source", "candidates")
    ranked = {each["full_name"]: each for each in json.loads(say("forks", "--json").stdout)}
    database = open_database(Settings())
    with reading(database) as session:
        shown = chains.found(session).others
    assert shown[0].full_name == "new/work"
    assert shown[0].score is not None
    assert shown[0].score.score == ranked["new/work"]["score"]
    assert list(shown[0].score.reasons) == ranked["new/work"]["reasons"]
    assert {each.full_name: each.score.shut_out for each in shown}["new/copy"]
    assert keep_scores(database, now=clock.now) == 0
    database.dispose()


def test_a_pipe_gets_every_letter_and_a_legend(chain: Chain) -> None:
    """No reason is cut or wrapped where no terminal is, also that git has not looked yet."""
    name = f"new/{'x' * 90}"
    change(lambda session: session.add(_fork_of_buun(name)))
    said = say("forks", "--rank").stdout
    assert f"  {name}\n" in said
    assert "git has not looked at it yet" in said
    assert "own ?, beyond ?, tier 2, 900 stars" in said
    for sign in ("own:", "beyond:", "?:", "tier:"):
        assert sign in said


def _fork_of_buun(name: str) -> RepositoryRow:
    return RepositoryRow(
        github_id=99, full_name=name, parent_github_id=3, tier=Tier.CANDIDATE, stars=900,
        description="dflash mtp turbo kv", created_at=NOW - timedelta(days=9),
        pushed_at=NOW - timedelta(days=1), first_seen_at=NOW, last_seen_at=NOW,
    )  # fmt: skip


def test_an_old_name_still_finds_a_fork(chain: Chain) -> None:
    """A person remembers the name a fork had; the watch list shows both, once it is an engine's."""

    def rename(session: Any) -> None:
        for number, old, new in ((4, "bee/engine", "bee/moved"), (6, "new/was", "new/copy")):
            row = forks.repository(session, number) or forks.repositories_like(session, new)[0]
            row.full_name = new
            session.add(row)
            catalog.add_event(session, key=f"renamed {number}", kind="repo_renamed", now=NOW,
                              title=f"{old} is called {new} now",
                              payload={"repo_id": row.github_id, "old_name": old})  # fmt: skip

    change(rename)
    said = say("forks", "show", "BEE/engine").stdout
    assert "BEE/engine is called bee/moved now" in said
    assert "bee/moved: " in said
    assert "bee/engine (called bee/moved now)" in say("watchlist", "list").stdout
    assert json.loads(say("forks", "show", "new/was", "--json").stdout)["full_name"] == "new/copy"


def test_a_blocked_repository_is_said_to_be_blocked(chain: Chain) -> None:
    """By `forks show` and below the lineage; what git fetched before stays."""

    def block(session: Any) -> None:
        row = forks.repository(session, 4)
        row.state = forks.BLOCKED
        session.add(row)

    change(block)
    assert "it is blocked by GitHub" in say("forks", "show", "bee/engine").stdout
    assert json.loads(say("forks", "show", "bee/engine", "--json").stdout)["state"] == "blocked"
    assert "bee: bee/engine is blocked by GitHub" in say("lineage", "bee").stdout


def test_moments_in_json_are_iso(chain: Chain) -> None:
    """With a T, as the HTTP API writes them."""
    for words in (("forks",), ("forks", "show", "new/work"), ("lineage", "bee")):
        said = say(*words, "--json").stdout
        assert re.search(r'"20\d\d-\d\d-\d\dT\d\d:', said), words
        assert not re.search(r'"20\d\d-\d\d-\d\d \d\d:', said), words


def test_a_look_by_hand_looks_at_once_and_a_strangers_fork_fails_it_not(
    chain: Chain, tmp_path: Path
) -> None:
    """Named candidates are looked at again whether due or not; one that is missing is only said."""
    assert say("scout", "run", "--source", "candidates").exit_code == 0
    bare = tmp_path / "outside" / "hub" / "new" / "copy.git"
    bare.rename(bare.with_name("hidden.git"))
    again = say("scout", "run", "--source", "candidates")
    assert again.exit_code == 0
    assert "new/work: looked at" in again.stdout
    assert "new/copy" in again.stderr
    found = json.loads(say("scout", "run", "--source", "candidates", "--json").stdout)
    assert [each["of_a_stranger"] for each in found["troubles"]] == [True]


def test_one_score_is_explained(chain: Chain) -> None:
    """Every reason with its points, when git looked, and what a person can do next."""
    assert "git has not looked at it" in say("forks", "show", "new/work").stdout
    say("scout", "run", "--source", "candidates")
    said = say("forks", "show", "NEW/work").stdout
    assert "new/work: " in said
    assert "a fork of buun/engine, pushed" in said
    assert "1 patch of its own beyond its parent buun, 8 beyond upstream" in said
    assert "at branch main" in said
    assert "  faster dflash" in said
    assert "forkscout watch fork new/work" in said
    assert "it is built as engine bee" in say("forks", "show", "bee/engine").stdout
    assert json.loads(say("forks", "show", "new/work", "--json").stdout)["points"]
    with pytest.raises(UsageError) as refused:
        say("forks", "show", "new/wrk")
    assert "new/work" in refused.value.advice


def test_a_readme_that_names_a_fork_counts(chain: Chain) -> None:
    """Read from the watched heads, without asking any API; the own name does not count."""
    say("scout", "run")
    change(lambda session: source_states.forget_source_state(session, "mentions"))
    say("scout", "run")
    assert "named in: README of bee/engine" in say("forks", "show", "new/work").stdout
    assert "named in: README of bee/engine" in say("forks", "show", "buun/engine").stdout
    assert "named in" not in say("forks", "show", "bee/engine").stdout


def test_descriptions_and_titles_count_too(chain: Chain) -> None:
    """Of known repositories and of issues; a place counts once, a stranger's fork not at all."""

    def tell(session: Any) -> None:
        copy = forks.repositories_like(session, "new/copy")[0]
        copy.description = "based on new/work and github.com/un/known"
        session.add(copy)
        for number in (35, 36):
            catalog.add_event(session, key=f"i{number}", kind="issue_closed", now=NOW,
                              title="closed: see github.com/new/work github.com/NEW/work",
                              payload={"full_name": "buun/engine", "number": number})  # fmt: skip
        source_states.forget_source_state(session, "mentions")

    change(tell)
    say("scout", "run")
    found = json.loads(say("forks", "show", "new/work", "--json").stdout)
    assert sorted(found["named_in"]) == [
        "README of bee/engine", "buun/engine#35", "buun/engine#36", "description of new/copy",
    ]  # fmt: skip
    assert [4.0, "named in 4 other places"] in found["points"]


def test_the_schedule_looks_once(chain: Chain, tmp_path: Path) -> None:
    """One slot for all who ring; with nothing due no slot is taken, and it can be turned off."""
    station = open_station(Settings(), "scout")
    found = candidates_round(station)
    assert found is not None
    assert sorted(found.looked) == ["new/copy", "new/work"]
    assert candidates_round(station) is None
    off = open_station(Settings(github_minutes=0), "scout")
    change(lambda session: source_states.forget_source_state(session, "candidate:5"))
    assert candidates_round(off) is None
    assert CANDIDATES in station.app.conf.beat_schedule
