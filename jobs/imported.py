"""A result file of another machine, checked value by value; whatever is doubtful is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from jobs import exchange
from jobs.dialect.wire import storable
from jobs.errors import UsageError
from jobs.model import Boot, Measurement, Validity
from jobs.scenarios import Scenario, is_as_shipped

MOST_BYTES = 64 * 2**20
MOST_COMBINATIONS = 1_000
LONGEST_TEXT = 20_000
LARGEST_WHOLE = 2**31 - 1
LARGEST_SIZE = 2**53
RATE_TOLERANCE = 0.01

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Commit = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+ -]{0,119}$")]
Words = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)


class BuildTold(_Checked):
    """The build, by its source's commit and its files' digest."""

    engine: Name
    commit: Commit
    artifact: Sha256
    size_bytes: int = Field(ge=0, le=LARGEST_SIZE)
    cuda_arch: Words | None = None
    facts: dict[str, Any] = Field(default_factory=dict)


class ModelTold(_Checked):
    """A weight file, by its digest and its header."""

    name: Name
    sha256: Sha256
    size_bytes: int = Field(ge=0, le=LARGEST_SIZE)
    twin_of: Words | None
    facts: dict[str, Any]
    shape: dict[str, Any] | None = None
    fault: Words = ""


class Asked(_Checked):
    """The settings of one combination."""

    context_tokens: int = Field(ge=256, le=2_097_152)
    intent: dict[Name, str | int]
    flags: list[Words] = Field(max_length=200)
    env: dict[Name, Words] = Field(default_factory=dict)
    boots: int = Field(ge=1, le=100)
    runs: int = Field(ge=1, le=1000)
    threads: int = Field(ge=1, le=4096)
    gpu_layers: int = Field(ge=0, le=100_000)
    scenarios: list[dict[str, Any]] = Field(min_length=1, max_length=64)


class CombinationTold(_Checked):
    """One combination of settings with its boots, or with why there are none."""

    asked: Asked
    boots: list[dict[str, Any]] = Field(max_length=1000)
    failure: dict[str, Any] | None = None


class PairingTold(_Checked):
    """Two builds that were booted in turns: which of them this file is about."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    arm: Literal["A", "B"]
    artifacts: dict[Literal["A", "B"], Sha256]


class Document(_Checked):
    """The whole file."""

    format: Literal["forkscout-bench"]
    version: int
    made_at: Annotated[str, StringConstraints(max_length=40)]
    sandbox: Name
    caged: bool
    machine: dict[str, Any]
    card: dict[str, Any] | None
    family: Name
    build: BuildTold
    models: dict[Literal["target", "drafter", "mmproj"], ModelTold]
    combinations: list[CombinationTold] = Field(max_length=MOST_COMBINATIONS)
    pairing: PairingTold | None = None

    @property
    def is_twin(self) -> bool:
        """Whether any of its weights are random."""
        return any(model.twin_of is not None for model in self.models.values())


@dataclass(frozen=True)
class Series:
    """The boots of one scenario in one combination."""

    asked: Asked
    scenario: Scenario
    boots: tuple[Boot, ...]


_BOOT = TypeAdapter(Boot)
_SCENARIO = TypeAdapter(Scenario)


def read(content: bytes) -> Document:
    """The file's values. Raises UsageError for what is no result file of a version we know."""
    if len(content) > MOST_BYTES:
        raise _refused(f"it is larger than {MOST_BYTES:,} bytes")
    try:
        value = json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError) as fault:
        raise _refused("it is no JSON") from fault
    if not isinstance(value, dict) or value.get("format") != exchange.FORMAT:
        raise _refused("it is no result of an offline bench")
    if value.get("version") != exchange.VERSION:
        raise UsageError(
            f"the result file has version {str(value.get('version'))[:20]!r}, "
            f"known is {exchange.VERSION}",
            advice="Import it with the release that wrote it, or bench again.",
        )
    try:
        document = Document.model_validate(storable(value))
    except ValidationError as fault:
        raise _refused(_first(fault)) from fault
    if "target" not in document.models:
        raise _refused("it names no model")
    return document


