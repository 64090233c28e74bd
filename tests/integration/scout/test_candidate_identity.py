"""Whose push it is: a name that passed on, and a candidate that GitHub shows to nobody."""

from __future__ import annotations

from datetime import timedelta

from support.candidates import UPSTREAM, Watch
from support.chain import Chain, patch
from support.hub import Hub, Repository

from jobs.db import reading
from jobs.errors import Transient
from jobs.sightings import RepositoryRow
from jobs.store import forks, refs
from scout.sources.git_refs import RefsSeen


def test_a_strangers_push_is_not_told_as_the_candidates(
    hub: Hub, chain: Chain, watch: Watch
) -> None:
    """Where the history was replaced, the name may have passed on: nothing is told or kept of it
    until GitHub's number says that the name is still its own."""
    made = _fork(hub, chain)
    number = watch.list(7, "new/work", UPSTREAM)
    watch.glance()
    with reading(watch.database) as session:
        before = refs.refs_of(session, number)
    made.git("checkout", "--quiet", "--orphan", "evil")
    made.commit({"evil": "1"}, message="evil dflash")
    made.push("HEAD:refs/heads/main")
    for doubt in (lambda _one: "it is called new/other now", None):
        watch.list(7, "new/work", UPSTREAM)
        found = watch.glance(ask=doubt, force=True)
        assert found.new == ()
        assert found.troubles[0].of_a_stranger
        assert "nothing of it is told" in found.troubles[0].message
        with reading(watch.database) as session:
            assert refs.refs_of(session, number) == before
        watch.at += timedelta(hours=2)
    watch.list(7, "new/work", UPSTREAM)
    (told,) = watch.glance(force=True).new
    assert told.kind == "fork_pushed"


def test_a_takedown_that_git_hears_is_kept(hub: Hub, chain: Chain, watch: Watch) -> None:
    """A blocked candidate is blocked at once, and told so; nobody asks it again."""
    number = watch.list(7, "new/work", UPSTREAM)
    watch.glance(
        source=_Silent(Transient("unable to access: The requested URL returned error: 451"))
    )
    with reading(watch.database) as session:
        assert session.get_one(RepositoryRow, number).state == forks.BLOCKED
    assert any(key.startswith("gh:repo:7:blocked:") for key in watch.events())
    assert watch.glance(force=True).troubles == ()


class _Silent:
    """A source that never answers."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def look_at_candidate(self, *_: object, **__: object) -> RefsSeen:
        """Raises."""
        raise self.error


def _fork(hub: Hub, chain: Chain) -> Repository:
    """A fork of upstream with one patch of its own."""
    made = hub.add("new/work")
    made.git("reset", "--quiet", "--hard", made.take(chain.upstream, "master"))
    patch(made, "good", "eve", 40)
    made.push("HEAD:refs/heads/main")
    return made
