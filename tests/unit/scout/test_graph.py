"""Walks over a commit graph, against slow and obvious ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.graphs import Story, sha

from jobs.git_history import CommitFacts
from scout.graph import Graph, patches, triples


@st.composite
def histories(draw: st.DrawFn) -> list[CommitFacts]:
    """Commits children first, each with up to two older parents, times in any order."""
    count = draw(st.integers(1, 12))
    rows = []
    for n in range(count):
        parents = draw(st.lists(st.integers(0, n - 1), max_size=2, unique=True)) if n else []
        at = draw(st.integers(0, 99))
        rows.append(CommitFacts(str(n), tuple(map(str, parents)), at, at, "A", str(n)))
    return rows[::-1]


def ancestors(rows: list[CommitFacts], tip: str) -> set[str]:
    by_sha = {row.sha: row for row in rows}
    return {tip}.union(*(ancestors(rows, parent) for parent in by_sha[tip].parents))


@given(histories(), st.data())
def test_distances_are_those_of_sets(rows: list[CommitFacts], data: st.DataObject) -> None:
    """Ahead, behind and merge base agree with the plain definition."""
    head, base = (data.draw(st.sampled_from([row.sha for row in rows])) for _ in range(2))
    graph = Graph(rows)
    reach = graph.reach([base])
    mine, theirs = ancestors(rows, head), ancestors(rows, base)
    found = graph.distance(head, reach, sum(reach))
    counts = (len(mine - theirs), len(theirs - mine)) if mine & theirs else (None, None)
    assert (found.ahead, found.behind) == counts
    best = {
        one
        for one in mine & theirs
        if not any(one in ancestors(rows, other) - {other} for other in mine & theirs)
    }
    assert (found.merge_base in best) if best else found.merge_base is None
    assert {commit.sha for commit in graph.beyond([head], reach)} == mine - theirs


@given(histories(), st.data())
def test_holders_stand_on_the_commit(rows: list[CommitFacts], data: st.DataObject) -> None:
    """Exactly the commits whose history has it, itself included."""
    wanted = data.draw(st.sampled_from([row.sha for row in rows]))
    expected = {row.sha for row in rows if wanted in ancestors(rows, row.sha)}
    assert Graph(rows).containing(wanted, rows) == expected


def test_an_unknown_commit_counts_as_nothing() -> None:
    """A tip that was never fetched changes no walk."""
    story = Story()
    story.line("u0 u1", author="Up")
    graph = story.graph()
    assert not graph.knows(sha("x"))
    assert sum(graph.reach([sha("x"), sha("u1")])) == 2
    assert graph.distance(sha("x"), graph.reach([sha("u1")]), 2).merge_base is None


def test_a_rebase_keeps_the_triple_and_a_pull_request_is_no_patch() -> None:
    """Author, author's time and subject name a patch; merges and upstream's own are none."""
    story = Story()
    story.line("u0 u1", author="Up")
    story.line("p", on="u0")
    story.rebased("q", "p", "u1")
    story.commit("m", "q", "u1")
    graph = story.graph()
    mine = graph.beyond([sha("m"), sha("p")], graph.reach([]))
    assert [commit.subject for commit in patches(mine)] == ["p", "p"]
    assert len(triples(patches(mine))) == 1


def test_a_cut_history_ends_where_it_is_cut() -> None:
    """Parents outside the graph are passed over."""
    graph = Graph(
        [CommitFacts("b", ("missing", "a"), 1, 1, "A", "b"), CommitFacts("a", (), 0, 0, "A", "a")]
    )
    assert graph.first_parents("b") == ["b"]
    assert sum(graph.reach(["b"])) == 2
