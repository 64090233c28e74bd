"""From real pushes in a chain of forks to events, revisions and jobs, in each kind of database."""

from __future__ import annotations

from typing import Any

import pytest
from sqlmodel import select
from support.chain import Chain, patch, upstream_commit
from support.hub import Hub
from support.watching import CHAIN, Scout, bench_of, engine

from jobs.db import reading, writing
from jobs.dispatch import plan_events
from jobs.model import Kind, Lane, State
from jobs.planning_tables import LeftOutRow
from jobs.store import catalog, refs, work
from jobs.tables import RevisionRow
from scout.family import family_of
from scout.kinship import kindred

pytestmark = pytest.mark.needs("git")


def plan(scout: Scout) -> list[Any]:
    """The new jobs of what moved, without the baselines they bring along."""
    with writing(scout.database) as session:
        return [job for job in plan_events(session, scout.at) if job.lane != Lane.BACKFILL]


def told(scout: Scout, kind: str) -> list[dict[str, Any]]:
    return [row.payload["facts"] for row in scout.events().values() if row.kind == kind]


def test_first_sight_is_a_baseline(chain: Chain, scout: Scout) -> None:
    """Refs are recorded; no event, no job, and the next look is quiet too."""
    scout.load(CHAIN + bench_of("upstream", "turbo", "buun", "bee"))
    first = scout.look()
    assert first.troubles == ()
    assert first.looked["buun"] == (f"master@{chain.buun.head[:9]}",)
    assert first.new == ()
    assert scout.look().new == ()
    assert scout.events() == {}
    assert plan(scout) == []
    with reading(scout.database) as session:
        rows = refs.repositories_of_engines(session).values()
        names = {row.full_name: row.default_branch for row in rows}
    assert names["bee/engine"] == "main"


def test_a_round_of_the_chain(chain: Chain, scout: Scout) -> None:
    """Push, sync merge, rebase, absorption, branch and tag each become their own event, once."""
    scout.load(CHAIN + bench_of("upstream", "turbo", "buun", "bee"))
    scout.look()
    old_buun, old_turbo = chain.buun.head, chain.turbo.head
    # buun takes a late patch of turbo, writes one of its own, and merges upstream.
    late = chain.buun.take(chain.turbo, "feature/turbo")
    chain.buun.git("cherry-pick", late)
    own = patch(chain.buun, "faster", "buun", 30, "ggml/src/ggml-cuda/fattn.cu")
    synced = chain.buun.take(chain.upstream, "master")
    chain.buun.git("merge", "--quiet", "--no-ff", "-m", "Merge upstream", synced)
    chain.buun.git("tag", "b7")
    chain.buun.git("tag", "v1.0")
    chain.buun.push("HEAD:refs/heads/master", "HEAD:refs/heads/try", "b7", "v1.0")
    # turbo only rebases.
    chain.turbo.git("rebase", "--quiet", chain.turbo.take(chain.upstream, "master"))
    chain.turbo.push("HEAD:refs/heads/feature/turbo", ":experiment")
    summary = scout.look()
    assert summary.troubles == ()
    assert scout.look().new == ()

    (push,) = told(scout, "fork_pushed")
    assert (push["before"], push["after"]) == (old_buun, chain.buun.head)
    assert (push["forced"], push["is_default"], push["new_patches"]) == (False, False, 2)
    assert push["new_authors"] == ["buun", "tom"]
    assert push["files_hot"] == ["ggml/src/ggml-cuda/fattn.cu"]
    assert (push["behind"], push["merge_base"]) == (0, synced)

    syncs = {fact["method"]: fact for fact in told(scout, "upstream_synced")}
    assert syncs["merge"]["absorbed"] == 2
    assert syncs["merge"]["old_merge_base"] == chain.synced
    assert syncs["rebase"]["new_merge_base"] == synced

    (taken,) = told(scout, "feature_absorbed")
    assert [commit["subject"] for commit in taken["commits"]] == ["turbo late"]
    tags = {fact["tag"]: fact["auto_build"] for fact in told(scout, "tag_created")}
    assert tags == {"b7": True, "v1.0": False}
    assert [fact["ref"] for fact in told(scout, "branch_created")] == ["refs/heads/try"]
    assert [fact["ref"] for fact in told(scout, "branch_deleted")] == ["refs/heads/experiment"]
    assert own in {commit.sha for commit in scout.history.graph([1, 2, 3, 4])._commits}
    assert scout.history.graph([1, 2, 3, 4]).knows(old_turbo)

    number = f"r{push['repository']}"
    keys = scout.events().keys()
    assert f"gh:push:{number}:refs/heads/master:{chain.buun.head}" in keys
    assert f"gh:sync:{number}:refs/heads/master:{synced}" in keys
    assert f"gh:tag:{number}:b7:{chain.buun.head}" in keys
    assert f"gh:branch:{number}:refs/heads/try:{chain.buun.head}:new" in keys


