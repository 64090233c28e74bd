"""Thins a series of moments to a curve that is small enough to keep; it invents no point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

MOST_POINTS = 32

Point = TypeVar("Point", bound=Sequence[Any])


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most `most` of the points, evenly spread, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    return [points[round(at * (len(points) - 1) / (most - 1))] for at in range(most)]
