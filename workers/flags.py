"""Asks a built server what it understands, before it is started for real."""

from __future__ import annotations

from jobs.control import Control
from jobs.engines.base import Engine
from jobs.errors import JobFailure
from jobs.model import Blame, Flags
from workers import autopsy
from workers.plan import Place, launcher_of
from workers.sandbox import Mount
from workers.steps import run_step


def ask_help(
    engine: Engine,
    artifact: Mount,
    place: Place,
    *,
    control: Control,
    mounts: tuple[Mount, ...] = (),
) -> str:
    """What one build says of itself, in its own words."""
    launcher = launcher_of(engine)
    step = engine.describe(
        artifact=place.sandbox.path(artifact),
        launcher=place.sandbox.path(launcher) if launcher else "",
    )
    place.log.touch(mode=0o600)
    offset = place.log.stat().st_size
    run_step(
        place.sandbox,
        step,
        (artifact, *((launcher,) if launcher else ()), *mounts),
        log=place.log,
        limits=place.limits,
        control=control,
        marker=place.marker,
    )
    return autopsy.read_log_text(place.log, offset=offset)


def flags_in(engine: Engine, text: str) -> Flags:
    """The flags a build's own words name; a build that names none is broken."""
    flags = engine.read_help(text)
    if not flags.names:
        raise JobFailure(
            "the built server does not say what it understands",
            failure_class="no_help",
            blame=Blame.ENGINE,
            phase="describe",
            advice="Look at the end of the log for what it printed instead.",
        )
    return flags
