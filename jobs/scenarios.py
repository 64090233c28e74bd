"""The shipped scenarios as data; a scenario's version changes whenever a number could."""

from __future__ import annotations

from dataclasses import dataclass

PROMPT_SPACE_INVADERS = (
    "Write a complete Space Invaders game as one HTML file. Use a canvas for drawing, the keyboard "
    "for steering, a score, three lives and rising waves. Explain nothing, only write the file."
)


@dataclass(frozen=True)
class Scenario:
    """Prompt, length and sampling of one kind of request; each run must predict `tokens`."""

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

    @property
    def key(self) -> str:
        """Name and version: what a series depends on."""
        return f"{self.name}.v{self.version}"


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("decode-128", 1, "chat", PROMPT_SPACE_INVADERS, tokens=128, runs=5, boots=3),
        Scenario(
            "completion-128", 1, "completion", PROMPT_SPACE_INVADERS, tokens=128, runs=5, boots=3
        ),
        Scenario("decode-800", 1, "chat", PROMPT_SPACE_INVADERS, tokens=800, runs=10, boots=2),
    )
}
DEFAULT_SCENARIO = "decode-128"
