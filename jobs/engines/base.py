"""The protocol every engine family fits: it describes steps and reads text; it never runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jobs.model import (
    BootFacts,
    BuildTarget,
    Effective,
    FailureRule,
    Flags,
    Measurement,
    Revision,
    Step,
)
from jobs.scenarios import Scenario


@dataclass(frozen=True)
class BuildPlaces:
    """Paths as the build's steps see them: `source` is read-only, the others are writable."""

    source: str
    work: str
    output: str
    python: str = "python3"
    jobs: int = 1


@dataclass(frozen=True)
class Launch:
    """All that one start of a server depends on; paths as the caged process sees them."""

    artifact: str
    model_path: str
    host: str
    alias: str
    context_tokens: int
    threads: int
    python: str = "python3"
    gpu_layers: int = 0
    intent: Mapping[str, str | int] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One HTTP request of a run: path and JSON body."""

    path: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Arrival:
    """One stream event's JSON and when it came, in seconds after the request was sent."""

    seconds: float
    event: Mapping[str, Any]


class Engine(Protocol):
    """One module per family. `RECIPE` grows with each change to the build."""

    FAMILY: str
    VIA: str
    RECIPE: int
    FOREIGN_SOURCE: bool
    FAILURES: Sequence[FailureRule]
    SPARSE_PATTERNS: Sequence[str]

    def build(self, revision: Revision, target: BuildTarget, places: BuildPlaces) -> Sequence[Step]:
        """Steps that leave the finished tree in `places.output`."""

    def describe(self, *, artifact: str, python: str) -> Step:
        """The step whose output `read_help` understands."""

    def launch(self, launch: Launch, flags: Flags) -> Step:
        """The step that starts the server. Raises `Unsupported` for an intent no flag can serve."""

    def read_help(self, text: str) -> Flags:
        """Flags of the built binary."""

    def read_log(self, text: str) -> BootFacts:
        """Facts of one boot from its log."""

    def read_settings(
        self, props: Mapping[str, Any], slots: Sequence[Mapping[str, Any]]
    ) -> Effective:
        """Settings the running server admits to."""

    def request(self, scenario: Scenario, *, run: int, alias: str) -> Request:
        """The body of one run with every sampling field explicit."""

    def measure(
        self,
        arrivals: Sequence[Arrival],
        *,
        scenario: Scenario,
        run: int,
        warmup: bool,
        wall_seconds: float,
        alias: str,
    ) -> Measurement:
        """The numbers of one run with their validity."""
