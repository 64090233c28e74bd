"""The state of a watched revision: one that was read, or an engine of which nothing was; pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from jobs.known_engines import ANY_ENGINE, EngineState, state_at


def state_of_revision(
    engine: str, *, repo: str, label: str = "", commit: str = "", day: date | None = None
) -> EngineState:
    """What is known of `engine` at a revision; without one, only its name.

    One without a repository, as an import brings it, is taken by its name.
    """
    named = bool(label or commit)
    known = state_at(repo or engine, label=label, commit=commit, day=day) if named else None
    return known or replace(
        ANY_ENGINE,
        engine=engine,
        name=label or commit[:12],
        source="nothing was read of it; formats that every llama.cpp shares",
        unread=True,
    )
