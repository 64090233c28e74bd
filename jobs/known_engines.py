"""What was read of each engine of the chain, state by state; an unread state is unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from jobs.errors import UsageError, did_you_mean

COMMON_BITS: Mapping[str, float] = {
    "f32": 32.0,
    "f16": 16.0,
    "bf16": 16.0,
    "q8_0": 8.5,
    "q5_1": 6.0,
    "q5_0": 5.5,
    "q4_1": 5.0,
    "q4_0": 4.5,
    "iq4_nl": 4.5,
}
"""Bits per cached value of the types every llama.cpp has: bits of a block by its values."""

TURBOQUANT_BITS = {"turbo2": 2.125, "turbo3": 3.125, "turbo4": 4.25}
BUUN_BITS = {
    "turbo2": 2.5,
    "turbo3": 3.5,
    "turbo4": 4.125,
    "turbo3_tcq": 3.25,
    "turbo2_tcq": 2.25,
}
BEELLAMA_BITS = {**BUUN_BITS, "turbo2": 2.125, "turbo3": 3.125}
KVARN_BITS = {
    "kvarn2": 2.375,
    "kvarn3": 3.375,
    "kvarn4": 4.375,
    "kvarn5": 5.375,
    "kvarn6": 6.375,
    "kvarn8": 8.375,
}

OLD_DFLASH, UPSTREAM_DFLASH = "dflash-draft", "dflash"


@dataclass(frozen=True)
class EngineState:
    """One state of an engine's source; None and an empty set mean that nobody has read it.

    `drafter_context_tokens` is the context that the engine gives a drafter by itself, 0 where the
    drafter follows the target. `drafts_with_vision` are kinds of drafters that still draft
    beside a projector; the others are silently off. `dflash_verifies_as_tree` says that a block is
    verified with the state after each of its tokens kept. `commits` are shas whose source was read,
    `seen` the first and last day on which this state is known to hold.
    """

    engine: str
    name: str
    source: str
    versions: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    seen: tuple[date, date] | None = None
    cache_bits: Mapping[str, float] = field(default_factory=lambda: COMMON_BITS)
    cache_types_open: bool = False
    drafter_forms: frozenset[str] | None = None
    loads_nextn: bool | None = None
    drafter_context_tokens: int | None = None
    recurrent_copies_speculating: int | None = None
    dflash_buffers_read: bool = False
    dflash_fusion_on_host: bool = False
    dflash_verifies_as_tree: bool = False
    memory_measured: bool = False
    raises_turbo_key_from_ratio: int | None = None
    boundary_value_type: str | None = None
    lays_turbo_rotations: bool = False
    drafts_with_vision: frozenset[str] | None = None
    unread: bool = False

    @property
    def title(self) -> str:
        """How people name it."""
        return f"{self.engine}@{self.name}" if self.name else self.engine

    @property
    def learned_as(self) -> str:
        """Under what name boots teach: the state, and of an unread engine all its revisions."""
        return self.engine if self.unread else self.title


ANY_ENGINE = EngineState(
    engine="any llama.cpp",
    name="",
    source="block layouts that every llama.cpp shares",
)

STATES = (
    EngineState(
        engine="upstream",
        name="2026-05",
        source="ggml-org/llama.cpp 9a532ae4b, 18 May 2026",
        commits=("9a532ae4b",),
        seen=(date(2026, 5, 16), date(2026, 5, 18)),
        drafter_forms=frozenset(),
        loads_nextn=True,
        drafter_context_tokens=0,
    ),
    EngineState(
        engine="upstream",
        name="dflash",
        source="llama.cpp pull requests 22105 and 25116, before 29 June 2026",
        commits=("d1b34251b", "fa72bc682"),
        seen=(date(2026, 6, 29), date(2026, 9, 16)),
        drafter_forms=frozenset({UPSTREAM_DFLASH}),
        loads_nextn=True,
        drafter_context_tokens=0,
    ),
    EngineState(
        engine="turboquant",
        name="2026-05",
        source="TheTom/llama-cpp-turboquant 69d8e4be4, 4 May 2026",
        commits=("69d8e4be4",),
        seen=(date(2026, 4, 22), date(2026, 5, 4)),
        cache_bits={**COMMON_BITS, **TURBOQUANT_BITS},
        drafter_forms=frozenset(),
        loads_nextn=False,
        drafter_context_tokens=0,
        raises_turbo_key_from_ratio=6,
        boundary_value_type="turbo2",
    ),
    EngineState(
        engine="turboquant",
        name="2026-07",
        source="llama-cpp-turboquant pull request 201, 1 July 2026; its cache formats are unread",
        seen=(date(2026, 7, 1), date(2026, 7, 31)),
        cache_types_open=True,
        drafter_forms=frozenset({UPSTREAM_DFLASH}),
        drafter_context_tokens=0,
    ),
    EngineState(
        engine="buun",
        name="2026-04",
        source="spiritbuun/buun-llama-cpp before 17 May 2026",
        commits=("cab1fb597", "16ebdc5c4"),
        seen=(date(2026, 4, 29), date(2026, 5, 16)),
        cache_bits={**COMMON_BITS, **BUUN_BITS},
        drafter_forms=frozenset({OLD_DFLASH}),
        loads_nextn=False,
        drafter_context_tokens=256,
        drafts_with_vision=frozenset(),
        recurrent_copies_speculating=2,
    ),
    EngineState(
        engine="buun",
        name="2026-05",
        source="spiritbuun/buun-llama-cpp 1c4788192, 18 May 2026",
        commits=("1c4788192",),
        seen=(date(2026, 5, 17), date(2026, 5, 18)),
        cache_bits={**COMMON_BITS, **BUUN_BITS},
        drafter_forms=frozenset({OLD_DFLASH}),
        loads_nextn=True,
        drafter_context_tokens=256,
        drafts_with_vision=frozenset(),
        recurrent_copies_speculating=2,
        dflash_buffers_read=True,
        dflash_fusion_on_host=True,
        dflash_verifies_as_tree=True,
    ),
    EngineState(
        engine="buun",
        name="2026-08",
        source="buun-llama-cpp README at 283ba19ed: VBR is the default cache; formats are unread",
        commits=("283ba19ed",),
        seen=(date(2026, 8, 1), date(2026, 8, 31)),
        cache_types_open=True,
        loads_nextn=True,
    ),
    EngineState(
        engine="beellama",
        name="0.1",
        source="Anbeeld/beellama.cpp 633cd34fb (v0.1.2) and ba1fdce59, May 2026",
        versions=("v0.1",),
        commits=("633cd34fb", "ba1fdce59"),
        seen=(date(2026, 5, 11), date(2026, 5, 21)),
        cache_bits={**COMMON_BITS, **BEELLAMA_BITS},
        drafter_forms=frozenset({OLD_DFLASH}),
        loads_nextn=False,
        drafter_context_tokens=256,
        drafts_with_vision=frozenset({"dflash"}),
        recurrent_copies_speculating=2,
        dflash_buffers_read=True,
        memory_measured=True,
        lays_turbo_rotations=True,
    ),
    EngineState(
        engine="beellama",
        name="0.2",
        source="beellama.cpp change log, v0.2",
        versions=("v0.2",),
        cache_bits={**COMMON_BITS, **BEELLAMA_BITS},
        drafter_forms=frozenset({OLD_DFLASH, UPSTREAM_DFLASH}),
        drafter_context_tokens=256,
        recurrent_copies_speculating=2,
        lays_turbo_rotations=True,
    ),
    EngineState(
        engine="beellama",
        name="0.3",
        source="beellama.cpp change log, v0.3 (first usable MTP); its new cache formats are unread",
        versions=("v0.3",),
        cache_bits={**COMMON_BITS, **BEELLAMA_BITS},
        cache_types_open=True,
        drafter_forms=frozenset({OLD_DFLASH, UPSTREAM_DFLASH}),
        loads_nextn=True,
        drafter_context_tokens=256,
        recurrent_copies_speculating=2,
        lays_turbo_rotations=True,
    ),
    EngineState(
        engine="beellama",
        name="0.4",
        source="beellama.cpp change log, v0.4.0: upstream's DFlash, turbo types redirect to KVarN",
        versions=("v0.4",),
        seen=(date(2026, 7, 20), date(2026, 9, 16)),
        cache_bits={**COMMON_BITS, **KVARN_BITS},
        cache_types_open=True,
        drafter_forms=frozenset({UPSTREAM_DFLASH}),
        loads_nextn=True,
        drafter_context_tokens=0,
    ),
)

REPOSITORIES = {
    "ggml-org/llama.cpp": "upstream",
    "thetom/llama-cpp-turboquant": "turboquant",
    "spiritbuun/buun-llama-cpp": "buun",
    "anbeeld/beellama.cpp": "beellama",
}
SHORTEST_SHA = 7


def states_of(engine: str) -> tuple[EngineState, ...]:
    """What was read of an engine, by its name or `owner/name`, oldest first; may be nothing."""
    name = REPOSITORIES.get(engine.lower(), engine.lower())
    return tuple(state for state in STATES if state.engine == name)


def state_at(
    engine: str, *, label: str = "", commit: str = "", day: date | None = None
) -> EngineState | None:
    """The state that a version, a commit or a day of an engine's source belongs to, if read."""
    states = states_of(engine)
    for state in states:
        if label and (label == state.name or _version(label, state)):
            return state
    for state in states:
        if len(commit) >= SHORTEST_SHA and any(_same(commit, known) for known in state.commits):
            return state
    for state in states:
        if day and state.seen and state.seen[0] <= day <= state.seen[1]:
            return state
    return None


def state_named(text: str, *, cache_types: tuple[str, ...] = ()) -> EngineState:
    """The state that `engine` or `engine@state-version-commit-or-day` names.

    A bare name means the newest state that has every one of `cache_types`. Raises UsageError.
    """
    engine, _, at = text.partition("@")
    states = states_of(engine)
    if not states:
        raise UsageError(
            f"nothing was read of an engine named {engine[:80]!r}",
            advice=did_you_mean(engine, {state.engine for state in STATES}),
        )
    if not at and "@" not in text:
        having = [s for s in states if all(name in s.cache_bits for name in cache_types)]
        return (having or list(states))[-1]
    found = state_at(engine, label=at, commit=at.lower(), day=_day(at))
    if found is None:
        raise UsageError(
            f"nothing was read of {engine} at {at[:80]!r}",
            advice="read were " + ", ".join(state.title for state in states),
        )
    return found


def _version(label: str, state: EngineState) -> bool:
    plain = label if label.startswith("v") else f"v{label}"
    return any(plain == known or plain.startswith(f"{known}.") for known in state.versions)


def _same(commit: str, known: str) -> bool:
    return commit.startswith(known) or known.startswith(commit)


def _day(text: str) -> date | None:
    if not re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", text, re.ASCII):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
