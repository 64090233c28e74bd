"""What happened between two looks at a repository's refs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from support.graphs import Story, sha

from scout.graph import patches, triples
from scout.ref_news import AUTO_BUILD, TOLD_LIMIT, ref_news
from scout.ref_values import Neighbour, Place, RefNews, Upstream, View

MAIN = "refs/heads/main"
PLACE = Place("fork", 7, 99, "main", frozenset({MAIN}))


def paths(shas: Sequence[str]) -> list[str]:
    return ["ggml/src/ggml-cuda/a.cu", "README.md"] if shas else []


def view(story: Story, upstream: str | None = None, *neighbours: Neighbour) -> View:
    graph = story.graph()
    root = None
    if upstream is not None:
        reach = graph.reach([sha(upstream)])
        root = Upstream(1, sha(upstream), reach, reach)
    return View(graph, paths, root, neighbours)


def news(known: Mapping[str, str], seen: Mapping[str, str], by: View) -> list[RefNews]:
    return ref_news(
        PLACE,
        {ref: sha(name) for ref, name in known.items()},
        {ref: sha(name) for ref, name in seen.items()},
        by,
    )


def forked() -> Story:
    """Upstream u0 u1 u2; a fork f0 f1 on u0."""
    story = Story()
    story.line("u0 u1 u2", author="Up")
    story.line("f0 f1", on="u0", author="me")
    return story


def test_first_sight_says_nothing() -> None:
    """Whatever is there when we come is the baseline."""
    assert news({}, {MAIN: "f1"}, view(forked(), "u2")) == []


def test_nothing_moved_nothing_said() -> None:
    """The same refs are no news."""
    assert news({MAIN: "f1"}, {MAIN: "f1"}, view(forked(), "u2")) == []


def test_a_push_tells_its_new_patches() -> None:
    """Key, counts, authors, hot paths, standing; the watched branch carries a revision."""
    story = forked()
    story.line("f2 f3", on="f1", author="you")
    (push,) = news({MAIN: "f1"}, {MAIN: "f3"}, view(story, "u2"))
    assert push.key == f"gh:push:7:{MAIN}:{sha('f3')}"
    assert push.facts == {
        "repo_id": 99,
        "repository": 7,
        "ref": MAIN,
        "before": sha("f1"),
        "after": sha("f3"),
        "forced": False,
        "is_default": True,
        "new_patches": 2,
        "new_authors": ["you"],
        "files_hot": ["ggml/src/ggml-cuda/a.cu"],
        "subjects": ["f3", "f2"],
        "ahead": 4,
        "behind": 2,
        "merge_base": sha("u0"),
    }
    assert (push.revision, push.replaces, push.low_priority) == (sha("f3"), sha("f1"), False)
    assert push.title == f"fork: main pushed to {sha('f3')[:9]}, 2 new patches"
    assert push.happened_at is not None


def test_a_push_from_an_unknown_commit_claims_nothing() -> None:
    """Where the old history is lost, nobody is said to have forced or written anything."""
    (push,) = news({MAIN: "lost"}, {MAIN: "f1"}, view(forked(), "u2"))
    assert push.key == f"gh:push:7:{MAIN}:{sha('f1')}"
    assert (push.facts["forced"], push.facts["new_patches"]) == (None, None)
    assert (push.facts["ahead"], push.revision) == (2, sha("f1"))


def test_another_branch_carries_no_revision() -> None:
    """It is told, and not built."""
    story = forked()
    story.line("f2", on="f1")
    (push,) = news(
        {MAIN: "f1", "refs/heads/x": "f1"}, {MAIN: "f1", "refs/heads/x": "f2"}, view(story, "u2")
    )
    assert (push.revision, push.facts["is_default"]) == (None, False)


def test_a_merge_of_upstream_is_a_push_and_a_sync() -> None:
    """Upstream's commits are absorbed, not new patches."""
    story = forked()
    story.commit("m", "f1", "u2", author="me")
    push, sync = news({MAIN: "f1"}, {MAIN: "m"}, view(story, "u2"))
    assert (push.kind, push.facts["new_patches"], push.low_priority) == ("fork_pushed", 0, False)
    assert sync.key == f"gh:sync:7:{MAIN}:{sha('u2')}"
    assert (sync.facts["absorbed"], sync.facts["method"]) == (2, "merge")
    assert (sync.facts["upstream_id"], sync.revision) == (1, None)


def test_a_rebase_without_new_patches_is_only_a_sync() -> None:
    """It carries the revision, at low priority."""
    story = forked()
    story.rebased("r0", "f0", "u2")
    story.rebased("r1", "f1", "r0")
    (sync,) = news({MAIN: "f1"}, {MAIN: "r1"}, view(story, "u2"))
    assert (sync.kind, sync.facts["method"]) == ("upstream_synced", "rebase")
    assert (sync.revision, sync.replaces, sync.low_priority) == (sha("r1"), sha("f1"), True)


