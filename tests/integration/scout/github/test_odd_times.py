"""Times that have not come yet, and times that are none: what follows them is told all the same."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine
from support import github_json as make
from support.looks import look_at
from support.scene import BUUN, UPSTREAM, Scene

from jobs.db import reading, writing
from jobs.store import forks, source_states

NAME = "spiritbuun/buun-llama-cpp"
FAR = "2099-01-01T00:00:00Z"


@pytest.fixture
def database(sqlite: Engine) -> Engine:
    """One kind of database: what is judged does not depend on it."""
    return sqlite


def at(scene: Scene) -> str:
    return scene.now.strftime("%Y-%m-%dT%H:%M:%SZ")


def closed(number: int, when: str) -> dict[str, Any]:
    return make.issue(number, NAME, when, state="closed", closed_at=when)


def test_an_issue_of_the_year_2099_silences_no_other(chain: Scene) -> None:
    """The next look asks for what moved since this one, not since 2099."""
    chain.github.put(BUUN, "issues", make.issue(2, NAME, FAR))
    chain.look()
    chain.later(minutes=5)
    moved = closed(3, at(chain))
    chain.later(minutes=1)
    chain.github.put(BUUN, "issues", make.issue(2, NAME, FAR), moved)
    assert [each.key.split(":")[3] for each in look_at(chain, "github_issues").new] == ["3"]


def test_a_pull_request_of_the_year_2099_silences_no_other(chain: Scene) -> None:
    """What stands on a second page is read although the first goes back to the mark."""
    base, head = chain.github.repos[UPSTREAM], chain.github.repos[BUUN]
    chain.github.put(UPSTREAM, "pulls", make.pull(1, base, base, FAR))
    chain.look()
    chain.later(minutes=5)
    others = [make.pull(100 + n, base, base, at(chain)) for n in range(60)]
    ours = make.pull(7, head, base, at(chain))
    chain.later(minutes=1)
    chain.github.put(UPSTREAM, "pulls", make.pull(1, base, base, FAR), *others, ours)
    assert [each.kind for each in look_at(chain, "github_pulls").new] == ["pr_opened"]


def test_a_mark_that_lies_ahead_is_taken_back(chain: Scene) -> None:
    """A clock of ours that was wrong once does not silence a list for good."""
    chain.look()
    key = f"github_issues:{BUUN}"
    with writing(chain.database) as session:
        state = source_states.lock_source_state(session, key, chain.now)
        state.cursor = {**state.cursor, "until": "2099-01-01T00:00:00+00:00"}
    chain.later(minutes=6)
    look_at(chain, "github_issues")
    chain.later(minutes=6)
    chain.github.put(BUUN, "issues", closed(3, at(chain)))
    assert len(look_at(chain, "github_issues").new) == 1


def test_a_fork_pushed_to_in_2099_hides_no_push(chain: Scene) -> None:
    """Its own push stays as it was known; the mark of the list is not beyond now."""
    chain.github.add(21, "a/llama.cpp", parent=UPSTREAM, pushed_at="2026-05-01T00:00:00Z",
                     created_at="2026-04-01T00:00:00Z")  # fmt: skip
    chain.look()
    before = chain.row(21).pushed_at
    chain.github.repos[21]["pushed_at"] = FAR
    chain.later(minutes=16)
    chain.look()
    assert chain.row(21).pushed_at == before
    with reading(chain.database) as session:
        state = source_states.source_state(session, f"github_pushes:{UPSTREAM}")
    assert state is not None
    assert state.cursor["pushed_at"] <= chain.now.isoformat()


def test_nothing_happened_after_it_was_seen(chain: Scene) -> None:
    """A release dated 2099 is told with the moment at which we saw it."""
    chain.look()
    chain.later(minutes=6)
    chain.github.put(BUUN, "releases", make.release(5, "v5", FAR))
    chain.look()
    assert chain.event("gh:rel:5").happened_at == chain.now


@pytest.mark.parametrize("updated", ["\ud800", "a\x00b", None, 7, "soon", "9" * 40])
def test_a_linked_issue_with_an_odd_time_is_no_answer(chain: Scene, updated: object) -> None:
    """No event is made of it, nothing fails, and the next answer is told."""
    item = make.issue(35, NAME, "2026-05-18T11:00:00Z")
    chain.github.put(BUUN, "issues", item)
    with writing(chain.database) as session:
        forks.link_issue(session, NAME, 35, note="", now=chain.now)
    look_at(chain, "github_linked")
    chain.later(minutes=6)
    chain.github.put(BUUN, "issues", {**item, "updated_at": updated})
    found = look_at(chain, "github_linked")
    assert (found.new, found.troubles) == ((), ())
    chain.later(minutes=6)
    chain.github.put(BUUN, "issues", {**item, "updated_at": "2026-05-18T12:10:00Z"})
    (told,) = look_at(chain, "github_linked").new
    assert told.key == f"gh:issue:{BUUN}:35:open:moved:2026-05-18T12:10:00Z"