def test_a_push_is_built_and_a_newer_one_supersedes_it(chain: Chain, scout: Scout) -> None:
    """Only the watched branch queues jobs; the older head's waiting jobs end as superseded.

    What a person has to let in first is queued, and waits.
    """
    scout.load(CHAIN + bench_of("buun", "turbo"))
    scout.look()
    patch(chain.buun, "one", "buun", 30)
    chain.buun.push("HEAD:refs/heads/master", "HEAD:refs/heads/other")
    patch(chain.turbo, "two", "tom", 31)
    chain.turbo.push("HEAD:refs/heads/feature/turbo")
    scout.look()
    planned = plan(scout)
    others = {job.kind: job for job in planned if "turbo" in job.title}
    assert set(others) == {"build", "bench"}
    assert {job.state for job in others.values()} == {State.BLOCKED}
    assert others["build"].blocked_by == "not_approved"
    first = {job.kind: job for job in planned if job not in others.values()}
    assert set(first) == {"fetch_model", "build", "bench"}
    with reading(scout.database) as session:
        before, revision = catalog.revisions_of(
            session, catalog.engine_named(session, "buun").id or 0
        )
    assert revision.label == f"master@{chain.buun.head[:9]}"
    assert before.label.startswith("master@")
    assert {job.lane for job in first.values()} == {Lane.FRESH}

    patch(chain.buun, "three", "buun", 32)
    chain.buun.push("HEAD:refs/heads/master")
    scout.look()
    second = {job.kind: job for job in plan(scout)}
    with reading(scout.database) as session:
        states = {kind: work.job(session, job.id).state for kind, job in first.items()}
        message = work.job(session, first["build"].id).message
    assert states == {
        "fetch_model": State.QUEUED,
        "build": State.SUPERSEDED,
        "bench": State.SUPERSEDED,
    }
    assert f"master@{chain.buun.head[:9]}" in message
    assert second["build"].state == State.QUEUED


def test_a_push_of_documents_leaves_what_waits_alone(chain: Chain, scout: Scout) -> None:
    """The commit before it is measured; the next change of the source takes its place."""
    scout.load(CHAIN + bench_of("buun"))
    scout.look()
    patch(chain.buun, "one", "buun", 30, "src/one.cpp")
    chain.buun.push("HEAD:refs/heads/master")
    scout.look()
    waiting = {job.kind: job for job in plan(scout)}
    patch(chain.buun, "two", "buun", 31, "docs/two.md")
    chain.buun.push("HEAD:refs/heads/master")
    scout.look()
    assert ["docs/two.md"] in [facts["paths"] for facts in told(scout, "fork_pushed")]
    assert plan(scout) == []
    with reading(scout.database) as session:
        assert work.job(session, waiting["bench"].id).state == State.BLOCKED
        [left] = session.exec(select(LeftOutRow)).all()
    assert (left.why, "docs/two.md" in left.detail) == ("not needed", True)
    patch(chain.buun, "three", "buun", 32, "src/three.cpp")
    chain.buun.push("HEAD:refs/heads/master")
    scout.look()
    assert {job.kind for job in plan(scout)} == {"build", "bench"}