def test_a_rebase_with_a_new_patch_is_a_forced_push() -> None:
    """Only the patch that was not there before counts."""
    story = forked()
    story.rebased("r0", "f0", "u2")
    story.rebased("r1", "f1", "r0")
    story.line("f2", on="r1", author="me")
    push, sync = news({MAIN: "f1"}, {MAIN: "f2"}, view(story, "u2"))
    assert (push.facts["forced"], push.facts["subjects"]) == (True, ["f2"])
    assert (sync.facts["method"], sync.low_priority) == ("rebase", False)


def test_a_reset_to_older_upstream_is_no_sync() -> None:
    """Going back is a forced push without new patches, at low priority."""
    story = forked()
    story.line("g0", on="u2", author="me")
    (push,) = news({MAIN: "g0"}, {MAIN: "f1"}, view(story, "u2"))
    assert (push.kind, push.facts["forced"], push.low_priority) == ("fork_pushed", True, False)
    (back,) = news({MAIN: "f1"}, {MAIN: "f0"}, view(story, "u2"))
    assert (back.facts["new_patches"], back.low_priority) == (0, True)


def test_a_picked_pull_request_is_no_patch_of_the_fork() -> None:
    """Its subject ends as upstream's squash merges do."""
    story = forked()
    story.rebased("p", "u2", "f1")
    (push,) = news({MAIN: "f1"}, {MAIN: "p"}, view(story, "u1"))
    assert push.facts["new_patches"] == 0


def test_a_patch_of_another_fork_is_absorbed_once() -> None:
    """The nearest fork that had it is its source; the key is a digest of the patches."""
    story = forked()
    story.line("n0 n1", on="u0", author="you")
    story.rebased("p", "n1", "f1")
    graph = story.graph()
    own = triples(patches(graph.beyond([sha("n1")], graph.reach([sha("u0")]))))
    near, far = Neighbour("near", 3, own), Neighbour("far", 4, own)
    _, took = news({MAIN: "f1"}, {MAIN: "p"}, view(story, "u2", near, far))
    assert took.kind == "feature_absorbed"
    assert took.key.startswith("gh:absorb:7:3:")
    assert [each["subject"] for each in took.facts["commits"]] == ["n1"]
    assert took.title == "fork took 1 patch of near"


def test_branches_and_tags_come_and_go() -> None:
    """A deleted tag is no news; a moved one names both commits."""
    known: dict[str, Any] = {
        MAIN: "f1",
        "refs/heads/old": "f0",
        "refs/tags/v1": "f0",
        "refs/tags/x": "f0",
    }
    seen = {
        MAIN: "f1",
        "refs/heads/new": "f1",
        "refs/tags/v1": "f1",
        "refs/tags/main-b9351-4db14be": "f1",
    }
    told = {each.kind: each for each in news(known, seen, view(forked(), "u2"))}
    assert set(told) == {"branch_created", "branch_deleted", "tag_created", "tag_moved"}
    assert told["branch_deleted"].key == f"gh:branch:7:refs/heads/old:{sha('f0')}:del"
    assert told["branch_created"].key == f"gh:branch:7:refs/heads/new:{sha('f1')}:new"
    assert told["tag_moved"].key == f"gh:tag:7:v1:{sha('f1')}"
    assert told["tag_moved"].facts["old_oid"] == sha("f0")
    assert told["tag_created"].facts["auto_build"] is True


@pytest.mark.parametrize(
    ("tag", "auto"),
    [
        ("b9326", True),
        ("feature-turboquant-kv-cache-b9079-69d8e4b", True),
        ("main-b9351-4db14be", True),
        ("v0.1.2", False),
        ("tqp-v0.1.1", False),
        ("beta", False),
    ],
)
def test_builds_of_ci_are_told_from_releases(tag: str, auto: bool) -> None:
    """By how the chain's workflows name them."""
    assert bool(AUTO_BUILD.fullmatch(tag)) is auto


def test_a_flood_is_cut_and_the_watched_branch_comes_first() -> None:
    """Ten thousand new branches hide no push and fill no table."""
    story = forked()
    story.line("f2", on="f1")
    seen = {MAIN: "f2", **{f"refs/heads/a{n}": "f1" for n in range(10_000)}}
    told = news({MAIN: "f1"}, seen, view(story, "u2"))
    assert len(told) == TOLD_LIMIT
    assert told[0].kind == "fork_pushed"


def test_upstream_itself_is_judged_by_nothing_else() -> None:
    """Its pull requests are its patches."""
    story = forked()
    (push,) = news({MAIN: "u1"}, {MAIN: "u2"}, view(story))
    assert (push.facts["new_patches"], push.facts["ahead"]) == (1, None)
