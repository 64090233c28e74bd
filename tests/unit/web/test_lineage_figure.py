"""Where the boxes of a chain lie, and its words."""

from __future__ import annotations

from itertools import pairwise

from support.fork_values import fork, standing

from jobs.store.shown_forks import ShownDistance
from web.lineage_figure import (
    CARD_HEIGHT,
    LINE_CELLS,
    MOST_DRAWN,
    NAME_CELLS,
    cut,
    lineage_figure,
)

UPSTREAM = fork("upstream")
TURBO = fork("turboquant", "upstream")
BUUN = fork("buun", "turboquant")
BEE = fork("beellama", "buun")
CHAIN = (UPSTREAM, TURBO, BUUN, BEE)


def _line(length: int):
    return [UPSTREAM, *(fork(f"f{n}", f"f{n - 1}" if n else "upstream") for n in range(length))]


def test_upstream_is_at_the_top_and_each_fork_under_its_parent() -> None:
    """Lower and further right than the parent; the one the page is about is marked."""
    figure = lineage_figure(CHAIN, "buun")
    assert [node.name for node in figure.nodes] == ["upstream", "turboquant", "buun", "beellama"]
    assert [node.is_shown for node in figure.nodes] == [False, False, True, False]
    for above, node in pairwise(figure.nodes):
        assert node.y >= above.y + CARD_HEIGHT
        assert node.x > above.x


def test_everything_lies_inside_and_no_box_covers_another() -> None:
    """Also with forty members, in one line or all below one parent."""
    wide = [UPSTREAM, *(fork(f"f{n}", "upstream") for n in range(39))]
    for chain in (CHAIN, _line(39), wide):
        figure = lineage_figure(chain, "f1")
        assert len(figure.nodes) == len(chain)
        assert figure.left_out == 0
        rows = [node.y for node in figure.nodes]
        assert all(lower - upper > CARD_HEIGHT for upper, lower in pairwise(rows))
        assert all(node.x + node.width <= figure.width for node in figure.nodes)
        assert rows[-1] + CARD_HEIGHT <= figure.height


def test_a_line_tells_how_far_apart_and_a_box_what_is_its_own() -> None:
    """Against the parent, in figures; the same stands in words for those who do not see it."""
    figure = lineage_figure(CHAIN, "buun")
    assert {edge.text for edge in figure.edges} == {"+41 \N{MINUS SIGN}14"}
    assert figure.nodes[3].line == "300 own patches by 17 authors"
    assert figure.nodes[0].line.startswith("main ")
    assert "beellama is under buun: 41 commits ahead of buun and 14 behind" in figure.words


def test_a_line_leads_from_the_parents_box_to_the_forks() -> None:
    """It begins at the parent's lower edge and ends at the fork's left edge."""
    figure = lineage_figure(CHAIN, "buun")
    for edge, above, node in zip(figure.edges, figure.nodes, figure.nodes[1:], strict=False):
        assert above.x < edge.x < node.x == edge.right
        assert edge.top == above.y + CARD_HEIGHT
        assert node.y < edge.bottom < node.y + CARD_HEIGHT


def test_what_is_not_known_is_not_drawn_as_zero() -> None:
    """An engine not seen yet, a fork without a common commit, a parent that is not there."""
    unseen = fork("unseen", "upstream", standing=None)
    apart = standing(from_parent=ShownDistance(5, 9, None))
    figure = lineage_figure([UPSTREAM, unseen, fork("x", "upstream", standing=apart)], "unseen")
    assert [edge.text for edge in figure.edges] == ["not measured yet", "nothing in common"]
    assert figure.nodes[1].line == "not seen yet"
    assert "unseen was not seen yet." in figure.words
    orphan = lineage_figure([fork("orphan", "nobody")], "orphan")
    assert (len(orphan.nodes), orphan.edges) == (1, ())
    assert lineage_figure([], "nobody").nodes == ()


def test_a_chain_too_long_to_draw_keeps_the_shown_one_and_its_upstream() -> None:
    """The picture is bounded, and says how many it leaves out."""
    many = [UPSTREAM, *(fork(f"f{n:03}", "upstream") for n in range(100))]
    figure = lineage_figure(many, "f099")
    assert len(figure.nodes) == MOST_DRAWN
    assert figure.left_out == 41
    assert figure.nodes[0].name == "upstream"
    assert figure.nodes[-1].is_shown
    deep = lineage_figure(_line(200), "f199")
    assert len(deep.nodes) == MOST_DRAWN
    assert deep.nodes[-1].is_shown


def test_names_are_cut_to_their_box() -> None:
    """A hundred letters, wide letters, marks that pile up and marks that reorder."""
    assert cut("n" * 100, NAME_CELLS) == "n" * (NAME_CELLS - 1) + "…"
    assert cut("n" * NAME_CELLS, NAME_CELLS) == "n" * NAME_CELLS
    assert len(cut("\u6f22" * 100, NAME_CELLS)) <= NAME_CELLS // 2 + 1
    assert len(cut("a" + "\u0301" * 100_000, LINE_CELLS)) < 200
    assert cut("safe\u202e\x1b\x00txt\u2066", NAME_CELLS) == "safetxt"
    assert cut("\u05e9\u05dc\u05d5\u05dd", NAME_CELLS) == "\u05e9\u05dc\u05d5\u05dd"
