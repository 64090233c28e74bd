"""Refs in doubt, from strangers or in a race: nothing is lost or told twice."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import pytest
from sqlmodel import select
from support.bombs import bomb
from support.chain import Chain, patch
from support.hub import Hub
from support.watching import CHAIN, Scout

from jobs.db import reading
from jobs.errors import Permanent
from jobs.sightings import SourceStateRow
from jobs.store import refs
from scout.graph import Graph
from scout.history import GitHistory

pytestmark = pytest.mark.needs("git")


def told(scout: Scout, kind: str) -> list[dict[str, Any]]:
    return [row.payload["facts"] for row in scout.events().values() if row.kind == kind]


def test_a_push_of_endless_paths_is_recorded(chain: Chain, scout: Scout) -> None:
    """A dozen objects that stand for a million files: the push is told, without its paths."""
    scout.load(CHAIN)
    scout.look()
    sha = bomb(chain.buun, width=10, depth=5)
    chain.buun.push(f"{sha}:refs/heads/master")
    summary = scout.look()
    assert summary.troubles == ()
    (push,) = [news for news in summary.new if news.kind == "fork_pushed"]
    assert (push.facts["too_many_paths"], push.facts["files_hot"]) == (True, [])
    assert scout.look().new == ()


def test_an_event_without_its_old_history_still_counts(chain: Chain, scout: Scout) -> None:
    """After the network's folder was lost, a force push is told with what is known."""
    scout.load(CHAIN)
    scout.look()
    shutil.rmtree(scout.network)
    chain.bee.git("reset", "--quiet", "--hard", "HEAD~1")
    patch(chain.bee, "other", "bee", 30)
    chain.bee.push("HEAD:refs/heads/main")
    summary = scout.look()
    assert summary.troubles == ()
    (push,) = told(scout, "fork_pushed")
    assert (push["after"], push["forced"]) == (chain.bee.head, None)


def test_a_squashed_history_keeps_the_old_commit(chain: Chain, scout: Scout) -> None:
    """A force push with new work is one; what it threw away can still be looked at."""
    scout.load(CHAIN)
    scout.look()
    old = chain.bee.head
    chain.bee.git("reset", "--quiet", "--soft", "HEAD~2")
    chain.bee.commit({}, message="Restore local changes on cleaned history", author="bee")
    chain.bee.push("HEAD:refs/heads/main")
    scout.look()
    (push,) = told(scout, "fork_pushed")
    assert (push["forced"], push["new_patches"]) == (True, 1)
    assert scout.history.graph([push["repository"]]).knows(old)


def test_doubt_keeps_the_state(hub: Hub, chain: Chain, scout: Scout) -> None:
    """A repository that is not there is reported and asked less often; nothing becomes gone."""
    scout.load(CHAIN)
    scout.look()
    hidden = chain.bee.bare.with_suffix(".hidden")
    chain.bee.bare.rename(hidden)
    (trouble,) = scout.look().troubles
    assert trouble.engine == "bee"
    hidden.rename(chain.bee.bare)
    assert "bee" in scout.look().looked
    with reading(scout.database) as session:
        row = next(
            row
            for row in refs.repositories_of_engines(session).values()
            if row.full_name == "bee/engine"
        )
        assert row.state == "known"
        assert refs.refs_of(session, row.id or 0)
    assert scout.events() == {}


def test_hostile_names_and_texts_stay_text(hub: Hub, chain: Chain, scout: Scout) -> None:
    """Options, shell words and escapes arrive as bounded, printable facts."""
    scout.load(CHAIN)
    scout.look()
    chain.bee.commit(
        {"--exec=touch": "1", "$(id)": "2"},
        message="<script>alert(1)</script>\x1b[31m" + "z" * 999,
        author="$(reboot)",
    )
    chain.bee.push("HEAD:refs/heads/main", "HEAD:refs/heads/x/--upload-pack=touch;reboot")
    assert scout.look().troubles == ()
    (push,) = told(scout, "fork_pushed")
    assert push["new_authors"] == ["$(reboot)"]
    assert push["subjects"][0].startswith("<script>alert(1)</script>[31mzzz")
    assert len(push["subjects"][0]) <= 240
    (branch,) = told(scout, "branch_created")
    assert branch["ref"] == "refs/heads/x/--upload-pack=touch;reboot"


class Racing(GitHistory):
    """A history during whose reading another scout finishes its own round."""

    other: Scout | None = None

    def graph(self, numbers: Sequence[int]) -> Graph:
        other, Racing.other = Racing.other, None
        if other is not None:
            other.look()
        return super().graph(numbers)


def test_two_scouts_tell_once(chain: Chain, scout: Scout) -> None:
    """What another watcher wrote in the meantime is not new, and nothing is written twice."""
    scout.load(CHAIN)
    scout.look()
    patch(chain.buun, "one", "buun", 30)
    chain.buun.push("HEAD:refs/heads/master")
    Racing.other = Scout(scout.database, scout.network.parents[1])
    scout.history = Racing(scout.network)
    assert scout.look().new == ()
    assert len(told(scout, "fork_pushed")) == 1


class Unreadable(GitHistory):
    """A history that cannot be read today."""

    def graph(self, numbers: Sequence[int]) -> Graph:
        raise Permanent("git wrote more than it may", advice="look at it")


def test_an_unreadable_history_loses_no_event(chain: Chain, scout: Scout) -> None:
    """Nothing is recorded, so that the push is told once the history can be read."""
    scout.load(CHAIN)
    scout.look()
    patch(chain.buun, "one", "buun", 30)
    chain.buun.push("HEAD:refs/heads/master")
    scout.history = Unreadable(scout.network)
    (trouble,) = scout.look().troubles
    assert trouble.engine == "upstream"
    with reading(scout.database) as session:
        states = session.exec(select(SourceStateRow)).all()
    assert sorted((row.failures, row.retry_at is not None) for row in states) == [
        *[(0, False)] * 3,
        (1, True),
    ]
    scout.history = GitHistory(scout.network)
    assert [news.kind for news in scout.look().new] == ["fork_pushed"]


def test_a_lost_network_is_fetched_again_without_news(chain: Chain, scout: Scout) -> None:
    """The folder may be deleted at any time: rows say what was told."""
    scout.load(CHAIN)
    scout.look()
    shutil.rmtree(scout.network)
    assert scout.look().new == ()
    assert (scout.network / "HEAD").exists()
