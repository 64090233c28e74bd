"""What happened between two looks at a repository's refs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.graphs import Story, sha

from scout.graph import patches, triples
from scout.ref_news import AUTO_BUILD, TOLD_LIMIT, ref_news
from scout.ref_values import (
    Neighbour,
    Place,
    RefNews,
    Upstream,
    View,
    keys_of,
    names_of,
)

MAIN = "refs/heads/main"
PLACE = Place("fork", 7, 99, "main", frozenset({MAIN}))


def paths(shas: Sequence[str]) -> list[str]:
    return ["ggml/src/ggml-cuda/a.cu", "README.md"] if shas else []


def view(story: Story, upstream: str | None = None, *neighbours: Neighbour) -> View:
    graph = story.graph()
    root = None
    if upstream is not None:
        reach = graph.reach([sha(upstream)])
        root = Upstream(1, sha(upstream), reach, reach, "up", 88)
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
    assert push.key == f"gh:push:99:{MAIN}:{sha('f3')}"
    assert push.facts == {
        "repo_id": 99,
        "repository": 7,
        "ref": MAIN,
        "before": sha("f1"),
        "after": sha("f3"),
        "forced": False,
        "paths": None,
        "is_default": True,
        "new_patches": 2,
        "new_authors": ["you"],
        "files_hot": ["ggml/src/ggml-cuda/a.cu"],
        "too_many_paths": False,
        "subjects": ["f3", "f2"],
        "ahead": 4,
        "behind": 2,
        "merge_base": sha("u0"),
    }
    assert (push.revision, push.replaces, push.low_priority) == (sha("f3"), sha("f1"), False)
    assert push.title == f"fork: main pushed to {sha('f3')[:9]}, 2 new patches"
    assert push.happened_at is not None


def test_a_push_of_too_many_paths_is_told_without_them() -> None:
    """That they are too many is a fact, and the push counts as any other."""
    story = forked()
    story.line("f2", on="f1")
    by = replace(view(story, "u2"), changed_paths=lambda _: None)
    (push,) = news({MAIN: "f1"}, {MAIN: "f2"}, by)
    assert (push.facts["too_many_paths"], push.facts["files_hot"]) == (True, [])
    assert (push.facts["new_patches"], push.revision) == (1, sha("f2"))


def test_a_push_from_an_unknown_commit_claims_nothing() -> None:
    """Where the old history is lost, nobody is said to have forced or written anything."""
    (push,) = news({MAIN: "lost"}, {MAIN: "f1"}, view(forked(), "u2"))
    assert push.key == f"gh:push:99:{MAIN}:{sha('f1')}"
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
    assert sync.key == f"gh:sync:99:{MAIN}:{sha('u2')}"
    assert (sync.facts["absorbed"], sync.facts["method"]) == (2, "merge")
    assert (sync.facts["upstream_id"], sync.revision) == (88, None)


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


def test_a_picked_pull_request_is_upstreams() -> None:
    """It is no patch of the fork; the event carries its number."""
    story = forked()
    story.rebased("p", "u2", "f1")
    push, took = news({MAIN: "f1"}, {MAIN: "p"}, view(story, "u2"))
    assert push.facts["new_patches"] == 0
    assert (took.kind, took.title) == ("feature_absorbed", "fork picked 1 pull request of up")
    assert (took.facts["from_repo_id"], took.facts["from_repository"]) == (88, 1)
    assert (took.facts["pr"], took.facts["prs"], took.facts["count"]) == (10002, [10002], 1)
    assert took.key.startswith("gh:absorb:99:88:")


def test_a_merge_of_an_upstream_that_was_not_seen_yet_picked_nothing() -> None:
    """The fork may be ahead of what we know of upstream."""
    story = forked()
    story.commit("m", "f1", "u2", author="me")
    told = news({MAIN: "f1"}, {MAIN: "m"}, view(story, "u0"))
    assert [each.kind for each in told] == ["fork_pushed"]
    assert told[0].facts["new_patches"] == 0


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
    assert took.key.startswith("gh:absorb:99:r3:")
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
    assert told["branch_deleted"].key == f"gh:branch:99:refs/heads/old:{sha('f0')}:del"
    assert told["branch_created"].key == f"gh:branch:99:refs/heads/new:{sha('f1')}:new"
    assert told["tag_moved"].key == f"gh:tag:99:v1:{sha('f1')}"
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
    """Ten thousand new branches hide no push and fill no table; one event counts the rest."""
    story = forked()
    story.line("f2", on="f1")
    seen = {MAIN: "f2", **{f"refs/heads/a{n}": "f1" for n in range(10_000)}}
    told = news({MAIN: "f1"}, seen, view(story, "u2"))
    assert len(told) == TOLD_LIMIT + 1
    assert told[0].kind == "fork_pushed"
    assert told[-1].kind == "refs_flood"
    assert told[-1].facts == {
        "repo_id": 99,
        "repository": 7,
        "moved": 10_001,
        "told": TOLD_LIMIT,
        "not_told": 10_001 - TOLD_LIMIT,
    }
    again = news({MAIN: "f1"}, dict(reversed(seen.items())), view(story, "u2"))
    assert again[-1].key == told[-1].key
    assert told[-1].key.startswith("gh:flood:99:")


def test_deleted_tags_are_no_flood() -> None:
    """What is no news is not counted among what was not told."""
    known = {MAIN: "f1", **{f"refs/tags/b{n}": "f1" for n in range(1000)}}
    assert news(known, {MAIN: "f1"}, view(forked(), "u2")) == []


def test_a_watched_branch_that_appears_is_built() -> None:
    """It carries its revision; the history it stands on is not told as new."""
    story = forked()
    story.line("f2 f3", on="f1", author="you")
    (made,) = news({"refs/heads/x": "f1"}, {"refs/heads/x": "f1", MAIN: "f3"}, view(story, "u2"))
    assert (made.kind, made.revision, made.replaces) == ("branch_created", sha("f3"), None)
    (other,) = news({MAIN: "f1"}, {MAIN: "f1", "refs/heads/x": "f3"}, view(story, "u2"))
    assert (other.kind, other.revision) == ("branch_created", None)
    (gone,) = news({MAIN: "f1", "refs/heads/x": "f1"}, {"refs/heads/x": "f1"}, view(story, "u2"))
    assert (gone.kind, gone.revision) == ("branch_deleted", None)


FACTS = {
    "fork_pushed": "ref before after forced is_default new_patches new_authors files_hot "
    "too_many_paths ahead behind merge_base",
    "branch_created": "ref oid watched",
    "branch_deleted": "ref oid watched",
    "tag_created": "tag target_oid old_oid auto_build",
    "tag_moved": "tag target_oid old_oid auto_build",
    "upstream_synced": "ref old_merge_base new_merge_base absorbed upstream_id method",
    "feature_absorbed": "from_repo_id commits pr",
    "refs_flood": "moved told not_told",
}
"""What a reader of events relies on, beside `repo_id`; consumers know these names."""


def one_of_each() -> dict[str, RefNews]:
    story = forked()
    story.rebased("p", "u2", "f1")
    story.commit("m", "p", "u1", author="me")
    told = news(
        {MAIN: "f1", "refs/heads/old": "f0", "refs/tags/v1": "f0"},
        {MAIN: "m", "refs/heads/new": "f1", "refs/tags/v1": "f1", "refs/tags/v2": "f1"},
        view(story, "u2"),
    )
    flood = {MAIN: "f1", **{f"refs/heads/a{n}": "f1" for n in range(TOLD_LIMIT + 1)}}
    told.append(news({MAIN: "f1"}, flood, view(story, "u2"))[-1])
    return {each.kind: each for each in told}


@pytest.mark.parametrize("kind", FACTS)
def test_every_kind_has_its_facts(kind: str) -> None:
    """The names are there, and the repository is named by GitHub's number."""
    facts = one_of_each()[kind].facts
    assert set(FACTS[kind].split()) <= facts.keys()
    assert facts["repo_id"] == 99