def test_a_head_that_comes_back_is_built(chain: Chain, scout: Scout) -> None:
    """It is told once; what waits to be measured is the head as it stands, however often it moves
    and however many moves are planned at once."""
    scout.load(CHAIN + bench_of("buun"))
    scout.look()
    old = chain.buun.head
    patch(chain.buun, "one", "buun", 30)
    new = chain.buun.head

    def move(sha: str) -> None:
        chain.buun.push(f"{sha}:refs/heads/master")
        scout.look()

    move(new)
    plan(scout)
    move(old)
    plan(scout)
    assert waiting(scout) == [old]
    told_once = len(told(scout, "fork_pushed"))
    for sha in (new, old, new):
        move(sha)
        plan(scout)
        assert waiting(scout) == [sha]
    move(old)
    move(new)
    plan(scout)
    assert waiting(scout) == [new]
    assert plan(scout) == []
    assert len(told(scout, "fork_pushed")) == told_once


def waiting(scout: Scout) -> list[str]:
    """The commits whose benches wait, not as baselines of others."""
    with reading(scout.database) as session:
        rows = work.jobs(session, states=[State.QUEUED, State.BLOCKED], kind=Kind.BENCH)
        rows = [row for row in rows if row.lane != Lane.BACKFILL]
        revisions = [session.get(RevisionRow, row.payload["revision_id"]) for row in rows]
        return [row.commit for row in revisions if row is not None]


def test_a_head_that_another_watched_branch_has_is_not_superseded(
    chain: Chain, scout: Scout
) -> None:
    """What is still the newest of a branch that is built goes on waiting."""
    scout.load(CHAIN.replace('["main"]', '["main", "stable"]') + bench_of("bee"))
    scout.look()
    patch(chain.bee, "one", "bee", 30)
    chain.bee.push("HEAD:refs/heads/main")
    scout.look()
    chain.bee.push("HEAD:refs/heads/stable")
    scout.look()
    first = [job.id for job in plan(scout) if job.kind != "fetch_model"]
    patch(chain.bee, "two", "bee", 31)
    chain.bee.push("HEAD:refs/heads/main")
    scout.look()
    assert len(plan(scout)) == 2
    with reading(scout.database) as session:
        assert {work.job(session, number).state for number in first} == {"queued", "blocked"}


def test_a_rebase_without_new_patches_waits_behind(chain: Chain, scout: Scout) -> None:
    """It is a sync in the lane of what is not urgent, and no push."""
    scout.load(CHAIN.replace('trust = "approve"', 'trust = "auto"') + bench_of("turbo"))
    scout.look()
    chain.turbo.git("rebase", "--quiet", chain.turbo.take(chain.upstream, "master"))
    chain.turbo.push("HEAD:refs/heads/feature/turbo")
    scout.look()
    assert [row.kind for row in scout.events().values()] == ["upstream_synced"]
    assert {job.lane for job in plan(scout)} == {Lane.RETEST}


def test_new_abilities_are_told_with_the_push(chain: Chain, scout: Scout) -> None:
    """A flag and a cache type that upstream lacks, read from the sources of the pushed commit."""
    types = "GGML_TYPE_F16 = 1,"
    chain.upstream.commit(
        {
            "common/arg.cpp": 'x({"--mmap"}); kv_cache_types = { GGML_TYPE_F16, };',
            "ggml/include/ggml.h": types,
        },
        message="base (#20000)",
    )
    chain.upstream.push("HEAD:refs/heads/master")
    base = chain.buun.take(chain.upstream, "master")
    chain.buun.git("merge", "--quiet", "--no-ff", "-m", "Merge upstream", base)
    chain.buun.push("HEAD:refs/heads/master")
    scout.load(CHAIN)
    scout.look()
    chain.buun.commit(
        {
            "common/arg.cpp": 'x({"--mmap"}); x({"--tree"}); '
            "kv_cache_types = { GGML_TYPE_F16, GGML_TYPE_TURBO3_0, };",
            "ggml/include/ggml.h": f"{types} GGML_TYPE_TURBO3_0 = 42,",
        },
        message="turbo",
        author="buun",
    )
    chain.buun.push("HEAD:refs/heads/master")
    assert scout.look().troubles == ()
    (fact,) = told(scout, "fork_capability_changed")
    assert fact["flags_added"] == ["--tree"]
    assert fact["cache_types_added"] == ["TURBO3_0"]
    patch(chain.buun, "unrelated", "buun", 40)
    chain.buun.push("HEAD:refs/heads/master")
    scout.look()
    assert len(told(scout, "fork_capability_changed")) == 1


