"""Whether weights are what somebody promised: three states, counted apart; it mends nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from jobs.control import Control
from jobs.hub_names import set_sha256
from jobs.tables import ModelFileRow
from workers.weight_store import Entry, Store
from workers.weights import digest_of


class WeightState(StrEnum):
    """A part is not whole yet; a file nobody promised has only the digest we gave it."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    MISMATCH = "mismatch"
    PART = "part"


def state_when_it_came(entry: Entry, models: Sequence[ModelFileRow]) -> WeightState:
    """What was known when it came into the store: a source's digest was held against its bytes."""
    if entry.form == "part":
        return WeightState.PART
    promised = any(model.source for model in models)
    return WeightState.VERIFIED if promised else WeightState.UNVERIFIED


def state_now(store: Store, entry: Entry, models: Sequence[ModelFileRow]) -> WeightState:
    """The same after all bytes were read again. Raises `FileNotFoundError` where it is gone."""
    before = state_when_it_came(entry, models)
    if before is WeightState.PART or _digest(store, entry) == entry.sha256:
        return before
    return WeightState.MISMATCH


def counted(states: Iterable[WeightState]) -> str:
    """How many of each, as `3 verified, 2 unverified`."""
    numbers = Counter(states)
    return ", ".join(f"{numbers[state]} {state}" for state in WeightState if numbers[state])


def _digest(store: Store, entry: Entry) -> str:
    if entry.form == "file":
        return digest_of(store.file(entry.sha256), Control(), phase="verify")
    files = sorted(store.folder(entry.sha256).iterdir())
    return set_sha256([digest_of(file, Control(), phase="verify") for file in files])
