"""What a watch list says of planning, and what it may take from what is known here."""

from __future__ import annotations

import pytest
from support.watch_lists import GOOD, refused

from jobs.errors import UsageError
from scout.known import Known
from scout.reading import parse

PLANNING = """
[[rig]]
name = "big"
memory_gib = 24

[[rule]]
on = "drafter_published"
do = "bench"
rigs = ["big"]
lane = "backfill"
priority = 2

[[rule]]
name = "quiet"
on = "fork_pushed"
do = "nothing"

[[budget]]
rig = "big"
hours_per_day = 6

[[budget]]
source = "hub:spiritbuun"
hours_per_day = 1.5
"""


def test_rules_rigs_and_budgets_are_read() -> None:
    """A rule without a name is called by what it says."""
    watch = parse(GOOD + PLANNING, "list.toml")
    assert [rule.called for rule in watch.rules] == ["drafter_published:bench", "quiet"]
    assert [budget.called for budget in watch.budgets] == ["rig:big", "hub:spiritbuun"]
    assert watch.rigs[0].memory_gib == 24


@pytest.mark.parametrize(
    ("old", "new", "says", "next_step"),
    [
        ('"drafter_published"', '"drafter_publishd"', "kind of event", "drafter_published"),
        ('do = "bench"', 'do = "benches"', "rule.do cannot be 'benches'", "bench"),
        ("rigs = ", "rig = ", "unknown key 'rig'", "rigs"),
        ('rigs = ["big"]', 'rigs = ["bgi"]', "unknown rig 'bgi'", "big"),
        ('"backfill"', '"on_demand"', "rule.lane cannot be 'on_demand'", ""),
        ("priority = 2", "priority = 99", "rule.priority cannot be 99", "from -48 to 48"),
        ('"quiet"', '"default:release"', "a name of the shipped rules", "does not begin with"),
        ('rigs = ["big"]', 'rigs = ["nosuch"]', "unknown rig 'nosuch'", "known are big, cpu"),
        ('rigs = ["big"]', 'engines = ["forc"]', "unknown engine 'forc'", "fork"),
        ('rigs = ["big"]', 'stacks = ["x"]', "unknown stack 'x'", "tiny-fork"),
        ('rigs = ["big"]', 'model_classes = ["nosuch"]', "unknown model class 'nosuch'", "tiny"),
        ('"quiet"', '"drafter_published:bench"', "a second rule", "a name of its own"),
        ('rig = "big"', 'rig = "bigg"', "unknown rig 'bigg'", "big"),
        ('rig = "big"', "", "for a rig or for a source", "source ="),
        ('"hub:spiritbuun"', '"everybody"', "engine:NAME or hub:AUTHOR", "engine:buun"),
        ("hours_per_day = 6", "hours_per_day = -1", "hours_per_day", "from 0 to"),
        ("hours_per_day = 6", "hours_per_day = 25", "25 hours a day", "write 24 at most"),
        ("hours_per_day = 1.5", "hours_per_day = 73", "more than 3 rigs can have", "write 72"),
        ("hours_per_day = 6", "hours_per_day = true", "valid number", ""),
        ("hours_per_day = 6", 'hours_per_day = "5"', "valid number", ""),
        ("hours_per_day = 6", "hours_per_day = nan", "hours_per_day", ""),
        ('"hub:spiritbuun"', '"engine:nosuch"', "unknown engine 'nosuch'", "fork"),
        ('rig = "big"\nhours', 'rig = "nosuch"\nhours', "unknown rig 'nosuch'", "olares-5090m"),
        ("memory_gib = 24", "memory_gib = 1e-300", "memory_gib cannot be", "from 0.25 to 4096"),
        ("memory_gib = 24", "memory_gib = 0", "memory_gib", ""),
    ],
)
def test_a_wrong_word_of_planning_is_named(old, new, says, next_step) -> None:
    """With the line and the nearest right word."""
    assert old in PLANNING
    with pytest.raises(UsageError) as caught:
        parse(GOOD + PLANNING.replace(old, new, 1), "list.toml")
    assert "list.toml, line " in caught.value.message
    assert says in caught.value.message
    assert next_step in caught.value.message + caught.value.advice


ELSEWHERE = """
[[stack]]
name = "mine"
engine = "buun"
target = "my-weights"

[[golden]]
rig = "far"
stack = "tiny-cpu"
revision = "v1"

[[rule]]
on = "release"
do = "nothing"
engines = ["buun"]
stacks = ["tiny-cpu"]
rigs = ["far"]
model_classes = ["gemma"]

[[budget]]
source = "engine:buun"
hours_per_day = 2
"""
HERE = Known(
    parents={"buun": None},
    built={"buun": frozenset({"far"})},
    models={"my-weights": "target"},
    stacks={"tiny-cpu": "buun"},
    rigs=frozenset({"far"}),
    model_classes=frozenset({"gemma"}),
)


def test_a_list_builds_on_what_is_known_here() -> None:
    """Engines, weights, stacks, rigs and classes of other lists need no entry of their own."""
    watch = parse(ELSEWHERE, "list.toml", HERE)
    assert watch.not_yet(HERE) == []
    assert [golden.stack for golden in watch.goldens] == ["tiny-cpu"]
    said = refused(ELSEWHERE).detail
    for word in ("engine 'buun'", "model 'my-weights'", "stack 'tiny-cpu'", "rig 'far'", "'gemma'"):
        assert f"unknown {word}" in said or f"class {word}" in said


def test_a_golden_of_a_known_stack_needs_a_rig_that_builds_it() -> None:
    """As one of the list does."""
    wrong = ELSEWHERE.replace('rig = "far"\nstack', 'rig = "near"\nstack')
    with pytest.raises(UsageError, match="buun is not built for rig 'near'") as caught:
        parse(wrong, "list.toml", HERE)
    assert "far" in caught.value.advice