def test_a_fork_that_has_a_patch_first_is_its_source(chain: Chain, scout: Scout) -> None:
    """A parent that takes its child's patch absorbed it, though both are seen in one round."""
    scout.load(CHAIN)
    scout.look()
    chain.buun.git("cherry-pick", chain.buun.take(chain.bee, "main") + "~1")
    patch(chain.buun, "shared", "buun", 41)
    chain.buun.push("HEAD:refs/heads/master")
    chain.bee.git("merge", "--quiet", "-m", "merge", chain.bee.take(chain.buun, "master"))
    chain.bee.push("HEAD:refs/heads/main")
    scout.look()
    took = {row.title for row in scout.events().values() if row.kind == "feature_absorbed"}
    assert took == {"buun took 1 patch of bee", "bee took 2 patches of buun"}


def test_upstreams_own_push_is_news_too(chain: Chain, scout: Scout) -> None:
    """Its commits are all new, and pull requests are what it is made of."""
    scout.load(CHAIN + engine("other", "up/llama.cpp"))
    scout.look()
    upstream_commit(chain.upstream, 50)
    chain.upstream.push("HEAD:refs/heads/master")
    scout.look()
    pushes = told(scout, "fork_pushed")
    assert {push["new_patches"] for push in pushes} == {1}


def test_a_pull_request_is_an_engine_of_its_own(chain: Chain, scout: Scout) -> None:
    """Its pushes are told and built under its name, beside the engine of the same repository."""
    pull = engine("mtp", "up/llama.cpp", "pull/7", "upstream")
    chain.upstream.push("HEAD:refs/pull/7/head")
    scout.load(CHAIN + pull + bench_of("upstream", "turbo", "buun", "bee", "mtp"))
    first = scout.look()
    assert first.troubles == ()
    assert first.looked["mtp"] == (f"pull/7@{chain.upstream.head[:9]}",)
    head = patch(chain.upstream, "heads", "am", 40)
    chain.upstream.push("HEAD:refs/pull/7/head")
    new = scout.look().new
    assert [(each.kind, each.title) for each in new] == [
        ("fork_pushed", f"mtp: pull/7 pushed to {head[:9]}, 1 new patch")
    ]
    assert [(job.title, job.blocked_by) for job in plan(scout) if "build" in job.kind] == [
        (f"build mtp pull/7@{head[:9]} for cpu", "not_approved")
    ]
    with reading(scout.database) as session:
        kin = kindred(session)
    descent = {each.engine: each for each in family_of("mtp", kin, scout.history, now=scout.at)}
    assert (descent["mtp"].parent, descent["mtp"].own_patches) == ("upstream", 1)


def test_an_engine_nobody_can_build_yet_is_watched(chain: Chain, scout: Scout, hub: Hub) -> None:
    """Its pushes are told and it has its lineage; no job comes of it, whatever its trust."""
    other = hub.add("v/llm")
    other.commit({"a": "1"})
    other.push()
    listed = engine("vllm", "v/llm", "main").replace('"llama.cpp"', '"vllm"')
    scout.load(listed + bench_of("vllm"))
    assert scout.look().looked["vllm"] == (f"main@{other.head[:9]}",)
    other.commit({"a": "2"})
    other.push()
    assert [each.kind for each in scout.look().new] == ["fork_pushed"]
    assert plan(scout) == []
    with reading(scout.database) as session:
        kin = kindred(session)
    (descent,) = family_of("vllm", kin, scout.history, now=scout.at)
    assert descent.head == other.head


def test_a_pull_request_that_is_not_there_is_said_as_a_branch_is(
    chain: Chain, scout: Scout
) -> None:
    """It is no trouble of the network; others of the same engine are looked at all the same."""
    chain.upstream.push("HEAD:refs/pull/7/head")
    both = engine("mtp", "up/llama.cpp", "pull/7").replace('["pull/7"]', '["pull/7", "pull/8"]')
    scout.load(both + engine("none", "up/llama.cpp", "pull/9"))
    found = scout.look()
    said = {each.engine: each for each in found.troubles}
    assert "pull/8 of up/llama.cpp, to be built, is not there" in said["mtp"].message
    assert "pull/9 of up/llama.cpp, to be built, is not there" in said["none"].message
    assert all("network" not in each.advice for each in said.values())
    assert found.looked["mtp"] == (f"pull/7@{chain.upstream.head[:9]}",)
