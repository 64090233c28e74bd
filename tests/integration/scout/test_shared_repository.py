"""Several engines of one repository: each event once, and a build for each that watches."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlmodel import select
from support.hub import Hub, Repository
from support.watching import Scout, bench_of, engine

from jobs.db import reading, writing
from jobs.dispatch import plan_events
from jobs.sightings import RepositoryRow
from jobs.tables import EngineRow, JobRow

pytestmark = pytest.mark.needs("git")
UP = engine("up", "up/llama.cpp", "master")


@pytest.fixture
def fork(hub: Hub) -> Repository:
    up = hub.add("up/llama.cpp")
    up.commit({"u": "0"}, message="u (#10001)")
    up.push("HEAD:refs/heads/master")
    fork = hub.add("a/engine")
    fork.git("reset", "--quiet", "--hard", fork.take(up, "master"))
    fork.commit({"a": "1"})
    fork.push("HEAD:refs/heads/main", "HEAD:refs/heads/dev")
    return fork


@pytest.fixture
def scout(fork: Repository, sqlite: Engine, tmp_path: Path) -> Scout:
    return Scout(sqlite, tmp_path)


def know_number(scout: Scout, name: str) -> None:
    with writing(scout.database) as session:
        one = session.exec(select(EngineRow).where(EngineRow.name == name)).one()
        place = select(RepositoryRow).where(RepositoryRow.engine_id == one.id)
        session.exec(place).one().github_id = 777


def benches(scout: Scout) -> set[tuple[str, str]]:
    with writing(scout.database) as session:
        plan_events(session, scout.at)
    with reading(scout.database) as session:
        rows = session.exec(select(JobRow).where(JobRow.kind == "bench")).all()
        return {(row.source, row.state) for row in rows}


@pytest.mark.parametrize("known", [True, False])
def test_each_branch_is_built_for_the_engine_that_watches_it(
    scout: Scout, fork: Repository, known: bool
) -> None:
    """The push is told once, by that engine, and it took nothing of the other."""
    scout.load(
        UP
        + engine("stable", "a/engine", "main", "up")
        + engine("exp", "a/engine", "dev", "up")
        + bench_of("stable", "exp")
    )
    scout.look()
    if known:
        know_number(scout, "stable")
    for branch, name in (("dev", "exp"), ("main", "stable")):
        fork.commit({"a": branch}, message=branch)
        fork.push(f"HEAD:refs/heads/{branch}")
        (push,) = scout.look().new
        assert push.kind == "fork_pushed"
        assert push.title.startswith(f"{name}: {branch} pushed")
        assert (f"engine:{name}", "blocked") in benches(scout)
    fork.git("tag", "v1")
    fork.push("v1")
    assert [news.kind for news in scout.look().new] == ["tag_created"]


def test_a_branch_that_two_engines_watch_is_built_for_both(scout: Scout, fork: Repository) -> None:
    """One event; a newer head supersedes what waited of both."""
    other = bench_of("e2").replace('target = "m"', 'target = "m"\nintent = { context = 4096 }')
    stack = other[other.index("[[stack]]") :]
    two = engine("e1", "a/engine", "main", "up") + engine("e2", "a/engine", "main", "up")
    scout.load(UP + two + bench_of("e1") + stack)
    scout.look()
    know_number(scout, "e1")
    for n, states in enumerate(({"blocked"}, {"blocked", "superseded"})):
        fork.commit({"a": str(n)}, message=str(n))
        fork.push()
        assert [news.kind for news in scout.look().new] == ["fork_pushed"]
        expected = {(f"engine:{name}", state) for name in ("e1", "e2") for state in states}
        assert benches(scout) == expected


def test_a_repository_with_too_much_history_is_shut_out_alone(
    hub: Hub, scout: Scout, fork: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and what moved elsewhere in its chain is told."""
    big = hub.add("b/big")
    big.commit({"b": "1"})
    big.push()
    chain = engine("fork", "a/engine", "main", "up") + engine("big", "b/big", "main", "up")
    scout.load(UP + chain)
    scout.look()
    monkeypatch.setattr("jobs.git_history.HISTORY_COMMITS_LIMIT", 6)
    for n in range(6):
        big.commit({"b": f"x{n}"}, message=f"x{n}")
    big.push()
    fork.commit({"a": "2"}, message="two")
    fork.push()
    found = scout.look()
    assert [news.title.partition(":")[0] for news in found.new] == ["fork"]
    assert [(each.engine, "too much history" in each.message) for each in found.troubles] == [
        ("big", True)
    ]
