"""Geometry of the drawn chain of forks: where boxes and lines lie, what they say; no markup."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.store.shown_forks import ShownFork
from web import words

CARD_WIDTH, CARD_HEIGHT = 236, 54
INDENT, GAP = 30, 34
MARGIN = 6
STUB = 15
"""How far right of a box's left edge the line to its forks leaves it."""
NAME_CELLS, LINE_CELLS = 22, 32
PADDING = 12
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
MOST_DRAWN = 60
"""More boxes are no picture any more; the table has them all."""


@dataclass(frozen=True)
class Node:
    """A repository: two lines of text in a box."""

    x: int
    y: int
    name: str
    line: str
    is_shown: bool
    width: int = CARD_WIDTH
    height: int = CARD_HEIGHT
    text_width: int = CARD_WIDTH - 2 * PADDING


@dataclass(frozen=True)
class Edge:
    """From a parent's box down and right into its fork's, and how far apart they are."""

    x: int
    top: int
    bottom: int
    right: int
    text_x: int
    text_y: int
    text: str


@dataclass(frozen=True)
class LineageFigure:
    """A chain as an indented tree, and the same in words."""

    width: int
    height: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int
    words: str


def lineage_figure(chain: Sequence[ShownFork], shown: str) -> LineageFigure:
    """The chain, elders first; beyond `MOST_DRAWN` the shown one and its line stay."""
    drawn = _drawn(chain, shown)
    columns: dict[str, int] = {}
    nodes: dict[str, Node] = {}
    edges: list[Edge] = []
    for row, fork in enumerate(drawn):
        above = fork.parent if fork.parent in columns else None
        column = 0 if above is None else columns[above] + 1
        columns[fork.engine] = column
        x, y = MARGIN + column * INDENT, MARGIN + row * (CARD_HEIGHT + GAP)
        nodes[fork.engine] = Node(
            x, y, cut(fork.engine, NAME_CELLS), cut(_line(fork), LINE_CELLS), fork.engine == shown
        )
        if above is not None:
            edges.append(_edge(nodes[above], x, y, fork))
    return LineageFigure(
        width=MARGIN * 2 + max(columns.values(), default=0) * INDENT + CARD_WIDTH,
        height=max(MARGIN * 2 + len(drawn) * (CARD_HEIGHT + GAP) - GAP, 2 * MARGIN),
        nodes=tuple(nodes.values()),
        edges=tuple(edges),
        left_out=len(chain) - len(drawn),
        words=" ".join(_sentence(fork) for fork in drawn),
    )


def cut(text: str, cells: int) -> str:
    """The text as it fits into so many cells; what is invisible goes, wide signs take two."""
    seen = [sign for sign in text[: cells * 8] if unicodedata.category(sign) not in _INVISIBLE][
        : cells * 3
    ]
    if sum(map(_cells, seen)) <= cells and len(text) <= cells * 8:
        return "".join(seen)
    kept, used = "", 1
    for sign in seen:
        used += _cells(sign)
        if used > cells:
            break
        kept += sign
    return f"{kept}\N{HORIZONTAL ELLIPSIS}"


def _cells(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1


def _drawn(chain: Sequence[ShownFork], shown: str) -> list[ShownFork]:
    if len(chain) <= MOST_DRAWN:
        return list(chain)
    parents = {fork.engine: fork.parent for fork in chain}
    line: list[str] = []
    at: str | None = shown
    while at is not None and at not in line:
        line.append(at)
        at = parents.get(at)
    keep = set(line[: MOST_DRAWN - 1]) | {line[-1]}
    for fork in chain:
        if len(keep) == MOST_DRAWN:
            break
        keep.add(fork.engine)
    return [fork for fork in chain if fork.engine in keep]


def _edge(above: Node, x: int, y: int, fork: ShownFork) -> Edge:
    distance = fork.standing.from_parent if fork.standing else None
    return Edge(
        x=above.x + STUB,
        top=above.y + CARD_HEIGHT,
        bottom=y + CARD_HEIGHT // 2,
        right=x,
        text_x=x + 4,
        text_y=y - 8,
        text=words.distance(distance),
    )


def _line(fork: ShownFork) -> str:
    if fork.standing is None:
        return "not seen yet"
    if fork.standing.from_upstream is None:
        return f"{fork.standing.branch} {fork.standing.head[:9]}"
    return words.own_patches(fork.standing)


def _sentence(fork: ShownFork) -> str:
    name = cut(fork.engine, NAME_CELLS)
    if fork.standing is None:
        return f"{name} was not seen yet."
    if fork.standing.from_upstream is None or fork.parent is None:
        return f"{name} is the upstream of its chain."
    apart = words.apart(fork.standing.from_parent, fork.parent)
    return f"{name} is under {cut(fork.parent, NAME_CELLS)}: {apart}, {_line(fork)}."
