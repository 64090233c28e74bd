"""The daily count of all forks: where it ends, where it is led astray, and who is gone after it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from sqlalchemy import Engine
from support import github_json as make
from support.looks import look_at
from support.scene import TURBO, UPSTREAM, Scene

from jobs.db import reading
from jobs.store import forks
from scout.github import absent
from scout.github import forks as fork_lists
from scout.github.base import Repo
from scout.github.desk import Desk
from scout.github.rounds import Round

LIST = f"{UPSTREAM}/forks"


@pytest.fixture
def database(sqlite: Engine) -> Engine:
    """One kind of database: what is asked and judged does not depend on it."""
    return sqlite


def crowd(scene: Scene, count: int) -> None:
    """So many forks besides the one of the chain, older than it."""
    for number in range(count):
        scene.github.add(5000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM,
                         created_at=f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00Z",
                         pushed_at="2026-01-01T00:00:00Z")  # fmt: skip


def count(scene: Scene) -> tuple[Round, list[int]]:
    """A day later: the count, and the status of each page of upstream's list."""
    scene.later(days=1, minutes=1)
    scene.github.asked.clear()
    scene.github.remaining = 5000
    found = look_at(scene, fork_lists.CENSUS)
    pages = [each for each in scene.github.asked if LIST in each.path]
    return found, [each.status for each in pages]


def link(place: str) -> dict[str, str]:
    return {"Link": f'<{place}>; rel="next"'}


@pytest.mark.parametrize("others", [97, 98, 99], ids=str)
def test_a_fork_behind_an_unchanged_page_is_alive(chain: Scene, others: int) -> None:
    """The page before it stands still, and remembers that nothing came after it."""
    crowd(chain, others)
    chain.look()
    count(chain)
    chain.github.add(9000, "new/llama.cpp", parent=UPSTREAM, created_at="2026-05-19T00:00:00Z",
                     pushed_at="2026-05-19T01:00:00Z")  # fmt: skip
    chain.look()
    for _ in range(5):
        count(chain)
        assert (chain.row(9000).state, chain.row(9000).misses) == (forks.KNOWN, 0)
    assert chain.gone_keys(9000) == []


def test_all_pages_but_the_last_are_free_while_they_stand_still(chain: Scene) -> None:
    """The last one is read anew each day where it is nearly full: another could be behind it."""
    crowd(chain, 289)
    chain.look()
    assert count(chain)[1] == [304, 304, 200]
    for number in range(60):
        chain.github.remove(5000 + number)
    count(chain)
    assert count(chain)[1] == [304, 304, 304]


def test_a_full_page_without_a_link_is_not_the_last(chain: Scene) -> None:
    """A proxy that drops the header does not end the list."""
    crowd(chain, 150)
    chain.github.fail(LIST, times=99, headers={"Link": ""})
    chain.look()
    with reading(chain.database) as session:
        assert len(forks.forks_of(session, UPSTREAM)) == 151


@pytest.mark.parametrize(
    "place",
    [
        f"{make.API}/repositories/{UPSTREAM}/forks?page=1&per_page=100&sort=oldest",
        f"{make.API}/repositories/{UPSTREAM}/forks?page=9&per_page=100&sort=oldest",
        f"{make.API}/repositories/{UPSTREAM}/forks",
        f"{make.API}/repositories/{TURBO}/forks?page=2",
        f"{make.API}/repositories/{UPSTREAM}/issues?page=2",
        f"{make.API}/../../x",
        f"{make.API}/repositories/{UPSTREAM}/forks?page={'9' * 5000}",
    ],
    ids=["loop", "skips", "no page", "another", "another kind", "nowhere", "huge"],
)
def test_a_wrong_next_page_is_forgotten(chain: Scene, place: str) -> None:
    """One reply says it: nothing is asked there, nobody is missed, and the next count is whole."""
    crowd(chain, 150)
    chain.github.fail(LIST, times=2, headers=link(place))
    found = look_at(chain, "github_repositories", fork_lists.CENSUS)
    assert "ggml-org/llama.cpp: the next page does not lead on" in found.troubles
    assert sum(LIST in each.path for each in chain.github.asked) == 1
    chain.github.faults.clear()
    for _ in range(4):
        found, _statuses = count(chain)
        assert found.troubles == ()
    with reading(chain.database) as session:
        rows = forks.forks_of(session, UPSTREAM)
    assert {(row.state, row.misses) for row in rows} == {(forks.KNOWN, 0)}
    assert len(rows) == 151


