"""Reads the events of a streamed answer: text, errors, names, moments; it judges nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jobs.dialect import wire
from jobs.model import Arrival

STEADY_BAND = 0.1  # between the middle and the last third of an answer
LEAST_OF_A_THIRD = 8  # gaps


@dataclass(frozen=True)
class Text:
    """What one event adds to the answer, by kind."""

    reasoning: str = ""
    content: str = ""
    tool: str = ""

    @property
    def whole(self) -> str:
        return self.reasoning + self.content + self.tool


def text_of(event: Mapping[str, Any]) -> Text:
    """The text one event carries, in either endpoint's shape."""
    choices = wire.sequence(event.get("choices"))
    if not choices:
        return Text(content=wire.text(event.get("content")))
    choice = wire.mapping(choices[0])
    delta = wire.mapping(choice.get("delta"))
    calls = (
        wire.mapping(wire.mapping(call).get("function"))
        for call in wire.sequence(delta.get("tool_calls"))
    )
    return Text(
        reasoning=wire.text(delta.get("reasoning_content")) or wire.text(delta.get("reasoning")),
        content=wire.text(delta.get("content")) or wire.text(choice.get("text")),
        tool="".join(wire.text(c.get("name")) + wire.text(c.get("arguments")) for c in calls),
    )


def error_of(event: Mapping[str, Any]) -> str | None:
    """The message of an error the server sent, or None."""
    error = event.get("error")
    if error is None:
        return None
    return wire.shown(wire.mapping(error).get("message")) or wire.shown(error) or "no message"


def tokens_so_far(event: Mapping[str, Any]) -> int | None:
    """The token count an unfinished `/completion` stream states in each event."""
    return wire.count(event.get("tokens_predicted"))


def first_ms(arrivals: Sequence[Arrival], texts: Sequence[str]) -> float | None:
    return next(
        (arrival.seconds * 1000 for arrival, text in zip(arrivals, texts, strict=True) if text),
        None,
    )


def echo_of(events: Sequence[Mapping[str, Any]], alias: str) -> str | None:
    """The model name in the events; one that is not ours outweighs all that are."""
    names = [event["model"] for event in events if isinstance(event.get("model"), str)]
    return next((name for name in names if name != alias), names[-1] if names else None)


def finish_reason_of(events: Sequence[Mapping[str, Any]]) -> str | None:
    for event in reversed(events):
        choices = wire.sequence(event.get("choices"))
        stated = wire.mapping(choices[0]).get("finish_reason") if choices else None
        stated = stated or event.get("stop_type")
        if isinstance(stated, str) and stated:
            return wire.shown(stated, 40)
    return None


def gaps_ms(arrivals: Sequence[Arrival], texts: Sequence[Text]) -> list[float]:
    """Milliseconds between events with text, in order; several tokens may come in one event."""
    moments = [a.seconds for a, text in zip(arrivals, texts, strict=True) if text.whole]
    return [(later - earlier) * 1000 for earlier, later in pairwise(moments)]


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of all do not exceed; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def is_steady(gaps: Sequence[float]) -> bool:
    """Whether the last third of an answer came as fast as the middle one.

    An engine that still compiles, allocates or gains its clock is faster at the end. Too short an
    answer says nothing, and nothing speaks against it.
    """
    third = len(gaps) // 3
    if third < LEAST_OF_A_THIRD:
        return True
    middle = quantile(gaps[third : 2 * third], 0.5) or 0.0
    last = quantile(gaps[2 * third :], 0.5) or 0.0
    return abs(last - middle) <= STEADY_BAND * max(middle, last)


def usage_of(events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The last counts a server stated in OpenAI's shape; empty where it stated none."""
    stated = (wire.mapping(event.get("usage")) for event in reversed(events))
    return next((usage for usage in stated if usage), {})
