"""Forks by their last push, asked in GraphQL: what it moves, what it costs, and what is doubt."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from support.looks import look_at
from support.scene import BEE, BUUN, TURBO, UPSTREAM, Scene

from jobs.db import reading
from jobs.store import forks, source_states
from scout.github import pushes
from scout.github.rounds import Round

QUIET = {"created_at": "2026-04-01T00:00:00Z", "pushed_at": "2026-04-01T00:00:00Z"}


def crowd(scene: Scene, count: int) -> None:
    for number in range(count):
        scene.github.add(5000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM, **QUIET)


def asked(scene: Scene) -> int:
    return sum(each.bucket == "graphql" for each in scene.github.asked)


def look(scene: Scene) -> Round:
    """This source alone: the newest page of REST would tell some of it too."""
    return look_at(scene, pushes.NAME)


def settled(scene: Scene) -> Scene:
    """All of the network is known, and nothing is due."""
    for _ in range(3):
        scene.look()
    scene.later(minutes=16)
    scene.look()
    scene.github.asked.clear()
    scene.later(minutes=16)
    return scene


def test_a_push_makes_a_candidate(chain: Scene) -> None:
    """Within a quarter of an hour the row has the push, the stars and the closer tier."""
    crowd(chain, 3)
    settled(chain)
    assert chain.row(5001).tier == 3
    chain.github.repos[5001].update(
        pushed_at="2026-05-18T12:30:00Z", stargazers_count=7, archived=True
    )
    assert "gh:repo:5001:archived:2026-05-18T12:30:00+00:00" not in chain.told()
    look(chain)
    row = chain.row(5001)
    assert row.pushed_at == datetime(2026, 5, 18, 12, 30, tzinfo=UTC)
    assert (row.tier, row.stars, row.archived) == (2, 7, True)
    assert row.facts["size_kib"] == 30_000
    assert (row.parent_github_id, row.depth) == (UPSTREAM, 1)
    assert chain.row(5000).tier == 3


def test_a_fork_that_inherited_its_parents_push_is_no_candidate(chain: Scene) -> None:
    """`pushed_at` before `created_at` is a copy that nobody touched, however fresh."""
    settled(chain)
    chain.github.add(5000, "dev/llama.cpp", parent=UPSTREAM,
                     created_at="2026-05-18T12:32:00Z",
                     pushed_at="2026-05-18T12:20:00Z")  # fmt: skip
    look(chain)
    assert chain.row(5000).tier == 3


def test_one_page_is_enough_where_little_moved(chain: Scene) -> None:
    """Reading stops at the newest push of the last look; a flood is read further, with an end."""
    crowd(chain, 350)
    settled(chain)
    look(chain)
    parents = 2  # upstream and buun; turbo is nobody's engine, and nobody pushes to it
    assert asked(chain) == parents
    assert "gh:fork:5000" not in chain.told()
    for number in range(150):
        chain.github.repos[5000 + number]["pushed_at"] = f"2026-05-18T13:{number % 60:02d}:00Z"
    chain.github.asked.clear()
    chain.later(minutes=16)
    look(chain)
    assert asked(chain) == parents + 1
    assert {chain.row(5000 + number).tier for number in range(150)} == {2}


def test_pushes_of_one_second_are_not_cut_apart(chain: Scene) -> None:
    """The page ends in the middle of a second; the rest of it is read at the next look too."""
    crowd(chain, 120)
    settled(chain)
    for number in range(120):
        chain.github.repos[5000 + number]["pushed_at"] = "2026-05-18T12:30:00Z"
    look(chain)
    assert {chain.row(5000 + number).tier for number in range(120)} == {2}


def test_the_pages_are_bounded(chain: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much moved: the daily count finds the rest."""
    crowd(chain, 20)
    settled(chain)
    monkeypatch.setattr(pushes, "PER_PAGE", 1)
    monkeypatch.setattr(pushes, "MOST_PAGES", 4)
    for number in range(20):
        chain.github.repos[5000 + number]["pushed_at"] = f"2026-05-18T12:{30 + number}:00Z"
    look(chain)
    assert {chain.row(5000 + number).tier for number in range(16, 20)} == {2}
    assert chain.row(5000).tier == 3


def test_a_fork_nobody_knew_is_a_new_fork(chain: Scene) -> None:
    """Told once, whoever sees it first."""
    settled(chain)
    chain.github.add(77, "new/fork", parent=BUUN, created_at="2026-05-18T12:33:00Z",
                     pushed_at="2026-05-18T12:40:00Z")  # fmt: skip
    found = look(chain)
    assert [each.key for each in found.new] == ["gh:fork:77"]
    assert chain.event("gh:fork:77").payload["depth"] == 3
    chain.later(minutes=16)
    assert "gh:fork:77" not in [each.key for each in chain.look().new]


def test_nothing_is_told_before_the_first_whole_count(chain: Scene) -> None:
    """A baseline that broke off stays a baseline: the question is not even asked."""
    crowd(chain, 120)
    chain.github.fail(f"{UPSTREAM}/forks.*page=2", times=99, status=502, body=b"<html>")
    assert chain.look().new == ()
    assert asked(chain) == 1  # of buun, whose list is whole


def rate_limited(*_: Any) -> bytes:
    error = {"type": "RATE_LIMITED", "message": "API rate limit exceeded for user"}
    return json.dumps({"errors": [error], "data": None}).encode()


def partial(body: Any) -> Any:
    forks_list = body["data"]["repository"]["forks"]
    error = {"type": "FORBIDDEN", "path": ["repository", "forks", "nodes", 0], "message": "no"}
    nodes = [None, *forks_list["nodes"][1:]]
    forks_list["nodes"] = nodes
    return {**body, "errors": [error]}


