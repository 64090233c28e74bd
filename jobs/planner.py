"""What has to be queued to measure a revision; describes requests, stores nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from jobs.engines.base import BuildPlaces
from jobs.engines.registry import family
from jobs.model import BuildTarget, Kind, Lane, Revision
from jobs.payloads import BenchPayload, BuildPayload, FetchPayload, PublishPayload
from jobs.scenarios import Scenario

PRIORITY_STEP = timedelta(minutes=30)
BY_HAND = "hand"
"""The source of what a person asked for."""


@dataclass(frozen=True)
class JobRequest:
    """A job somebody wants; `needs` are identities of requests that must succeed first.

    Those of `after` must only have ended, in whatever way: a stage is counted, not awaited.
    `source` is who asks (`BY_HAND`, `engine:NAME`), `cause` the ids of what made it.
    `rig` is whose weights store a fetch is for; empty where any will do.
    Each step of `priority` is worth PRIORITY_STEP of waiting; the lane comes first.
    """

    kind: Kind
    queue: str
    lane: Lane
    identity: str
    title: str
    payload: Mapping[str, Any]
    reason: str
    needs: tuple[str, ...] = field(default=())
    after: tuple[str, ...] = ()
    source: str = ""
    cause: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    estimate_seconds: float | None = None
    expires_at: datetime | None = None
    rig: str = ""

    def turn_at(self, now: datetime) -> datetime:
        """Where this request stands in its lane: a virtual time, so waiting wins in the end."""
        return now - self.priority * PRIORITY_STEP


def priority_of(asked_at: datetime, turn_at: datetime) -> int:
    """The priority, in whole steps, that gives something asked for at that moment its turn."""
    return round((asked_at - turn_at) / PRIORITY_STEP)


@dataclass(frozen=True)
class Weights:
    """A model file as far as planning needs it."""

    id: int
    name: str
    sha256: str


def digest(*parts: object) -> str:
    """sha256 of the parts' canonical JSON."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def build_identity(revision: Revision, target: BuildTarget) -> str:
    """Digest of all that goes into a build: revision, target and the recipe's exact steps."""
    recipe = family(revision.family)
    places = BuildPlaces(source="<source>", work="<work>", output="<output>", python="<python>")
    steps = recipe.build(revision, target, places)
    return digest(
        revision.family,
        revision.commit,
        [
            *(target.name, target.via, target.cuda_arch, list(target.options)),
            *([target.pins] if target.pins else []),
        ],
        recipe.RECIPE,
        [[list(step.argv), dict(step.env)] for step in steps],
    )


def source_identity(revision: Revision, target: BuildTarget, tree_sha256: str) -> str:
    """Digest of the files that a build reads and of its steps, without the name of the commit."""
    nameless = replace(revision, commit="0" * len(revision.commit))
    return digest("source", build_identity(nameless, target), tree_sha256)


def fetch_identity(sha256: str, place: str = "") -> str:
    """What makes two fetch jobs the same: the bytes, and the rig or store they are to lie in.

    A request names the rig; the job that is queued names the store, so that rigs which share one
    share the job.
    """
    return digest("fetch_model", sha256, *([place] if place else ()))


def fetch_request(weights: Weights, *, lane: Lane, reason: str, rig: str = "") -> JobRequest:
    """Bring one model file; with a `rig`, to where its benches find it."""
    return JobRequest(
        kind=Kind.FETCH_MODEL,
        queue="build",
        lane=lane,
        identity=fetch_identity(weights.sha256, rig),
        title=f"fetch {weights.name}",
        payload=FetchPayload(model_file_id=weights.id).model_dump(mode="json"),
        reason=reason,
        rig=rig,
    )


def build_request(
    revision: Revision, revision_id: int, target: BuildTarget, *, lane: Lane, reason: str
) -> JobRequest:
    """Make the artifact of one revision for one target."""
    identity = build_identity(revision, target)
    payload = BuildPayload(
        revision_id=revision_id,
        target=target.name,
        via=target.via,
        cuda_arch=target.cuda_arch,
        options=target.options,
        pins=target.pins,
        build_identity=identity,
    )
    return JobRequest(
        kind=Kind.BUILD,
        queue="build",
        lane=lane,
        identity=digest("build", identity),
        title=f"build {revision.engine} {revision.label} for {target.name}",
        payload=payload.model_dump(mode="json"),
        reason=reason,
    )


def bench_identity(payload: BenchPayload, *, weights_sha256: str, scenario: Scenario) -> str:
    """What makes two bench jobs the same question."""
    return digest(
        "bench",
        payload.build_identity,
        weights_sha256,
        scenario.key,
        payload.rig,
        payload.context_tokens,
        payload.intent,
        list(payload.flags),
        payload.env,
        payload.runs,
        payload.boots,
        *_beside(payload),
        *([{"against": payload.against.build_identity}] if payload.against else []),
    )


def series_key(
    *,
    engine: str,
    weights_sha256: str,
    scenario: Scenario,
    payload: BenchPayload,
    target: str,
) -> str:
    """The line a result is judged on: all of its question but the revision."""
    return digest(
        engine,
        target,
        weights_sha256,
        scenario.key,
        payload.rig,
        payload.context_tokens,
        payload.intent,
        list(payload.flags),
        payload.env,
        *_beside(payload),
    )


def _beside(payload: BenchPayload) -> list[dict[str, str]]:
    """A target that runs alone keeps the digest it had before others could run beside it."""
    return [payload.beside] if payload.beside else []


def bench_request(
    payload: BenchPayload,
    *,
    weights: Weights,
    scenario: Scenario,
    label: str,
    lane: Lane,
    reason: str,
    needs: Sequence[JobRequest],
) -> JobRequest:
    """Measure one build."""
    return JobRequest(
        kind=Kind.BENCH,
        queue=f"bench.{payload.rig}",
        lane=lane,
        identity=bench_identity(payload, weights_sha256=weights.sha256, scenario=scenario),
        title=f"bench {label} with {weights.name} on {payload.rig} "
        f"({scenario.word}, {context_words(payload.context_tokens)})",
        payload=payload.model_dump(mode="json"),
        reason=reason,
        needs=tuple(request.identity for request in needs),
    )


def context_words(tokens: int) -> str:
    """An allocated context as titles say it: `32k`, `3000 tokens`."""
    return f"{tokens // 1024}k" if tokens % 1024 == 0 else f"{tokens} tokens"


def publish_request(*, lane: Lane, reason: str) -> JobRequest:
    """Write the static export; one that waits stands for all that came before it."""
    return JobRequest(
        kind=Kind.PUBLISH,
        queue="publish",
        lane=lane,
        identity=digest("publish", reason),
        title="publish the site",
        payload=PublishPayload(reason=reason).model_dump(mode="json"),
        reason=reason,
    )
