"""Why a repository was not looked at as its watch list asks, in words; it only makes sentences."""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from sqlalchemy.exc import OperationalError

from jobs.errors import JobFailure, ScoutError
from jobs.git_names import short_name
from jobs.sightings import SourceStateRow
from jobs.store import refs
from scout.kinship import Kin
from scout.setbacks import FREE_SPACE
from scout.watch import Trouble

_log = structlog.get_logger(__name__)


def failed(name: str, error: Exception) -> Trouble:
    """A look that ended in an error; one of our own is loud in the log."""
    if isinstance(error, JobFailure):
        return Trouble(name, error.detail, FREE_SPACE)
    if isinstance(error, OperationalError):
        says = " ".join(str(error.orig).split())
        return Trouble(name, f"the database failed: {says}", FREE_SPACE)
    if isinstance(error, ScoutError):
        return Trouble(name, error.message, error.advice)
    _log.exception("source crashed", engine=name, exc_info=error)
    return Trouble(name, f"our own fault: {error!r}", "please report this, with the log")


def not_asked(name: str, state: SourceStateRow) -> Trouble:
    """A repository that gave no answer a moment ago."""
    why = state.cursor.get(refs.FAILED_BECAUSE) or "it gave no answer"
    until = f"{state.retry_at:%H:%M}" if state.retry_at else "the next look"
    return Trouble(
        name,
        f"not asked until {until} UTC, because at {state.updated_at:%H:%M}: {why}",
        "ask now: forkscout scout run --source git",
    )


def too_much(kin: Kin) -> Trouble:
    """A repository that was left out, so that all others can be judged."""
    return Trouble(
        kin.name,
        f"{kin.repo} has too much history to be judged beside the others",
        "look at the repository by hand; the others are not held up by it",
    )


def is_in_doubt(kin: Kin) -> bool:
    """Whether nothing may be taken from its name."""
    return kin.origin is not None and bool(kin.origin.doubt)


def named_by_another(kin: Kin) -> Trouble | None:
    """Names pass to strangers: what is not taken from one, and what a person can do."""
    where = kin.origin
    if where is None or not (where.doubt or where.taken):
        return None
    said = where.doubt or (
        f"its name in the watch list, {where.listed}, belongs to another repository now "
        f"({where.taken}); it is watched as {where.repo}"
    )
    return Trouble(kin.name, said, where.advice)


def missing(kin: Kin, commits: Mapping[str, str]) -> Trouble | None:
    """A branch that is to be built and is not there: nothing would ever move."""
    names = [short_name(ref) for ref in sorted(kin.watched - commits.keys())]
    if not names:
        return None
    default = kin.default_branch
    instead = f"; its default branch is {default}" if default and default not in names else ""
    return Trouble(
        kin.name,
        f"{' and '.join(names)} of {kin.repo}, to be built, is not there{instead}",
        "if it moved, name the other branch in the watch list; it is built when it comes back",
    )
