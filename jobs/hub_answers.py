"""What an answer of the model hub means for a job: go on, wait, or fail; it asks nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.errors import JobFailure, Later, ScoutError, Transient
from jobs.model import Blame

WINDOW_SECONDS = 300.0
"""The hub counts requests in windows of this length."""

LONGEST_WAIT_SECONDS = 3600.0

_RESET = re.compile(r"(?:^|[;,\s])t=(\d{1,9})(?:$|[;,\s])", re.ASCII)
_SECONDS = re.compile(r"\d{1,9}", re.ASCII)
_DISABLED = "access to this resource is disabled"
_TOKEN = "FORKSCOUT_HF_TOKEN"  # noqa: S105 - the name of a setting

MISSING = "hub_missing"
GONE = "hub_file_gone"
GATED = "hub_gated"
PRIVATE = "hub_private"
DISABLED = "hub_disabled"
REVISION = "hub_revision"


def wait_seconds(headers: Mapping[str, str]) -> float | None:
    """How long the server asks us to wait, from `Retry-After` or `RateLimit`."""
    after = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(after):
        return min(LONGEST_WAIT_SECONDS, max(1.0, float(after)))
    reset = _RESET.search(headers.get("ratelimit", ""))
    return min(LONGEST_WAIT_SECONDS, float(reset[1]) + 1) if reset else None


def refusal(
    status: int, headers: Mapping[str, str], *, what: str, has_token: bool = False
) -> ScoutError:
    """The error for an answer that is neither the file nor a redirect; keys are lower-case."""
    if status == 429 or (status == 503 and wait_seconds(headers) is not None):
        seconds = wait_seconds(headers) or WINDOW_SECONDS
        return Later(
            f"the hub asks to wait {seconds:.0f} s before {what} is asked for again",
            wait_seconds=seconds,
            advice="nothing is to be done; a token has a larger quota",
        )
    found = _known(status, headers, what=what, has_token=has_token)
    if found is not None:
        return found
    return Transient(
        f"the hub answered {status} for {what}", advice="the job is tried again by itself"
    )


def _known(
    status: int, headers: Mapping[str, str], *, what: str, has_token: bool
) -> JobFailure | None:
    code = headers.get("x-error-code", "")
    if _DISABLED in headers.get("x-error-message", "").lower():
        return failed(DISABLED, f"the hub has disabled {what}", "name another source of this model")
    if code == "GatedRepo":
        return failed(
            GATED,
            f"{what} is gated: its owner wants the terms accepted",
            f"accept them on the model's page, then set {_TOKEN} to a token of that account",
        )
    if code == "RevisionNotFound":
        return failed(REVISION, f"{what} has no such revision", "name a commit that is there")
    if code == "EntryNotFound":
        return gone(what)
    if code == "RepoNotFound" or status == 401:
        return failed(
            MISSING,
            f"{what} is not there, or it is private: the hub does not tell which",
            "check the name" if has_token else f"check the name, or set {_TOKEN}",
        )
    if status == 403:
        return failed(
            PRIVATE,
            f"{what} may not be read with this token" if has_token else f"{what} is private",
            f"set {_TOKEN} to a token that may read it",
        )
    if status in (404, 410, 451):
        return gone(what)
    return None


def gone(what: str) -> JobFailure:
    """The file was deleted, or it never was."""
    return failed(GONE, f"{what} is gone", "name another revision or source of this model")


def failed(failure_class: str, detail: str, advice: str) -> JobFailure:
    """A refusal that only a person can change."""
    return JobFailure(
        detail,
        failure_class=failure_class,
        blame=Blame.CONFIGURATION,
        phase="download",
        advice=advice,
    )