def test_a_list_without_an_end_is_given_up(chain: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is missed by it, and what it said is not taken for unchanged later."""
    monkeypatch.setattr(fork_lists, "MOST_CENSUS_PAGES", 5)
    chain.look()
    numbers = itertools.count(7000)

    def full(_page: object) -> list[dict[str, Any]]:
        some = itertools.islice(numbers, 100)
        return [make.repository(n, f"fake{n}/llama.cpp") for n in some]

    chain.github.fail(LIST, times=99, change=full)
    found, statuses = count(chain)
    assert "ggml-org/llama.cpp: its list of forks has no end" in found.troubles
    assert len(statuses) == 5
    assert chain.row(TURBO).misses == 0
    chain.github.faults.clear()
    found, statuses = count(chain)
    assert (found.troubles, statuses) == ((), [200])  # not 304: its ETag was dropped


def test_an_empty_page_that_leads_on_is_no_page(chain: Scene) -> None:
    """It would lead on for ever, free of charge."""
    chain.look()
    place = f"{make.API}/repositories/{UPSTREAM}/forks?page=2"
    chain.github.fail(LIST, times=99, change=lambda _page: [], headers=link(place))
    found, statuses = count(chain)
    assert "an empty page is said to have another behind it" in "".join(found.troubles)
    assert len(statuses) == 1
    assert chain.row(TURBO).misses == 0


def test_unchanged_without_having_been_known_is_no_answer(chain: Scene) -> None:
    """A server that answers 304 to whoever sends no ETag ends no list."""
    crowd(chain, 60)
    chain.look()
    chain.github.fail(LIST, times=99, status=304)
    for _ in range(4):
        found, _statuses = count(chain)
        assert any("is called unchanged" in each for each in found.troubles)
    assert (chain.row(TURBO).state, chain.row(TURBO).misses) == (forks.KNOWN, 0)


def hidden(number: int) -> Any:
    """A list that leaves one fork out."""
    return lambda page: [each for each in page if each["id"] != number]


def test_a_fork_that_its_list_hides_is_not_gone(chain: Scene) -> None:
    """Before that is said its own page is asked for; that shows it, so it counts anew."""
    crowd(chain, 3)
    chain.look()
    chain.github.fail(LIST, times=99, change=hidden(5001))
    misses = []
    for _ in range(5):
        count(chain)
        misses.append(chain.row(5001).misses)
    assert misses == [1, 2, 0, 1, 2]
    assert chain.row(5001).state == forks.KNOWN
    own = [each.path for each in chain.github.asked if each.path == "/repositories/5001"]
    assert own == []


@pytest.mark.parametrize("status", [403, 429, 500])
def test_a_fork_whose_own_page_cannot_be_had_is_not_gone(chain: Scene, status: int) -> None:
    """Doubt keeps the state, as often as it lasts; once the page is missing it is gone."""
    crowd(chain, 3)
    chain.look()
    chain.github.remove(5001)
    chain.github.fail("/repositories/5001$", times=99, status=status)
    for _ in range(5):
        count(chain)
    assert (chain.row(5001).state, chain.row(5001).misses) == (forks.KNOWN, 2)
    chain.github.faults.clear()
    count(chain)
    assert chain.row(5001).state == forks.GONE


def test_many_that_are_gone_are_asked_for_a_few_at_a_time(
    chain: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is left waits for the next count."""
    monkeypatch.setattr(absent, "MOST_ASKED", 4)
    crowd(chain, 6)
    chain.look()
    for number in range(6):
        chain.github.remove(5000 + number)
    seen = []
    for _ in range(4):
        count(chain)
        seen.append(sum(chain.row(5000 + n).state == forks.GONE for n in range(6)))
    assert seen == [0, 0, 4, 6]


def test_a_page_that_brings_nothing_new_ends_the_walk(chain: Scene) -> None:
    """The same full page under every number is not known, and costs two requests, not thousands;
    a walk that goes on later knows whom it has seen."""
    chain.look()
    full = [make.repository(7000 + n, f"fake{n}/llama.cpp") for n in range(100)]
    chain.github.fail(LIST, times=99, change=lambda _page: full)
    found, statuses = count(chain)
    assert "ggml-org/llama.cpp: a page of its forks brings nothing new" in found.troubles
    assert statuses == [200, 200]
    assert chain.row(TURBO).misses == 0
    desk = Desk(chain.database, chain.client, lambda: chain.now, until=chain.now)
    chain.later(hours=25)
    repo = Repo.of(chain.row(UPSTREAM))
    assert fork_lists.take_census(desk, repo).unfinished
    again = fork_lists.take_census(desk, repo)
    assert again.failed is not None
    assert again.failed.reason == "a page of its forks brings nothing new"


def test_pages_of_nothing_usable_end_the_walk(chain: Scene) -> None:
    """A full page of which no item has a name is followed by no other."""
    chain.look()
    chain.github.fail(LIST, times=99, change=lambda _page: [{"id": n} for n in range(100)])
    found, statuses = count(chain)
    assert "ggml-org/llama.cpp: a page of its forks brings nothing new" in found.troubles
    assert statuses == [200]


def test_nothing_is_its_own_fork(chain: Scene) -> None:
    """A list that names the repository itself, or a number 0, changes nothing of either."""
    chain.look()
    odd = [
        {**chain.github.repos[UPSTREAM], "fork": True},
        make.repository(0, "nobody/llama.cpp"),
    ]
    for _ in range(3):
        chain.github.fail(LIST, change=lambda _page: odd)
        count(chain)
        chain.later(days=2)
    row = chain.row(UPSTREAM)
    assert (row.parent_github_id, row.depth) == (None, 0)
    with reading(chain.database) as session:
        assert forks.repository(session, 0) is None


def test_a_blocked_list_blocks_its_repository_at_once(chain: Scene) -> None:
    """Whichever look hears 451 writes it down, also of a fork whose own page nobody looks at."""
    chain.github.add(77, "a/llama.cpp", parent=UPSTREAM, forks_count=1)
    chain.look()
    count(chain)
    chain.github.fail("/repositories/77/forks", status=451)
    found, _statuses = count(chain)
    assert [each.kind for each in found.new] == ["repo_blocked"]
    assert chain.row(77).state == forks.BLOCKED
    count(chain)
    assert chain.row(77).state == forks.BLOCKED, "a list does not say that it is back"
    for _ in range(3):
        count(chain)
    assert chain.row(77).state == forks.KNOWN, "its own page does"
