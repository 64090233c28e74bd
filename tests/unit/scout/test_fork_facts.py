"""What a fork has of its own, on drawn graphs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.graphs import Story, sha

from scout.fork_facts import (
    LOOKED_INTO,
    SUBJECTS,
    Elder,
    Own,
    Parentage,
    elder,
    git_facts,
    is_bot,
    is_paper,
    landed_in,
    own_work,
)
from scout.graph import Graph
from scout.ref_values import Upstream


def drawn(story: Story, head: str = "u3") -> tuple[Graph, Upstream]:
    graph = story.graph()
    reach = graph.reach([sha(head)])
    return graph, Upstream(1, sha(head), reach, reach)


def forked() -> Story:
    """Upstream u0..u3, a parent p0 p1 on u1, and its fork f0 f1 on p1."""
    story = Story()
    story.line("u0 u1 u2 u3", author="Up")
    story.line("p0 p1", on="u1", author="parent")
    story.line("f0 f1", on="p1", author="me")
    return story


def parent_of(graph: Graph, upstream: Upstream, *, tags: Mapping[str, str] | None = None) -> Elder:
    refs = {"refs/heads/main": sha("p1"), **(tags or {})}
    return elder(graph, "parent", "p/repo", refs, sha("p1"), upstream)


def own(story: Story, refs: Mapping[str, str], parentage: Parentage | None = None) -> Own | None:
    graph, upstream = drawn(story)
    parentage = parentage or Parentage(parent_of(graph, upstream), "p/repo")
    return own_work(
        graph,
        {ref: sha(name) for ref, name in refs.items()},
        default_branch="main",
        upstream=upstream,
        parentage=parentage,
        landed=landed_in(graph, upstream),
    )


def test_counts_against_upstream_and_parent() -> None:
    """Four beyond upstream of which two came with the parent; two commits behind upstream."""
    found = own(forked(), {"refs/heads/main": "f1"})
    assert found is not None
    facts = git_facts(found, {sha("f1"): ["ggml/src/ggml-cuda/a.cu"], sha("f0"): ["README.md"]})
    assert (facts.own_vs_upstream, facts.own_vs_parent, facts.behind) == (4, 2, 2)
    assert (facts.hot_patches, facts.own_authors, facts.parent) == (1, 1, "parent")
    assert facts.subjects == ("f1", "f0")
    assert [facts.only_syncs, facts.only_bots, facts.only_papers] == [False] * 3


def test_a_copy_only_follows() -> None:
    """Whatever its parent did."""
    found = own(forked(), {"refs/heads/main": "p1"})
    assert found is not None
    facts = git_facts(found, {})
    assert (facts.own_vs_upstream, facts.own_vs_parent, facts.only_syncs) == (2, 0, True)


def test_an_unknown_parent_is_said() -> None:
    """Then only upstream is what the fork is held against."""
    found = own(forked(), {"refs/heads/main": "f1"}, Parentage(None, "some/parent"))
    assert found is not None
    facts = git_facts(found, {})
    assert (facts.own_vs_parent, facts.own, facts.parent) == (None, 4, "some/parent")


def test_a_branch_with_work_stands_for_a_fork_whose_main_branch_has_none() -> None:
    """Of several the one that was worked on last."""
    story = forked()
    story.commit("x0", "u2", author="me")
    story.commit("y0", "u2", author="me")
    refs = {"refs/heads/main": "u3", "refs/heads/old": "x0", "refs/heads/new": "y0"}
    found = own(story, refs)
    assert found is not None
    assert (found.branch, [commit.subject for commit in found.work]) == ("new", ["y0"])
    quiet = own(story, {"refs/heads/main": "u3", "refs/heads/b": "u2"})
    assert quiet is not None
    assert quiet.branch == "main"


def test_what_upstream_merged_is_upstreams() -> None:
    """A pull request that was squashed keeps its author and title."""
    story = Story()
    story.line("u0", author="Up")
    story.commit("f0", "u0", author="me", subject="add a kernel")
    story.commit("f1", "f0", author="me", subject="more")
    story.commit("u3", "u0", author="me", subject="add a kernel (#12345)")
    found = own(story, {"refs/heads/main": "f1"}, Parentage())
    assert found is not None
    assert [commit.subject for commit in found.work] == ["more"]


def test_a_rebased_patch_counts_once_and_for_whom_it_is() -> None:
    """The parent's patch on another base is still the parent's."""
    story = forked()
    story.rebased("q0", "p0", "u3")
    story.commit("g0", "q0", author="me")
    found = own(story, {"refs/heads/main": "g0"})
    assert found is not None
    assert [commit.subject for commit in found.work] == ["g0"]


def test_the_commits_correct_the_parent() -> None:
    """Most of it is another fork's: that one is what it is held against."""
    story = forked()
    graph, upstream = drawn(story)
    top = Elder("upstream", "up/repo", sha("u3"))
    others = [parent_of(graph, upstream)]
    found = own(story, {"refs/heads/main": "f1"}, Parentage(top, "up/repo", others))
    assert found is not None
    assert found.elder is others[0]
    assert len(found.work) == 2


