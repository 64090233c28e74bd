"""Scenarios that a watch list writes itself: known to its stacks and rules, refused where wrong."""

from __future__ import annotations

import pytest

from jobs.errors import UsageError
from scout.reading import parse

ENGINE = """
[[engine]]
name = "wheels"
family = "xllamacpp"
package = "xllamacpp"
trust = "package"
[[engine.build]]
rig = "cpu"
via = "wheel"

[[model]]
name = "gemma:q4"
package = "gemma"
version = "1.0.0"
sha256 = "%s"
model_class = "gemma"
""" % ("a" * 64)
STACK = """
[[stack]]
name = "gemma-cpu"
engine = "wheels"
target = "gemma:q4"
scenarios = ["haiku", "code"]
"""
OWN = """
[[scenario]]
name = "haiku"
version = 1
prompt = "Write forty haiku."
tokens = 256
"""


def test_a_stack_may_ask_a_scenario_of_its_list():
    """The list keeps its words; a rule may name it too."""
    rule = '[[rule]]\non = "fork_pushed"\ndo = "bench"\nscenarios = ["haiku"]\n'
    found = parse(ENGINE + STACK + OWN + rule, "w.toml")
    assert found.own_scenarios["haiku"]["tokens"] == 256


def test_a_stack_may_ask_a_ladder_shipped_or_own():
    """Nothing of it comes later any more; a rule may name it."""
    own = OWN.replace('prompt = "Write forty haiku."', 'endpoint = "filled"\ndepths = [300, 900]')
    stack = STACK.replace('"code"', '"ladder"')
    rule = '[[rule]]\non = "fork_pushed"\ndo = "bench"\nscenarios = ["ladder"]\n'
    found = parse(ENGINE + stack + own + rule, "w.toml")
    assert found.stacks[0].scenarios == ("haiku", "ladder")
    assert not [note for note in found.not_yet() if "ladder" in note]


def lines(text: str) -> int:
    return text.count("\n")


@pytest.mark.parametrize(
    ("text", "line", "says", "advice"),
    [
        (ENGINE + STACK, lines(ENGINE) + 6, "unknown scenario 'haiku'", "known are"),
        (
            ENGINE + STACK + OWN.replace("haiku", "haikus"),
            0,
            "unknown scenario 'haiku'",
            "'haikus'",
        ),
        (OWN.replace("256", "0"), 6, "tokens cannot be '0'", "2 to 65536"),
        (OWN + "temprature = 1\n", 7, "unknown key 'temprature'", "'temperature'"),
        (OWN + OWN, 9, "a second scenario 'haiku'", "keep one"),
        (OWN.replace("haiku", "code"), 3, "'code' is a shipped scenario", "own"),
        (
            ENGINE + STACK.replace("haiku", "vision"),
            lines(ENGINE) + 6,
            "shows a picture and the stack has no mmproj",
            "mmproj",
        ),
    ],
)
def test_what_cannot_be_asked_is_named_with_its_line(text, line, says, advice):
    """As every word of a list is."""
    with pytest.raises(UsageError) as caught:
        parse(text, "w.toml")
    assert says in caught.value.detail
    assert not line or f"w.toml, line {line}:" in caught.value.detail
    assert advice in caught.value.advice


def test_a_mistake_elsewhere_makes_no_scenario_unknown():
    """Two mistakes are two, not three."""
    with pytest.raises(UsageError) as caught:
        parse(ENGINE.replace("1.0.0", "x y") + STACK + OWN, "w.toml")
    assert "unknown scenario" not in caught.value.detail
