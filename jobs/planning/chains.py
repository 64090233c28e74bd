"""Fetch, build and bench of one question, in the order they run; describes them, stores none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs import planner
from jobs.model import BuildTarget, Lane, Revision
from jobs.own_scenarios import table_of
from jobs.payloads import AgainstPayload, BenchPayload
from jobs.planner import JobRequest, Weights
from jobs.scenarios import Scenario


@dataclass(frozen=True)
class Against:
    """A revision that another one is measured in turns with, and how it is built."""

    revision: Revision
    revision_id: int
    target: BuildTarget


@dataclass(frozen=True)
class BenchWish:
    """A bench somebody wants of one revision; None takes the scenario's own number."""

    rig: str
    scenario: Scenario
    stack: str
    context_tokens: int
    runs: int | None = None
    boots: int | None = None
    intent: Mapping[str, Any] | None = None
    flags: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    against: Against | None = None


@dataclass(frozen=True)
class Files:
    """What a server loads."""

    target: Weights
    drafter: Weights | None = None
    projector: Weights | None = None

    @property
    def all(self) -> tuple[Weights, ...]:
        """Every file that must be there."""
        return tuple(each for each in (self.target, self.drafter, self.projector) if each)


@dataclass(frozen=True)
class Chain:
    """The requests of one question, its bench last, and the series the answer belongs to."""

    requests: tuple[JobRequest, ...]
    series: str

    @property
    def bench(self) -> JobRequest:
        """The job that answers."""
        return self.requests[-1]

    @property
    def build(self) -> JobRequest:
        """The job whose artifact is measured."""
        return self.requests[-2]

    def asked(self, **changes: Any) -> Chain:
        """The same with other lane, priority, source or cause in every request."""
        return replace(self, requests=tuple(replace(each, **changes) for each in self.requests))


def chain(
    revision: Revision,
    revision_id: int,
    target: BuildTarget,
    files: Files,
    wish: BenchWish,
    *,
    lane: Lane,
    reason: str,
) -> Chain:
    """Everything that has to happen for an answer, whether or not it is there already."""
    fetches = [
        planner.fetch_request(each, lane=lane, reason=reason, rig=wish.rig) for each in files.all
    ]
    build = planner.build_request(revision, revision_id, target, lane=lane, reason=reason)
    before, label = list(fetches), f"{revision.engine} {revision.label}"
    against = None
    if (other := wish.against) is not None:
        theirs = planner.build_request(
            other.revision, other.revision_id, other.target, lane=lane, reason=reason
        )
        against = AgainstPayload(
            revision_id=other.revision_id, build_identity=theirs.payload["build_identity"]
        )
        before.append(theirs)
        label = f"{label} against {other.revision.engine} {other.revision.label}"
    drafter, projector = files.drafter, files.projector
    payload = BenchPayload(
        revision_id=revision_id,
        build_identity=build.payload["build_identity"],
        model_file_id=files.target.id,
        scenario=wish.scenario.word,
        own_scenario=table_of(wish.scenario),
        rig=wish.rig,
        stack=wish.stack,
        context_tokens=wish.context_tokens,
        runs=wish.runs or wish.scenario.runs,
        boots=wish.boots or wish.scenario.boots,
        intent=dict(wish.intent or {}),
        flags=tuple(wish.flags),
        env=dict(wish.env or {}),
        drafter_file_id=drafter.id if drafter else None,
        drafter_sha256=drafter.sha256 if drafter else "",
        projector_file_id=projector.id if projector else None,
        projector_sha256=projector.sha256 if projector else "",
        against=against,
    )
    bench = planner.bench_request(
        payload,
        weights=files.target,
        scenario=wish.scenario,
        label=label,
        lane=lane,
        reason=reason,
        needs=(*before, build),
    )
    series = planner.series_key(
        engine=revision.engine,
        weights_sha256=files.target.sha256,
        scenario=wish.scenario,
        payload=payload,
        target=target.name,
    )
    return Chain((*before, build, bench), series)
