"""Which state of an engine a person means: one that was read by us, or a watched revision."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.errors import ScoutError, UsageError
from jobs.git import repo_url
from jobs.known_engines import ANY_ENGINE, EngineState, state_named
from jobs.store import memories
from scout.capability import ARCHITECTURES, read_capability
from scout.history import GitHistory


@dataclass(frozen=True)
class Meant:
    """A state, and the architectures that its sources name where they could be read."""

    state: EngineState
    archs: frozenset[str] | None = None


def state_meant(text: str, *, cache_types: tuple[str, ...] = ()) -> Meant:
    """The state behind `engine` or `engine@ref`; nothing said means any llama.cpp.

    What was not read by us is looked up among the watched revisions: a known day or version of the
    same repository tells its state; else it is an engine of which only the common formats are
    known. Raises UsageError for what nobody watches either.
    """
    if not text:
        return Meant(ANY_ENGINE)
    try:
        return Meant(state_named(text, cache_types=cache_types))
    except UsageError:
        watched = _watched(text)
        if watched is None:
            raise
        return watched


def _watched(text: str) -> Meant | None:
    """What a watched revision means; None where no such engine is watched."""
    settings = Settings()
    database = open_database(settings)
    try:
        with reading(database) as session:
            found = memories.watched_state(session, text)
    finally:
        database.dispose()
    if found is None:
        return None
    return Meant(found.state, _architectures(settings, found.repo, found.commit))


def _architectures(settings: Settings, repo: str, commit: str) -> frozenset[str] | None:
    """Names in the revision's own sources; None where they cannot be read now."""
    if not repo or not commit or not (settings.network / "HEAD").exists():
        return None
    try:
        wanted = [(commit, ARCHITECTURES)]
        texts = GitHistory(settings.network).read_files(repo_url(repo), wanted)
    except ScoutError:
        return None
    read = read_capability({path: text for (_, path), text in texts.items()})
    return read.archs or None
