"""How a look by hand is told: one cause once."""

from __future__ import annotations

from scout.glance import Glance
from scout.watch import Summary, Trouble


def test_a_repository_of_two_engines_fails_once() -> None:
    """Both are named; another failure stays another."""
    gone = "o/n is out of reach"
    found = Glance(
        Summary(
            troubles=(
                Trouble("a", gone, "look at the network"),
                Trouble("b", gone, "look at the network"),
                Trouble("c", "something else"),
            )
        )
    )
    assert [(each["engine"], each["message"]) for each in found.troubles] == [
        ("a, b", gone),
        ("c", "something else"),
    ]
