"""What GitHub and its library do to whoever polls them: after each, the state is the right one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine
from support import github_json as make
from support.looks import look_at
from support.scene import BEE, BUUN, TURBO, UPSTREAM, Scene

from jobs.db import reading
from jobs.store import forks, source_states
from scout.github import forks as fork_lists
from scout.github.desk import Desk, Page
from scout.github.governor import Tier


@pytest.fixture
def database(sqlite: Engine) -> Engine:
    """One kind of database: what is asked and judged does not depend on it."""
    return sqlite


EVERYBODY = (UPSTREAM, TURBO, BUUN, BEE)
HTML = b"<html><body>Unicorn!</body></html>"


def crowd(scene: Scene, count: int) -> None:
    for number in range(count):
        scene.github.add(5000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM,
                         created_at=f"2026-04-01T{number // 60:02d}:{number % 60:02d}:00Z",
                         pushed_at="2026-04-01T00:00:00Z")  # fmt: skip


def told(scene: Scene) -> list[str]:
    return [key for key in scene.told() if not key.startswith("src:")]


FAULTS: dict[str, dict[str, Any]] = {
    "202 computing": {"status": 202},
    "204": {"status": 204, "body": b""},
    "301 to nowhere": {"status": 301},
    "301 to another host": {"status": 301, "headers": {"Location": "http://10.0.0.1/x"}},
    "401": {"status": 401},
    "403": {"status": 403},
    "403 primary": {"status": 403, "headers": {"X-RateLimit-Remaining": "0"}},
    "403 secondary": {"status": 403, "body": b"You have exceeded a secondary rate limit"},
    "403 secondary with Retry-After": {"status": 403, "headers": {"Retry-After": "60"}},
    "410": {"status": 410},
    "422": {"status": 422},
    "429": {"status": 429},
    "500": {"status": 500},
    "502 HTML": {"status": 502, "body": HTML},
    "503 with Retry-After": {"status": 503, "headers": {"Retry-After": "120"}},
    "200 HTML": {"body": HTML},
    "200 RATE_LIMITED": {"body": b'{"errors":[{"type":"RATE_LIMITED"}],"data":null}'},
    "200 null": {"body": b"null"},
    "200 empty object": {"body": b"{}"},
    "truncated JSON": {"body": b'[{"id": 1}, {"id'},
    "reset mid-body": {"cut_after": 20},
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_unknown_is_never_gone(chain: Scene, fault: dict[str, Any]) -> None:
    """Four days of it: nobody is missing, nothing is news but the source, and all goes on after."""
    for _ in range(3):
        chain.look()
    before = told(chain)
    chain.github.fail("", times=10_000, **fault)
    for _ in range(4):
        chain.later(days=1, minutes=1)
        chain.look()
    assert [(chain.row(each).state, chain.row(each).misses) for each in EVERYBODY] == [
        (forks.KNOWN, 0)
    ] * 4
    assert told(chain) == before
    assert any(":degraded:" in key for key in chain.told())
    chain.github.faults.clear()
    chain.github.put(UPSTREAM, "releases", make.release(9, "b9", "2026-05-20T00:00:00Z"))
    chain.later(days=1, minutes=1)
    chain.look()
    assert "gh:rel:9" in chain.told()
    assert any(":recovered:" in key for key in chain.told())


def test_a_change_on_the_third_page_is_seen(chain: Scene) -> None:
    """Pages one and two say 304; what moved on the third gets into its row."""
    crowd(chain, 250)
    chain.look()
    chain.github.repos[5240].update(stargazers_count=9, pushed_at="2026-05-18T13:00:00Z")
    chain.later(days=1, minutes=1)
    chain.github.asked.clear()
    look_at(chain, fork_lists.CENSUS)
    pages = [each for each in chain.github.asked if f"/{UPSTREAM}/forks" in each.path]
    assert [each.status for each in pages] == [304, 304, 200]
    assert (chain.row(5240).stars, chain.row(5240).tier) == (9, 2)


@pytest.mark.parametrize("status", [404, 409, 451])
def test_a_page_that_vanishes_takes_no_fork_with_it(chain: Scene, status: int) -> None:
    """The second page of the count is not there: those on it were not missed."""
    crowd(chain, 150)
    chain.look()
    chain.github.fail(f"{UPSTREAM}/forks.*page=2", times=99, status=status)
    for _ in range(4):
        chain.later(days=1, minutes=1)
        look_at(chain, fork_lists.CENSUS)
    with reading(chain.database) as session:
        rows = forks.forks_of(session, UPSTREAM)
    assert len(rows) == 151
    assert {(row.state, row.misses) for row in rows} == {(forks.KNOWN, 0)}


def test_a_page_of_new_forks_that_vanishes_is_read_again(chain: Scene) -> None:
    """The first page is not taken for read while the second is missing."""
    chain.look()
    for number in range(150):
        stamp = f"2026-05-18T12:{number % 60:02d}:{number // 60:02d}Z"
        chain.github.add(6000 + number, f"new/{number}", parent=UPSTREAM, created_at=stamp)
    chain.github.fail("sort=newest.*page=2", status=404)
    chain.later(minutes=11)
    found = look_at(chain, fork_lists.NEWEST)
    assert found.new == ()
    assert any("a page vanished" in each for each in found.troubles)
    chain.later(minutes=2)
    assert len(look_at(chain, fork_lists.NEWEST).new) == 150


def test_a_page_of_releases_that_vanishes_is_read_again(chain: Scene) -> None:
    """All of a list counts, or nothing of it."""
    old = make.release(1, "b1", "2026-05-17T00:00:00Z")
    chain.github.put(UPSTREAM, "releases", old)
    chain.look()
    many = [make.release(100 - n, f"b{100 - n}", f"2026-05-18T12:{59 - n:02d}:00Z")
            for n in range(50)]  # fmt: skip
    chain.github.put(UPSTREAM, "releases", *many, old)
    chain.github.fail("releases.*page=2", status=404)
    chain.later(minutes=60)
    assert look_at(chain, "github_releases").new == ()
    chain.later(minutes=6)
    assert len(look_at(chain, "github_releases").new) == 50


def test_a_clock_that_is_wrong_does_not_lengthen_the_wait(chain: Scene) -> None:
    """GitHub five hours ahead, its quota empty: half an hour is waited, as its own clock says."""
    chain.look()
    chain.github.clock_skew_seconds = 5 * 3600
    chain.github.fail("", status=403, headers={"X-RateLimit-Remaining": "0"})
    chain.later(minutes=16)
    chain.look()
    asked = len(chain.github.asked)
    chain.later(minutes=29)
    chain.look()
    assert len(chain.github.asked) == asked
    chain.later(minutes=3)
    chain.look()
    assert len(chain.github.asked) > asked


def test_an_etag_belongs_to_all_of_a_question(chain: Scene) -> None:
    """Another parameter, another token, another kind of page: another ETag."""
    desk = Desk(chain.database, chain.client, lambda: chain.now)
    place = f"repositories/{UPSTREAM}/forks"
    pages = [
        Page(place),
        Page(place, {"sort": "newest"}),
        Page(place, {"sort": "oldest"}),
        Page(place, {"sort": "newest", "per_page": "100"}),
        Page(place, many=False),
        Page(f"repositories/{BUUN}/forks"),
    ]
    keys = {desk.page_key(page) for page in pages}
    chain.token = "another"
    other = Desk(chain.database, chain.worker(), lambda: chain.now)
    keys |= {other.page_key(page) for page in pages}
    assert len(keys) == 2 * len(pages)
    assert "t0ken" not in "".join(keys)


def test_an_etag_is_kept_only_with_what_its_page_said(chain: Scene) -> None:
    """A crash between reading and writing must not turn news into a 304."""
    chain.look()
    chain.github.put(UPSTREAM, "releases", make.release(2, "b9200", "2026-05-18T12:03:00Z"))
    chain.later(minutes=6)
    desk = Desk(chain.database, chain.client, lambda: chain.now)
    desk.ask(Page(f"repositories/{UPSTREAM}/releases", {"per_page": "30"}), Tier.CHAIN)
    assert [each.key for each in chain.look().new] == ["gh:rel:2"]


ODD: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "null": lambda item: dict.fromkeys(item) | {"id": item["id"]},
    "missing": lambda item: {"id": item["id"]},
    "of another type": lambda item: {key: [1] for key in item} | {"id": item["id"]},
    "huge": lambda item: dict.fromkeys(item, 2**70),
    "text": lambda item: dict.fromkeys(item, "\x00<script>\u202e"),
}


@pytest.mark.parametrize("spoil", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("kind", ["releases", "pulls", "issues", "forks"])
def test_an_item_whose_every_key_is_odd_stops_no_other(
    chain: Scene, kind: str, spoil: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """It is left out; what stands beside it on the page is news as always."""
    chain.look()
    base, head = chain.github.repos[UPSTREAM], chain.github.repos[BUUN]
    chain.github.put(UPSTREAM, "releases", make.release(2, "b9200", "2026-05-18T12:03:00Z"))
    chain.github.put(UPSTREAM, "pulls", make.pull(7, head, base, "2026-05-18T12:03:00Z"))
    chain.github.put(UPSTREAM, "issues", make.issue(8, "ggml-org/llama.cpp", "2026-05-18T12:03:00Z",
                     state="closed", closed_at="2026-05-18T12:03:00Z"))  # fmt: skip
    chain.github.add(77, "new/fork", parent=UPSTREAM, created_at="2026-05-18T12:03:00Z")
    chain.github.fail(
        f"{UPSTREAM}/{kind}", times=9, change=lambda page: [*map(spoil, page[:1]), *page]
    )
    chain.later(minutes=11)
    found = look_at(chain, f"github_{kind}")
    assert len(found.new) == 1
    assert found.troubles == ()


def test_a_quota_that_is_nobodys_is_not_believed(chain: Scene) -> None:
    """Headers without sense are no quota: looks go on, and no wait is made of them."""
    nonsense = {
        "X-RateLimit-Limit": "many",
        "X-RateLimit-Remaining": "-5",
        "X-RateLimit-Reset": "soon",
        "X-RateLimit-Resource": "../../core",
    }
    chain.github.fail("", times=10_000, headers=nonsense)
    assert chain.look().waiting == ()
    with reading(chain.database) as session:
        quotas = source_states.source_states(session, "quota:")
    assert {key.rpartition(":")[2] for key in quotas} == {"graphql"}  # that one is in the body too