def test_tags_of_people() -> None:
    """Not a build's, not upstream's, not the parent's."""
    story = forked()
    graph, upstream = drawn(story)
    theirs = parent_of(graph, upstream, tags={"refs/tags/v1": sha("p1")})
    tags = {"refs/tags/v1": "p1", "refs/tags/main-b12-0123456": "f1", "refs/tags/v0": "u1",
            "refs/tags/gone": "nowhere"}  # fmt: skip
    mine = {"refs/heads/main": "f1", **tags}
    found = own(story, mine, Parentage(theirs))
    assert found is not None
    assert found.human_tag == ""
    found = own(story, {**mine, "refs/tags/v2": "f0", "refs/tags/v3": "f1"}, Parentage(theirs))
    assert found is not None
    assert found.human_tag == "v3"


def test_what_is_not_in_the_graph_is_not_judged() -> None:
    """Doubt is not zero."""
    assert own(forked(), {"refs/heads/main": "elsewhere"}) is None
    assert own(forked(), {"refs/tags/v1": "f1"}) is None


def test_only_bots_and_only_papers() -> None:
    """A bot's patch is no person's; documents move no number."""
    story = forked()
    story.commit("b0", "p1", author="dependabot[bot]")
    found = own(story, {"refs/heads/main": "b0"})
    assert found is not None
    facts = git_facts(found, {sha("b0"): [".github/workflows/build.yml", "docs/x.md"]})
    assert (facts.only_bots, facts.only_papers, facts.own_authors) == (True, True, 0)
    facts = git_facts(found, {sha("b0"): ["docs/x.md", "src/llama.cpp"]})
    assert not facts.only_papers
    assert not git_facts(found, None).only_papers


def test_facts_are_bounded() -> None:
    """However many patches a fork brings."""
    story = forked()
    story.line(" ".join(f"w{n}" for n in range(LOOKED_INTO + 50)), on="p1", author="me")
    found = own(story, {"refs/heads/main": f"w{LOOKED_INTO + 49}"})
    assert found is not None
    hot = {commit.sha: ["tools/server/x.cpp"] for commit in found.work}
    facts = git_facts(found, hot, ["--x"] * 999)
    assert facts.hot_patches == LOOKED_INTO
    assert len(facts.subjects) == SUBJECTS
    assert len(facts.capabilities) == 50


@pytest.mark.parametrize(
    ("author", "bot"),
    [("dependabot[bot]", True), ("github-actions", True), ("pull[bot]", True),
     ("renovate[bot]", True), ("Robot Smith", False), ("abbott", False)],
)  # fmt: skip
def test_bots(author: str, bot: bool) -> None:
    """As their names say."""
    assert is_bot(author) is bot


@pytest.mark.parametrize(
    ("path", "paper"),
    [("README.md", True), ("docs/build.md", True), (".github/workflows/x.yml", True),
     ("a/b/README", True), ("LICENSE", True), (".gitignore", True), ("ci/run.sh", True),
     (".gitlab-ci.yml", True), ("src/llama.cpp", False), ("common/arg.cpp", False),
     ("CMakeLists.txt", False), ("docs.cpp", False), ("circle/x.cu", False)],
)  # fmt: skip
def test_papers(path: str, paper: bool) -> None:
    """Documents and how it is built elsewhere."""
    assert is_paper(path) is paper


def test_patches_without_a_file_are_no_papers() -> None:
    """An empty commit touches neither documents nor CI; where its files are not known, nothing is
    claimed of it."""
    found = own(forked(), {"refs/heads/main": "f1"})
    assert found is not None
    facts = git_facts(found, {commit.sha: () for commit in found.work})
    assert (facts.only_empty, facts.only_papers) == (True, False)
    assert not git_facts(found, None).only_empty
