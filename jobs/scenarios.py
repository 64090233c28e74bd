"""The shipped scenarios as data; a scenario's version changes whenever a number could."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from jobs import prompts
from jobs.errors import UsageError, did_you_mean

DIGEST_LENGTH = 12
DEPTH = re.compile(r"[1-9][0-9]{0,6}", re.ASCII)
AT = "@"
"""Stands between a name and a filled depth."""

UNMEASURED = ("name", "runs", "boots", "filled_tokens", "depths", "own")
"""Fields that change no number of a run, or that stand in the key themselves."""


@dataclass(frozen=True)
class Scenario:
    """Prompt, length and sampling of one kind of request; each run must predict `tokens`.

    With `filled_tokens` the context really holds so many before the first is predicted, whatever
    is allocated. `depths` are the rungs of a ladder: each is measured as a series of its own.
    An answer to a `picture` must hold the word `names`. `own` is one that a user wrote.
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
    thinking: bool = False
    picture: str = ""
    names: str = ""
    own: bool = False

    @property
    def digest(self) -> str:
        """What its numbers depend on, whatever it is called and however often it is run."""
        values = {key: value for key, value in asdict(self).items() if key not in UNMEASURED}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    @property
    def key(self) -> str:
        """What a series depends on: name, version and filled depth, of an own one its digest."""
        depth = f"@{self.filled_tokens}" if self.filled_tokens else ""
        digest = f"-{self.digest[:DIGEST_LENGTH]}" if self.own else ""
        return f"{self.name}.v{self.version}{digest}{depth}"

    @property
    def word(self) -> str:
        """What jobs and negatives call it: its name, and with that the depth where it is a rung.

        `rung_of` finds it again by that.
        """
        if not self.filled_tokens or (not self.own and self.name in SCENARIOS):
            return self.name
        return f"{self.name}{AT}{self.filled_tokens}"

    @property
    def context_tokens(self) -> int:
        """The least context that has room for prompt and answer, as far as it is known."""
        return self.filled_tokens + self.tokens

    def salt(self, run: int) -> str:
        """What makes the prompt of one run unlike all others, and the same for every engine."""
        return f"{self.name}.v{self.version}:{run}"

    def prompt_of(self, run: int) -> str:
        """The salted prompt: no server can have it in a cache from another run."""
        return f"[{self.salt(run)}]\n{self.prompt}"


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("decode-128", 2, "chat", prompts.SPACE_INVADERS, tokens=128, runs=5, boots=3),
        Scenario(
            "completion-128", 2, "completion", prompts.SPACE_INVADERS, tokens=128, runs=5, boots=3
        ),
        Scenario("decode-800", 2, "chat", prompts.SPACE_INVADERS, tokens=800, runs=10, boots=2),
        Scenario("code", 2, "chat", prompts.CODE, tokens=512, runs=5, boots=3, temperature=0.2),
        Scenario("prose", 2, "chat", prompts.PROSE, tokens=512, runs=5, boots=3),
        Scenario(
            "tool-replay",
            1,
            "chat",
            prompts.tool_replay(),
            tokens=512,
            runs=5,
            boots=3,
            temperature=0.2,
        ),
        Scenario("prefill", 1, "filled", "", tokens=16, runs=5, boots=2, filled_tokens=4096),
        Scenario("thinking-off", 1, "chat", prompts.RIDDLE, tokens=512, runs=5, boots=3),
        Scenario(
            "thinking-on", 1, "chat", prompts.RIDDLE, tokens=512, runs=5, boots=3, thinking=True
        ),
        Scenario(
            "vision",
            1,
            "chat",
            prompts.PICTURE,
            tokens=128,
            runs=5,
            boots=2,
            picture=prompts.GRADIENT,
            names="red",
        ),
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
"""Each becomes several series; a job of the queue measures one rung."""
SHIPPED: dict[str, Scenario] = SCENARIOS | LADDERS
DEFAULT_SCENARIO = "decode-128"


def scenario_named(name: str, own: Mapping[str, Scenario] | None = None) -> Scenario:
    """The scenario, ladder or rung of that name, shipped or own; an unknown one is a mistake."""
    known = SHIPPED | dict(own or {})
    found = rung_of(name, known)
    if found is None:
        raise UsageError(
            f"unknown scenario {name[:80]!r}",
            advice=did_you_mean(name, known, listed_by="forkscout scenarios"),
        )
    return found


def rung_of(word: str, known: Mapping[str, Scenario]) -> Scenario | None:
    """What a word stands for: a scenario, a ladder, or one rung of it (`ladder@32768`)."""
    name, at, _ = word.partition(AT)
    found = known.get(name)
    if found is None or not at:
        return found
    depth = depth_of(word)
    if found.depths and depth:
        return _rung(found, depth)
    return found if depth and found.filled_tokens == depth else None


def is_as_shipped(scenario: Scenario) -> bool:
    """Whether one that calls itself shipped asks what the shipped one of its version asks."""
    shipped = SHIPPED.get(scenario.name)
    if shipped is None:
        return False
    return scenario.version != shipped.version or scenario.digest == shipped.digest


def rungs(scenario: Scenario, *, context_tokens: int, depths: Sequence[int] = ()) -> list[Scenario]:
    """What is measured in this context: the scenario itself, or each rung that has room.

    `depths` that were asked for must all have room; those a ladder ships with are left out.
    """
    if not scenario.depths:
        if scenario.context_tokens > context_tokens:
            raise _no_room(scenario, context_tokens)
        return [scenario]
    steps = [_rung(scenario, depth) for depth in dict.fromkeys(depths)]
    for step in steps:
        if step.filled_tokens < 1 or step.context_tokens > context_tokens:
            raise _no_room(step, context_tokens)
    if not steps:
        steps = [step for step in all_rungs(scenario) if step.context_tokens <= context_tokens]
    if not steps:
        raise _no_room(replace(scenario, filled_tokens=min(scenario.depths)), context_tokens)
    return sorted(steps, key=lambda step: step.filled_tokens)


def depth_of(key: str) -> int:
    """The filled depth that a scenario's key states; 0 where it states none."""
    digits = key.partition(AT)[2]
    return int(digits) if DEPTH.fullmatch(digits) else 0


def all_rungs(scenario: Scenario) -> list[Scenario]:
    """Each rung of a ladder, the shallowest first; of any other scenario itself."""
    return [_rung(scenario, depth) for depth in sorted(scenario.depths)] or [scenario]


def one_series(scenario: Scenario) -> Scenario:
    """The scenario, unless it is a whole ladder, which is several series."""
    if scenario.depths:
        raise UsageError(
            f"{scenario.name} is a series for each depth",
            advice=f"Name one: {scenario.name}{AT}{min(scenario.depths)}",
        )
    return scenario


def _rung(ladder: Scenario, depth: int) -> Scenario:
    return replace(ladder, filled_tokens=depth, depths=())


def _no_room(scenario: Scenario, context_tokens: int) -> UsageError:
    return UsageError(
        f"scenario {scenario.key} fills {scenario.filled_tokens} tokens and predicts "
        f"{scenario.tokens}, the context has {context_tokens}",
        advice="Give a larger --context or a smaller --depth.",
    )
