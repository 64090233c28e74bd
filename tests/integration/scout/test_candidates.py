"""Forks that nobody builds, from GitHub's list to facts and events, in each kind of database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.candidates import BUUN, UPSTREAM, Watch, fork, rooms
from support.chain import Chain, patch, upstream_commit
from support.hub import Hub

from jobs.db import reading, writing
from jobs.dispatch import plan_events
from jobs.store import forks, standings
from scout.engine_facts import keep_engine_facts
from scout.github.governor import Tier
from scout.history import GitHistory
from scout.ranking import GitFacts

pytestmark = pytest.mark.needs("git")


def test_a_fresh_copy_costs_a_list_and_no_fetch(hub: Hub, chain: Chain, watch: Watch) -> None:
    """It stands at a commit of its parent: nothing of it is brought here, nothing is its own."""
    copy = fork(hub, "new/copy", chain.buun, "master")
    copy.git("tag", "v9")
    copy.push("v9")
    number = watch.list(9, "new/copy", BUUN)
    found = watch.glance()
    assert (found.looked, found.new, found.troubles) == (("new/copy",), (), ())
    assert rooms(watch) == []
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own_vs_upstream, facts.own_vs_parent, facts.only_syncs) == (7, 0, True)
    assert facts.parent == "buun"
    assert watch.glance().looked == ()


def test_a_fork_that_stopped_at_an_older_commit_is_not_fetched(
    hub: Hub, chain: Chain, watch: Watch
) -> None:
    """Most forks were synced once and left: what they stand at is upstream's history."""
    old = fork(hub, "new/old", chain.upstream, "master~3")
    number = watch.list(9, "new/old", UPSTREAM)
    assert watch.glance().troubles == ()
    assert rooms(watch) == []
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own, facts.behind, facts.head) == (0, 3, old.head)


def test_work_beyond_the_parent_counts_alone(hub: Hub, chain: Chain, watch: Watch) -> None:
    """Seven patches came with the parent, two are the fork's own; one of those is hot."""
    made = fork(hub, "new/work", chain.buun, "master")
    patch(made, "kernel", "eve", 40, "ggml/src/ggml-cuda/fattn.cu")
    patch(made, "faster dflash", "mallory", 41)
    made.git("tag", "v1.0")
    made.git("tag", "b77")
    made.push("HEAD:refs/heads/main", "v1.0", "b77")
    number = watch.list(9, "new/work", BUUN)
    assert watch.glance().new == ()
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own_vs_upstream, facts.own_vs_parent) == (9, 2)
    assert (facts.hot_patches, facts.own_authors, facts.human_tag) == (1, 2, "v1.0")
    assert facts.subjects == ("faster dflash", "kernel")
    assert facts.head == made.head
    assert watch.events() == {}


def test_later_pushes_are_told_and_build_nothing(hub: Hub, chain: Chain, watch: Watch) -> None:
    """Push, sync, tag and a new flag are events without engine or revision; no job is queued."""
    made = fork(hub, "new/work", chain.buun, "master")
    patch(made, "one", "eve", 40)
    made.push()
    number = watch.list(9, "new/work", BUUN)
    watch.glance()
    made.commit({"common/arg.cpp": 'x({"--tree"});'}, message="tree", author="eve")
    made.git("merge", "--quiet", "--no-ff", "-m", "sync", made.take(chain.upstream, "master"))
    made.git("tag", "v2")
    made.push("HEAD:refs/heads/main", "v2")
    watch.list(9, "new/work", BUUN)
    found = watch.glance()
    assert found.troubles == ()
    kinds = sorted(news.kind for news in found.new)
    assert kinds == ["fork_pushed", "tag_created", "upstream_synced"]
    (push,) = watch.told("fork_pushed")
    assert (push["new_patches"], push["repo_id"], push["after"]) == (1, 9, made.head)
    assert all(row.engine_id is None and row.revision_id is None
               for row in watch.events().values())  # fmt: skip
    with writing(watch.database) as session:
        assert plan_events(session, watch.at) == []
    assert watch.glance().new == ()
    facts = watch.git(number)
    assert facts is not None
    assert facts.own_vs_parent == 2


