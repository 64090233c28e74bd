"""Whether a candidate's name is still its own: GitHub's number says so, or there is doubt."""

from __future__ import annotations

from typing import Any

import pytest
from support.looks import look_at
from support.scene import UPSTREAM, Scene

from scout.candidate_identity import by_number
from scout.candidate_values import Candidate
from scout.github import forks as fork_lists
from scout.github.desk import Desk

FORK = 77
ONE = Candidate(5, FORK, "a/llama.cpp", "upstream")


@pytest.fixture
def listed(chain: Scene) -> Scene:
    """A fork that a list showed."""
    chain.github.add(FORK, "a/llama.cpp", parent=UPSTREAM)
    chain.look()
    look_at(chain, fork_lists.CENSUS)
    return chain


def doubt(scene: Scene) -> str:
    return by_number(lambda: Desk(scene.database, scene.client, lambda: scene.now))(ONE)


def test_a_name_that_is_still_its_own_is_no_doubt(listed: Scene) -> None:
    """And costs nothing the second time."""
    assert doubt(listed) == ""
    before = listed.github.charged
    assert doubt(listed) == ""
    assert listed.github.charged == before


def test_a_renamed_candidate_is_kept_under_its_name(listed: Scene) -> None:
    """What answers under the old name is somebody else's."""
    listed.github.rename(FORK, "a/engine")
    listed.github.add(666, "a/llama.cpp")
    assert doubt(listed) == "it is called a/engine now"
    assert listed.row(FORK).full_name == "a/engine"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"status": 502}, "GitHub answered 502"),
        ({"status": 404}, "its number shows nothing"),
        ({"status": 451}, "it is blocked by GitHub: nobody sees it there"),
        ({"status": 403, "headers": {"Retry-After": "60"}}, "GitHub asked us to slow down"),
    ],
    ids=str,
)
def test_no_answer_is_doubt(listed: Scene, fault: dict[str, Any], says: str) -> None:
    """Whatever the reason."""
    listed.github.fail(f"/repositories/{FORK}", **fault)
    assert doubt(listed) == says
