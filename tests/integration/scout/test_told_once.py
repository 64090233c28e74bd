"""What was told stays told: under other numbers, on other days, by other watchers."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlmodel import select
from support.github import GitHub
from support.hub import Hub, Repository
from support.watching import Scout, bench_of, engine

from jobs.db import writing
from jobs.dispatch import plan_events
from jobs.sightings import RepositoryRow
from scout.github import repositories
from scout.github.client import Client
from scout.github.desk import Desk
from scout.github.rounds import look_around

pytestmark = pytest.mark.needs("git")
PLAIN = 'x({"--mmap"});'
ABLE = 'x({"--mmap"}); x({"--tree"});'


@pytest.fixture
def fork(hub: Hub) -> Repository:
    fork = hub.add("a/fork")
    fork.commit({"common/arg.cpp": PLAIN})
    fork.push()
    return fork


@pytest.fixture
def scout(fork: Repository, sqlite: Engine, tmp_path: Path) -> Scout:
    return Scout(sqlite, tmp_path)


def test_githubs_number_learnt_later_tells_nothing_again(scout: Scout, fork: Repository) -> None:
    """Push and capability keep their one event when the key of the repository becomes another."""
    scout.load(engine("fork", "a/fork", "main"))
    scout.look()
    before = fork.head
    after = fork.commit({"common/arg.cpp": ABLE})
    fork.push()
    assert {news.kind for news in scout.look().new} == {"fork_pushed", "fork_capability_changed"}
    with writing(scout.database) as session:
        session.exec(select(RepositoryRow)).one().github_id = 4711
    fork.push(f"{before}:refs/heads/main")
    back = scout.look().new
    assert {news.key.split(":")[2] for news in back} == {"4711"}
    fork.push(f"{after}:refs/heads/main")
    assert scout.look().new == ()
    keys = [row.key for row in scout.events().values() if row.kind == "fork_pushed"]
    assert f"gh:push:r1:refs/heads/main:{after}" in keys
    assert f"gh:push:4711:refs/heads/main:{after}" not in keys


def test_a_watched_branch_that_appears_is_built(scout: Scout, fork: Repository) -> None:
    """The event brings a revision and jobs; the branch's old commits are no push."""
    scout.load(engine("fork", "a/fork", "release") + bench_of("fork"))
    scout.look()
    fork.commit({"b": "1"}, message="new work")
    fork.push("HEAD:refs/heads/release", "HEAD:refs/heads/other")
    news = {each.facts["ref"]: each for each in scout.look().new}
    assert {each.kind for each in news.values()} == {"branch_created"}
    assert news["refs/heads/release"].revision == fork.head
    with writing(scout.database) as session:
        assert {job.kind for job in plan_events(session, scout.at)} == {
            "fetch_model",
            "build",
            "bench",
        }
    fork.commit({"b": "2"})
    fork.push("HEAD:refs/heads/release")
    (push,) = scout.look().new
    assert (push.kind, push.facts["new_patches"]) == ("fork_pushed", 1)


def test_a_watched_branch_that_is_gone_is_said_and_built_when_it_is_back(
    scout: Scout, fork: Repository
) -> None:
    """Each look says so; its return is a push with its patches and abilities."""
    fork.push("HEAD:refs/heads/other")
    scout.load(engine("fork", "a/fork", "main") + bench_of("fork"))
    assert scout.look().troubles == ()
    first = fork.head
    fork.git("--git-dir", str(fork.bare), "update-ref", "-d", "refs/heads/main")
    gone = scout.look()
    assert [each.kind for each in gone.new] == ["branch_deleted"]
    assert "to be built, was deleted" in gone.new[0].title
    for trouble in (*gone.troubles, *scout.look().troubles):
        assert "main of a/fork, to be built, is not there" in trouble.message
        assert "watch list" in trouble.advice
    fork.commit({"common/arg.cpp": ABLE}, message="back")
    fork.push()
    back = scout.look()
    assert back.troubles == ()
    assert {each.kind for each in back.new} == {
        "fork_pushed",
        "branch_created",
        "fork_capability_changed",
    }
    (push,) = (each for each in back.new if each.kind == "fork_pushed")
    assert (push.revision, push.replaces) == (fork.head, first)
    with writing(scout.database) as session:
        assert "build" in {job.kind for job in plan_events(session, scout.at)}


def test_a_default_branch_that_was_renamed_is_told_and_followed(
    scout: Scout, fork: Repository
) -> None:
    """Where no branch is listed; the old name is not asked for any more."""
    scout.load(engine("fork", "a/fork"))
    scout.look()
    fork.push("HEAD:refs/heads/trunk")
    scout.look()
    fork.git("--git-dir", str(fork.bare), "symbolic-ref", "HEAD", "refs/heads/trunk")
    fork.git("--git-dir", str(fork.bare), "update-ref", "-d", "refs/heads/main")
    found = scout.look()
    assert found.troubles == ()
    assert {each.kind for each in found.new} == {"repo_default_changed", "branch_deleted"}
    assert found.looked["fork"] == (f"trunk@{fork.head[:9]}",)
    fork.commit({"b": "2"})
    fork.push("HEAD:refs/heads/trunk")
    (push,) = scout.look().new
    assert push.revision == fork.head


def test_a_branch_left_behind_and_a_new_default_are_each_told_once(
    scout: Scout, fork: Repository
) -> None:
    """The watch list names the old branch, GitHub the new default, git sees who stands still; the
    change of the default branch is one event, whoever saw it first (C73)."""
    scout.load(engine("fork", "a/fork", "main"))
    scout.look()
    frozen = fork.head
    fork.push("HEAD:refs/heads/trunk")
    scout.look()
    fork.git("--git-dir", str(fork.bare), "symbolic-ref", "HEAD", "refs/heads/trunk")
    with GitHub() as github:
        github.add(4711, "a/fork", default_branch="main")
        client = Client(adapter=github.adapter, now=lambda: scout.at)
        desk = Desk(scout.database, client, lambda: scout.at)
        look_around(desk, [repositories.NAME], force=True)
        github.repos[4711]["default_branch"] = "trunk"
        seen = look_around(desk, [repositories.NAME], force=True)
    assert [each.key for each in seen.new] == ["gh:repo:4711:default_changed:trunk"]
    fork.commit({"b": "2"}, at=int(scout.at.timestamp()) + 90 * 86_400)
    fork.push("HEAD:refs/heads/trunk")
    told = [each.kind for each in scout.look().new]
    assert sorted(told) == ["branch_stale", "fork_pushed"]
    fork.commit({"b": "3"}, at=int(scout.at.timestamp()) + 91 * 86_400)
    fork.push("HEAD:refs/heads/trunk")
    assert [each.kind for each in scout.look().new] == ["fork_pushed"]
    (stale,) = (row for row in scout.events().values() if row.kind == "branch_stale")
    assert stale.payload["facts"]["oid"] == frozen
