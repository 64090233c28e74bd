"""What each kind of job needs to know, checked at the door; holds ids and digests, no state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

LEAST_CONTEXT, MOST_CONTEXT = 256, 2_097_152
"""Tokens that a bench may allocate; more is a slip of the hand."""


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FetchPayload(_Payload):
    """Bring one model file into the weights store."""

    model_file_id: int


class BuildPayload(_Payload):
    """Make the artifact of one revision for one build target."""

    revision_id: int
    target: str
    via: str
    cuda_arch: str | None = None
    options: tuple[str, ...] = ()
    pins: tuple[tuple[str, str], ...] = ()
    build_identity: str


def by_dockerfile(build: Mapping[str, Any]) -> bool:
    """Whether this payload of a build has the lines of a Dockerfile run, as root of a container."""
    return build.get("via") == "docker" and "image" not in dict(build.get("pins") or ())


class AgainstPayload(_Payload):
    """The build that a bench is measured in turns with."""

    revision_id: int
    build_identity: str


class BenchPayload(_Payload):
    """Measure one build with one model file in one scenario on one rig.

    A drafter and a projector are known by their sha256, as the target is by its row.
    `own_scenario` is the whole of a scenario that a user wrote; empty for a shipped one.
    With `against` both builds are booted in turns, and this one is the candidate.
    """

    revision_id: int
    build_identity: str
    model_file_id: int
    scenario: str
    rig: str
    stack: str
    context_tokens: int = Field(default=2048, ge=LEAST_CONTEXT, le=MOST_CONTEXT)
    runs: int = Field(default=5, ge=1, le=1000)
    boots: int = Field(default=3, ge=1, le=100)
    intent: dict[str, str | int] = Field(default_factory=dict)
    flags: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    drafter_file_id: int | None = None
    drafter_sha256: str = ""
    projector_file_id: int | None = None
    projector_sha256: str = ""
    own_scenario: dict[str, Any] = Field(default_factory=dict)
    against: AgainstPayload | None = None

    @property
    def baseline(self) -> BenchPayload | None:
        """The same question of the build that it is measured against."""
        if self.against is None:
            return None
        return self.model_copy(update={**self.against.model_dump(), "against": None})

    @property
    def beside(self) -> dict[str, str]:
        """Digests of what is loaded beside the target; empty where it runs alone."""
        found = {"drafter": self.drafter_sha256, "projector": self.projector_sha256}
        return {role: sha256 for role, sha256 in found.items() if sha256}


class HealthPayload(BenchPayload):
    """Measure the golden of a rig."""

    golden_id: int


class PublishPayload(_Payload):
    """Write the static export."""

    reason: str = "on demand"
