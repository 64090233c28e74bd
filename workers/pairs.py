"""What two arms that were measured in turns say of each other; it measures nothing itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.compare import BootRuns, Standing, judge
from jobs.model import Validity

FIRST, SECOND = "A", "B"


def compared_pairs(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each scenario: the pairs of rounds, A's speed beside B's, and what they mean together.

    Each result has `arm`, `scenario`, `validity`, `reason` and `rounds`, its speed by round.
    """
    found = []
    for scenario in dict.fromkeys(each["scenario"] for each in results):
        arms = {each["arm"]: each for each in results if each["scenario"] == scenario}
        if {FIRST, SECOND} <= set(arms):
            found.append(_pair(scenario, arms[FIRST], arms[SECOND]))
    return found


def _pair(
    scenario: str, candidate: Mapping[str, Any], baseline: Mapping[str, Any]
) -> dict[str, Any]:
    both = sorted(set(candidate["rounds"]) & set(baseline["rounds"]))
    unsound = [each for each in (candidate, baseline) if each["validity"] != Validity.OK]
    if unsound or not both:
        why = unsound[0]["reason"] if unsound else "no round has both"
        return {
            "scenario": scenario,
            "rounds": [],
            "kind": "invalid",
            "sentence": f"not comparable: {why}",
        }
    verdict = judge(
        [BootRuns(number, (candidate["rounds"][number],)) for number in both],
        standing=Standing(Validity.OK),
        baseline=[baseline["rounds"][number] for number in both],
        baseline_label=SECOND,
        history=[],
    )
    return {
        "scenario": scenario,
        "rounds": [
            {
                "round": number,
                FIRST: candidate["rounds"][number],
                SECOND: baseline["rounds"][number],
                "ratio": candidate["rounds"][number] / baseline["rounds"][number],
            }
            for number in both
        ],
        "kind": verdict.kind,
        "effect": verdict.effect,
        "low": verdict.low,
        "high": verdict.high,
        "sentence": f"A {verdict.sentence}",
    }
