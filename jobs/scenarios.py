"""The shipped scenarios as data; a scenario's version changes whenever a number could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobs.errors import UsageError, did_you_mean

PROMPT_SPACE_INVADERS = (
    "Write a complete Space Invaders game as one HTML file. Use a canvas for drawing, the keyboard "
    "for steering, a score, three lives and rising waves. Explain nothing, only write the file."
)
PROMPT_CODE = (
    "Write a Python module with a thread-safe cache that forgets by age and by size, with type "
    "hints and tests for each method. Explain nothing, only write the file."
)
PROMPT_PROSE = (
    "Tell the story of a lighthouse keeper who finds a letter in a bottle, in plain prose without "
    "headings, from the first storm of autumn to the first warm day of spring."
)


@dataclass(frozen=True)
class Scenario:
    """Prompt, length and sampling of one kind of request; each run must predict `tokens`.

    With `filled_tokens` the context really holds so many before the first is predicted, whatever
    is allocated. `depths` are the rungs of a ladder: each is measured as a series of its own.
    """

    name: str
    version: int
    endpoint: str
    prompt: str
    tokens: int
    runs: int
    boots: int
    temperature: float = 0.6
    top_k: int = 20
    top_p: float = 0.95
    min_p: float = 0.0
    seed: int = 20260428
    filled_tokens: int = 0
    depths: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """Name, version and filled depth: what a series depends on."""
        depth = f"@{self.filled_tokens}" if self.filled_tokens else ""
        return f"{self.name}.v{self.version}{depth}"

    @property
    def context_tokens(self) -> int:
        """The least context that has room for prompt and answer, as far as it is known."""
        return self.filled_tokens + self.tokens


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("decode-128", 1, "chat", PROMPT_SPACE_INVADERS, tokens=128, runs=5, boots=3),
        Scenario(
            "completion-128", 1, "completion", PROMPT_SPACE_INVADERS, tokens=128, runs=5, boots=3
        ),
        Scenario("decode-800", 1, "chat", PROMPT_SPACE_INVADERS, tokens=800, runs=10, boots=2),
        Scenario("code", 1, "chat", PROMPT_CODE, tokens=512, runs=5, boots=3, temperature=0.2),
        Scenario("prose", 1, "chat", PROMPT_PROSE, tokens=512, runs=5, boots=3),
        Scenario("prefill", 1, "filled", "", tokens=16, runs=5, boots=2, filled_tokens=4096),
    )
}
LADDERS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "ladder",
            1,
            "filled",
            "",
            tokens=128,
            runs=2,
            boots=2,
            depths=(4096, 32_768, 65_536, 131_072, 260_000),
        ),
    )
}
"""Measured by the offline bench only: a job of the queue is one series, a ladder is several."""
DEFAULT_SCENARIO = "decode-128"


def scenario_named(name: str) -> Scenario:
    """The shipped scenario or ladder of that name; an unknown one is the caller's mistake."""
    known = SCENARIOS | LADDERS
    try:
        return known[name]
    except KeyError:
        raise UsageError(
            f"unknown scenario {name[:80]!r}", advice=did_you_mean(name, known)
        ) from None


def rungs(scenario: Scenario, *, context_tokens: int, depths: Sequence[int] = ()) -> list[Scenario]:
    """What is measured in this context: the scenario itself, or each rung that has room.

    `depths` that were asked for must all have room; those a ladder ships with are left out.
    """
    if not scenario.depths:
        if scenario.context_tokens > context_tokens:
            raise _no_room(scenario, context_tokens)
        return [scenario]
    steps = [replace(scenario, filled_tokens=depth, depths=()) for depth in depths]
    for step in steps:
        if step.filled_tokens < 1 or step.context_tokens > context_tokens:
            raise _no_room(step, context_tokens)
    if not steps:
        shipped = [replace(scenario, filled_tokens=d, depths=()) for d in scenario.depths]
        steps = [step for step in shipped if step.context_tokens <= context_tokens]
    if not steps:
        raise _no_room(replace(scenario, filled_tokens=min(scenario.depths)), context_tokens)
    return sorted(steps, key=lambda step: step.filled_tokens)


def _no_room(scenario: Scenario, context_tokens: int) -> UsageError:
    return UsageError(
        f"scenario {scenario.key} fills {scenario.filled_tokens} tokens and predicts "
        f"{scenario.tokens}, the context has {context_tokens}",
        advice="Give a larger --context or a smaller --depth.",
    )