@pytest.mark.parametrize("kind", FACTS)
def test_a_key_holds_githubs_number_and_remembers_the_rows(kind: str) -> None:
    """A row's own number is marked, so that it can never be taken for one of GitHub's."""
    found = one_of_each()[kind]
    prefix = ":".join(found.key.split(":")[:2])
    assert found.key.startswith(f"{prefix}:99:")
    assert f"{prefix}:r7:" in "|".join(found.former)
    assert found.key not in found.former


def test_before_githubs_number_is_known_keys_hold_the_rows() -> None:
    """An engine may be watched by git alone."""
    assert keys_of("push", "x", names_of(7, None)) == ("gh:push:r7:x", ())
    assert keys_of("absorb", "x", names_of(7, 99), names_of(3, None)) == (
        "gh:absorb:99:r3:x",
        ("gh:absorb:r7:r3:x",),
    )
    assert keys_of("absorb", "x", names_of(7, 99), names_of(3, 55))[1] == (
        "gh:absorb:99:r3:x",
        "gh:absorb:r7:55:x",
        "gh:absorb:r7:r3:x",
    )


def test_upstream_itself_is_judged_by_nothing_else() -> None:
    """Its pull requests are its patches."""
    story = forked()
    (push,) = news({MAIN: "u1"}, {MAIN: "u2"}, view(story))
    assert (push.facts["new_patches"], push.facts["ahead"]) == (1, None)


def test_a_watched_branch_that_comes_back_is_told_from_where_it_was() -> None:
    """A push with its patches, which is built, beside the branch; at the same commit only that."""
    story = forked()
    story.line("f2", on="f1", author="me")
    by = view(story, "u2")
    push, back = ref_news(PLACE, {}, {MAIN: sha("f2")}, by, lost={MAIN: sha("f1")})
    assert (push.kind, push.revision, push.replaces) == ("fork_pushed", sha("f2"), sha("f1"))
    assert push.facts["new_patches"] == 1
    assert (back.kind, back.revision) == ("branch_created", None)
    assert "there again" in back.title
    (same,) = ref_news(PLACE, {}, {MAIN: sha("f1")}, by, lost={MAIN: sha("f1")})
    assert (same.kind, same.revision) == ("branch_created", sha("f1"))


def test_a_watched_branch_left_behind_is_told_once_for_each_head() -> None:
    """A month behind the default one, which moves; not while that stands still too."""
    story = forked()
    for number in range(35):
        story.commit(f"d{number}", f"d{number - 1}" if number else "f0", author="me")
    old = replace(PLACE, watched=frozenset({"refs/heads/old"}))
    known = {"refs/heads/old": sha("f1"), MAIN: sha("d33")}
    seen = {**known, MAIN: sha("d34")}
    by = view(story, "u2")
    (stale,) = (each for each in ref_news(old, known, seen, by) if each.kind == "branch_stale")
    assert stale.key == f"gh:stale:99:refs/heads/old:{sha('f1')}"
    assert "stands still since" in stale.title
    assert ref_news(old, seen, seen, by) == []
    young = {**known, MAIN: sha("d3")}
    assert {each.kind for each in ref_news(old, {**known, MAIN: sha("d2")}, young, by)} == {
        "fork_pushed"
    }
