"""Request bodies in llama-server's dialect; leaves no sampling field to a server's default."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from jobs import prompts
from jobs.errors import UsageError
from jobs.model import Request
from jobs.scenarios import Scenario

RANDOM_SEED = 2**32 - 1  # this seed means "choose one" to the server
SAMPLER_ORDER = (
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """A complete sampling set: no field has a default, so none can be forgotten."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    top_n_sigma: float
    seed: int
    repeat_penalty: float
    repeat_last_n: int
    presence_penalty: float
    frequency_penalty: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    xtc_probability: float
    xtc_threshold: float
    dynatemp_range: float
    dynatemp_exponent: float
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value):
                raise UsageError(
                    f"sampling field {entry.name} is {value!r}",
                    advice="Give a number for every sampling field of the scenario.",
                )
        if not 0 <= self.seed < RANDOM_SEED:
            raise UsageError(
                f"seed {self.seed} is not fixed",
                advice=f"Choose a seed from 0 to {RANDOM_SEED - 1}.",
            )


def sampling(scenario: Scenario, *, run: int) -> Sampling:
    """The scenario's sampling with everything it does not name switched off; one seed per run."""
    return Sampling(
        temperature=scenario.temperature,
        top_k=scenario.top_k,
        top_p=scenario.top_p,
        min_p=scenario.min_p,
        typical_p=1.0,
        top_n_sigma=-1.0,
        seed=(scenario.seed + run) % RANDOM_SEED,
        repeat_penalty=1.0,
        repeat_last_n=64,
        presence_penalty=0.0,
        frequency_penalty=0.0,
        dry_multiplier=0.0,
        dry_base=1.75,
        dry_allowed_length=2,
        dry_penalty_last_n=64,
        xtc_probability=0.0,
        xtc_threshold=0.1,
        dynatemp_range=0.0,
        dynatemp_exponent=1.0,
        mirostat=0,
        mirostat_tau=5.0,
        mirostat_eta=0.1,
    )


def request(scenario: Scenario, *, run: int, alias: str, filling: Sequence[int] = ()) -> Request:
    """The streamed request of one run: fixed length, salted prompt, no cache, sampling explicit.

    `filling` are the token ids that a filled scenario begins with; it has no other prompt.
    """
    body = {
        "model": alias,
        "stream": True,
        "cache_prompt": False,
        "ignore_eos": True,
        "timings_per_token": False,
        "samplers": list(SAMPLER_ORDER),
        **asdict(sampling(scenario, run=run)),
    }
    match scenario.endpoint:
        case "chat":
            return Request(
                "/v1/chat/completions",
                body
                | {
                    "messages": [{"role": "user", "content": content(scenario, run=run)}],
                    "chat_template_kwargs": {"enable_thinking": scenario.thinking},
                    "max_tokens": scenario.tokens,
                    "stream_options": {"include_usage": True},
                },
            )
        case "completion":
            return Request(
                "/completion",
                body | {"prompt": scenario.prompt_of(run), "n_predict": scenario.tokens},
            )
        case "filled":
            return Request(
                "/completion", body | {"prompt": list(filling), "n_predict": scenario.tokens}
            )
        case other:
            raise UsageError(
                f"scenario {scenario.name} asks for the unknown endpoint {other!r}",
                advice="Use chat, completion or filled.",
            )


def content(scenario: Scenario, *, run: int) -> str | list[dict[str, Any]]:
    """What the user of a chat says: the salted prompt, behind its picture where there is one."""
    text = scenario.prompt_of(run)
    if not scenario.picture:
        return text
    picture = {"type": "image_url", "image_url": {"url": prompts.picture(scenario.picture)}}
    return [picture, {"type": "text", "text": text}]