def series(document: Document) -> Iterator[Series]:
    """Each scenario of each combination that has boots.

    Raises UsageError where one contradicts itself.
    """
    for combination in document.combinations:
        boots = [_boot(each, document.is_twin) for each in combination.boots]
        if len({boot.number for boot in boots}) != len(boots):
            raise _refused("a boot is there twice")
        for told in combination.asked.scenarios:
            scenario = _scenario(told)
            mine = [_of(boot, scenario.key) for boot in boots]
            if kept := tuple(boot for boot in mine if boot.measurements):
                yield Series(combination.asked, scenario, kept)


def _scenario(told: Mapping[str, Any]) -> Scenario:
    try:
        scenario = _SCENARIO.validate_python(dict(told))
    except ValidationError as fault:
        raise _refused(_first(fault)) from fault
    if scenario.key != told.get("key") or len(scenario.key) > 200:
        raise _refused(f"scenario {str(told.get('key'))[:80]!r} is not what it says")
    if not scenario.own and not is_as_shipped(scenario):
        raise _refused(f"scenario {scenario.key[:80]!r} is none of ours, whatever it says")
    return scenario


def _of(boot: Boot, key: str) -> Boot:
    """The boot with one scenario's requests."""
    return replace(boot, measurements=tuple(m for m in boot.measurements if m.scenario == key))


def _boot(told: Mapping[str, Any], is_twin: bool) -> Boot:
    try:
        boot = _BOOT.validate_python(dict(told))
    except ValidationError as fault:
        raise _refused(_first(fault)) from fault
    if not 1 <= boot.number <= LARGEST_WHOLE or not 0 <= boot.load_seconds < 1e6:
        raise _refused(f"boot {boot.number} has impossible figures")
    if boot.peak_memory_bytes is not None and not 0 <= boot.peak_memory_bytes <= LARGEST_SIZE:
        raise _refused(f"boot {boot.number} has impossible figures")
    if boot.started_at is not None and boot.started_at.tzinfo is None:
        raise _refused(f"boot {boot.number} has a time without a zone")
    keys = [(m.scenario, m.run, m.warmup) for m in boot.measurements]
    if len(set(keys)) != len(keys):
        raise _refused(f"boot {boot.number} has a run twice")
    return replace(
        boot,
        environment={**boot.environment, "card_before": told.get("card_before")},
        measurements=tuple(_sample(m, is_twin) for m in boot.measurements),
    )


def _sample(m: Measurement, is_twin: bool) -> Measurement:
    for entry in fields(m):
        value = getattr(m, entry.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        most = LARGEST_WHOLE if isinstance(value, int) else 1e15
        if not math.isfinite(value) or not 0 <= value <= most:
            raise _refused(f"{entry.name} of run {m.run} cannot be {value}")
    if any(isinstance(v, str) and len(v) > LONGEST_TEXT for v in vars(m).values()):
        raise _refused(f"run {m.run} has a text longer than {LONGEST_TEXT} characters")
    for rate, amount, duration_ms in (
        (m.decode_tps, m.predicted_n, m.predicted_ms),
        (m.prefill_tps, m.prompt_n, m.prompt_ms),
    ):
        if rate is not None and not _agrees(rate, amount, duration_ms):
            raise _refused(f"the rates of run {m.run} are not count by time")
    if is_twin and m.validity is Validity.OK:
        return replace(m, validity=Validity.TWIN)
    return m


def _agrees(rate: float, amount: int | None, duration_ms: float | None) -> bool:
    if not amount or not duration_ms:
        return False
    return abs(rate - amount / duration_ms * 1000) <= RATE_TOLERANCE * rate


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def _first(fault: ValidationError) -> str:
    detail = fault.errors()[0]
    place = ".".join(str(step)[:40] for step in detail["loc"])
    return f"{place}: {detail['msg'][:200]}"


def _refused(why: str) -> UsageError:
    return UsageError(
        f"the file is no sound result: {why}",
        advice="Import a file that forkscout bench --offline wrote, unchanged.",
    )