def test_a_candidates_new_ability_is_told(hub: Hub, chain: Chain, watch: Watch) -> None:
    """A flag that neither upstream nor the parent has; it is a fact of the ranking as well."""
    base = {"common/arg.cpp": 'x({"--mmap"});'}
    chain.upstream.commit(base, message="base (#20000)")
    chain.upstream.push("HEAD:refs/heads/master")
    watch.look()
    made = fork(hub, "new/work", chain.upstream, "master")
    number = watch.list(9, "new/work", UPSTREAM)
    watch.glance()
    made.commit({"common/arg.cpp": 'x({"--mmap"}); x({"--tree"});'}, message="t", author="eve")
    made.push()
    watch.list(9, "new/work", UPSTREAM)
    watch.glance()
    (ability,) = watch.told("fork_capability_changed")
    assert ability["flags_added"] == ["--tree"]
    facts = watch.git(number)
    assert facts is not None
    assert facts.capabilities == ("--tree",)


def test_a_sync_alone_is_no_push(hub: Hub, chain: Chain, watch: Watch) -> None:
    """The button that follows upstream tells of a sync, once."""
    made = fork(hub, "new/copy", chain.upstream, "master")
    watch.list(9, "new/copy", UPSTREAM)
    watch.glance()
    upstream_commit(chain.upstream, 50)
    chain.upstream.push("HEAD:refs/heads/master")
    watch.look()
    made.push(f"{made.take(chain.upstream, 'master')}:refs/heads/main")
    watch.list(9, "new/copy", UPSTREAM)
    before = set(watch.events())
    watch.glance()
    new = [row for key, row in watch.events().items() if key not in before]
    assert [row.kind for row in new] == ["upstream_synced"]
    assert rooms(watch) == []


def test_a_lost_link_does_not_make_a_copy_shine(hub: Hub, chain: Chain, watch: Watch) -> None:
    """GitHub says upstream is the parent; the commits say whose work it is."""
    made = fork(hub, "new/upload", chain.buun, "master")
    patch(made, "one", "eve", 40)
    made.push()
    number = watch.list(9, "new/upload", UPSTREAM)
    watch.glance()
    facts = watch.git(number)
    assert facts is not None
    assert (facts.parent, facts.own_vs_parent, facts.own_vs_upstream) == ("buun", 1, 8)


def test_a_fork_of_a_candidate_is_held_against_it(hub: Hub, chain: Chain, watch: Watch) -> None:
    """Once the parent was looked at; before, its absence is said."""
    first = fork(hub, "new/first", chain.upstream, "master")
    patch(first, "one", "eve", 40)
    first.push()
    second = fork(hub, "new/second", first, "main")
    patch(second, "two", "mallory", 41)
    second.push()
    parent = watch.list(8, "new/first", UPSTREAM, tier=Tier.EVERYTHING)
    number = watch.list(9, "new/second", 8)
    watch.glance()
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own_vs_parent, facts.own_vs_upstream, facts.parent) == (None, 2, "new/first")
    watch.list(8, "new/first", UPSTREAM)
    watch.glance()
    assert watch.git(parent) is not None
    watch.list(9, "new/second", 8)
    watch.glance()
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own_vs_parent, facts.own_vs_upstream) == (1, 2)


def test_engines_are_ranked_by_the_same_facts(chain: Chain, watch: Watch) -> None:
    """Worked out when a head moved, and left alone otherwise."""
    history = GitHistory(watch.network)
    assert keep_engine_facts(watch.database, history=history, now=lambda: watch.at) == ()
    with reading(watch.database) as session:
        rows = {forks_row.full_name: forks_row.id or 0 for forks_row in forks.repositories(session)}
        first = {key: row.git for key, row in standings.standings(session).items()}
    bee = GitFacts.read(first[rows["bee/engine"]])
    assert bee is not None
    assert (bee.parent, bee.own_vs_parent, bee.own_authors) == ("buun", 3, 2)
    assert "up/llama.cpp" in rows
    assert rows["up/llama.cpp"] not in first
    later = watch.at + timedelta(hours=1)
    keep_engine_facts(watch.database, history=history, now=lambda: later)
    with reading(watch.database) as session:
        assert {key: row.git for key, row in standings.standings(session).items()} == first
