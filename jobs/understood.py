"""What an engine understands: out of its newest build, else of its source; it builds nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from jobs import git, git_contents
from jobs.db import reading
from jobs.dialect.options import Option
from jobs.engines.registry import family
from jobs.errors import UsageError
from jobs.resolving import Desk, resolve
from jobs.store import builds, catalog, origins
from jobs.tables import EngineRow


@dataclass(frozen=True)
class Understood:
    """The options of one revision; `build_id` is None where they were read out of the source."""

    engine: str
    label: str
    commit: str
    build_id: int | None
    options: tuple[Option, ...]

    @property
    def basis(self) -> str:
        """Where that is from, for people."""
        where = f"build {self.build_id}" if self.build_id is not None else "the source"
        return f"{self.engine} {self.label} at {self.commit[:12]}, from {where}"


def understood(desk: Desk, engine: str, *, source_only: bool = False) -> Understood:
    """What `NAME` or `NAME@REF` understands; a build that told it goes before the source.

    Raises `UsageError` where there is neither.
    """
    name, _, ref = engine.partition("@")
    with reading(desk.database) as session:
        row = catalog.engine_named(session, name)
    if not source_only and not ref:
        found = _of_build(desk, row, None)
        if found is not None:
            return found
    revision = resolve(desk, row, ref or None)
    if not source_only:
        found = _of_build(desk, row, revision.commit)
        if found is not None:
            return found
    return Understood(
        row.name, revision.label, revision.commit, None, _read(desk, row, revision.commit)
    )


def _of_build(desk: Desk, engine: EngineRow, commit: str | None) -> Understood | None:
    with reading(desk.database) as session:
        known = builds.newest_of(session, cast(int, engine.id), commit=commit)
        options = builds.options_of(session, known.id) if known else None
    if known is None or options is None:
        return None
    return Understood(engine.name, known.label, known.commit, known.id, options)


def _read(desk: Desk, engine: EngineRow, commit: str) -> tuple[Option, ...]:
    recipe = family(engine.family)
    options: tuple[Option, ...] = ()
    if engine.repo and recipe.OPTION_SOURCES:
        with reading(desk.database) as session:
            origin = origins.origin_of(session, engine)
        texts = git_contents.read_files(
            desk.settings.mirror_of(origin.repo),
            git.repo_url(origin.repo),
            [(commit, path) for path in recipe.OPTION_SOURCES],
            token=desk.settings.github_token,
        )
        options = tuple(recipe.read_source({path: text for (_, path), text in texts.items()}))
    if not options:
        raise UsageError(
            f"nothing tells what {engine.name} understands at {commit[:12]}",
            advice=f"build it: forkscout build --engine {engine.name} --ref {commit}",
        )
    return options