DOUBTS = {
    "errors beside data": {"change": partial},
    "no repository": {"change": lambda _: {"data": {"repository": None}}},
    "no forks": {"change": lambda _: {"data": {"repository": {"databaseId": UPSTREAM}}}},
    "a list": {"change": lambda body: [body]},
    "words": {"body": b'"hello"'},
    "HTML": {"body": b"<html>"},
    "deep": {"body": b"[" * 100_000},
    "502": {"status": 502, "body": b"<html>Unicorn!</html>"},
    "404": {"status": 404},
    "451": {"status": 451},
    "301": {"status": 301, "headers": {"Location": "http://10.0.0.1/graphql"}},
    "cut off": {"cut_after": 30},
    "another repository": {
        "change": lambda body: {
            "data": {"repository": {**body["data"]["repository"], "databaseId": 1}}
        }
    },
}


@pytest.mark.parametrize("fault", DOUBTS.values(), ids=DOUBTS.keys())
def test_half_an_answer_changes_nothing(chain: Scene, fault: dict[str, Any]) -> None:
    """No push, no miss, no cursor; the look is made up for once GitHub answers."""
    crowd(chain, 2)
    settled(chain)
    chain.github.repos[5001]["pushed_at"] = "2026-05-18T12:30:00Z"
    chain.github.fail("/graphql", times=99, **fault)
    found = look(chain)
    assert any(each.startswith("ggml-org/llama.cpp: ") for each in found.troubles)
    for each in (5000, 5001, TURBO):
        assert (chain.row(each).tier, chain.row(each).misses) == (3, 0)
        assert chain.row(each).state == forks.KNOWN
    chain.github.faults.clear()
    chain.later(minutes=2)
    look(chain)
    assert chain.row(5001).tier == 2


def test_null_nodes_are_left_out(chain: Scene) -> None:
    """A fork that is shown as null, or without its times, stays as it was; the others count."""
    crowd(chain, 3)
    settled(chain)

    def spoil(body: Any) -> Any:
        nodes = body["data"]["repository"]["forks"]["nodes"]
        for node in nodes:
            if node["databaseId"] == 5001:
                node.update(pushedAt=None)
            if node["databaseId"] == 5002:
                node.update(nameWithOwner="--upload-pack=touch/../x", stargazerCount="9")
            if node["databaseId"] == 5000:
                node.update(defaultBranchRef=None, description="\x1b[2Jturbo")
        return {"data": {"repository": {**body["data"]["repository"]}}}

    for each in (5000, 5001, 5002):
        chain.github.repos[each]["pushed_at"] = "2026-05-18T12:30:00Z"
    chain.github.fail("/graphql", times=9, change=spoil)
    assert look(chain).troubles == ()
    assert [chain.row(each).tier for each in (5000, 5001, 5002)] == [2, 3, 3]
    assert chain.row(5000).description == "[2Jturbo"
    assert chain.row(5000).default_branch == "master"


def test_its_quota_is_its_own(chain: Scene) -> None:
    """An empty bucket of GraphQL, told with 200 and errors, stops GraphQL and nothing else."""
    settled(chain)
    chain.github.fail("/graphql", body=rate_limited(), headers={"X-RateLimit-Remaining": "0"})
    found = chain.look()
    assert asked(chain) == 1
    assert any("github_pushes: the hourly quota is used up" in each for each in found.waiting)
    assert sum(each.bucket == "core" for each in chain.github.asked) > 3
    chain.later(minutes=16)
    chain.look()
    assert asked(chain) == 1
    chain.later(minutes=16)
    chain.look()
    assert asked(chain) > 1
    with reading(chain.database) as session:
        keys = source_states.source_states(session, f"quota:{chain.client.identity}")
    assert {key.rpartition(":")[2] for key in keys} == {chain.client.identity, "graphql", "search"}


def test_a_secondary_limit_of_graphql_stops_all(chain: Scene) -> None:
    """That one belongs to no bucket, whether it comes with 403 or with 200."""
    settled(chain)
    error = {"type": "FORBIDDEN", "message": "You have exceeded a secondary rate limit"}
    chain.github.fail("/graphql", body=json.dumps({"errors": [error]}).encode())
    chain.look()
    before = len(chain.github.asked)
    chain.look(force=True)
    assert len(chain.github.asked) == before


def test_the_last_fifth_of_its_quota_is_left(chain: Scene) -> None:
    """Candidates give way to those before them, in this bucket too."""
    settled(chain)
    chain.github.others["graphql"][1] = 900
    chain.look()
    assert asked(chain) == 1


def test_a_page_that_fails_often_is_asked_smaller(chain: Scene, monkeypatch: Any) -> None:
    """Some questions time out at a hundred forks and not at a few."""
    crowd(chain, 3)
    settled(chain)
    monkeypatch.setattr(pushes, "SMALLER_PER_PAGE", 2)
    chain.github.fail("/graphql", times=4, status=502, body=b"<html>")
    chain.github.repos[5001]["pushed_at"] = "2026-05-18T12:30:00Z"
    for _ in range(3):
        look(chain)
        chain.later(minutes=16)
    assert chain.row(5001).tier == 2


def test_without_a_token_it_is_left_out_and_said_once(scene: Scene) -> None:
    """GitHub answers no question in GraphQL to nobody."""
    scene.token, scene.github.limit, scene.github.remaining = "", 60, 60
    scene.client = scene.worker()
    scene.engine("upstream", "ggml-org/llama.cpp")
    scene.github.add(BEE, "Anbeeld/beellama.cpp", parent=UPSTREAM)
    first = scene.look()
    assert first.remarks == (
        "github_pushes needs a token (FORKSCOUT_GITHUB_TOKEN) and is left out",
    )
    scene.later(hours=2)
    assert scene.look().remarks == ()
    assert asked(scene) == 0
