"""What one job's handler needs from its station, under one roof; it decides nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from sqlmodel import Session

from jobs import clock
from jobs.control import Control
from jobs.db import database_now, reading, writing
from jobs.engines.base import Engine
from jobs.engines.registry import family
from jobs.errors import JobFailure, Permanent
from jobs.hub import Hub
from jobs.lifecycle import NOT_APPROVED
from jobs.model import Blame, Revision, Trust
from jobs.payloads import BuildPayload, by_dockerfile
from jobs.station import Station
from jobs.store import approvals, origins, weights
from jobs.store import hub as hub_rows
from jobs.store.leases import Lease
from jobs.store.origins import Origin
from jobs.tables import EngineRow, ModelFileRow, RevisionRow
from workers.cages import Cage, candidates, choose, find_cage
from workers.sandbox import Sandbox
from workers.weight_bringing import bring, store_of

ARTIFACT_PLACE = "/artifact"


@lru_cache(maxsize=1)
def cage_here(setting: str, docker_host: str) -> Cage:
    """This process's cage with what leaks out of it; proven once."""
    return find_cage(candidates(setting, docker_host))


@dataclass(frozen=True)
class Errand:
    """One lease at one station."""

    station: Station
    held: Lease
    control: Control

    @cached_property
    def log(self) -> Path:
        """The log of this attempt; every part of the job appends to it."""
        return self.station.log_of(self.held)

    def say(self, words: str) -> None:
        """Write one line of our own into the log."""
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"--- {words}\n")

    @cached_property
    def marker(self) -> str:
        """Names installation, job and attempt in the environment of every process started."""
        return f"{marker_prefix(self.station)}{self.held.marker}"

    def sandbox_for(self, engine: EngineRow, *, devices: Sequence[str] = ()) -> Sandbox:
        """The sandbox this engine's code may run in, with a card's devices; raises without one."""
        trust = Trust(engine.trust)
        if trust is Trust.PACKAGE and family(engine.family).FOREIGN_SOURCE:
            trust = Trust.AUTO
        settings = self.station.settings
        cage = cage_here(settings.sandbox, settings.docker_host)
        return choose(settings.sandbox, trust, cage=cage, devices=devices)

    def check_approval(self, build: BuildPayload) -> None:
        """Raise where a person has to let this code in first: the word may have ended meanwhile."""
        dockerfile = by_dockerfile(build.model_dump())
        with reading(self.station.database) as session:
            now = database_now(session)
            found = approvals.missing(session, build.revision_id, now, dockerfile=dockerfile)
        if found is not None:
            raise _not_approved(found)

    def check_not_taken_back(self, revision_id: int) -> None:
        """Raise where a person let this code in and took that back."""
        with reading(self.station.database) as session:
            found = approvals.taken_back(session, revision_id)
        if found is not None:
            raise _not_approved(found)

    def weights(self, model: ModelFileRow) -> tuple[Path, ...]:
        """The verified weight files, fetched where they are not there; engines open the first."""
        settings = self.station.settings
        store = store_of(settings, self.station.database, say=self.say)
        paths = bring(
            model,
            store,
            hub=Hub(settings.hf_endpoint, settings.hf_token),
            scratch=settings.scratch,
            control=self.control,
            log=self.log,
            say=self.say,
            places=self._places,
        )
        size_bytes = sum(path.stat().st_size for path in paths)
        with writing(self.station.database) as session:
            weights.say_stored(session, model.sha256, size_bytes, store=store.name, now=clock.now())
        return paths

    def _places(self, sha256: str) -> list[str]:
        with reading(self.station.database) as session:
            return hub_rows.places_of(session, sha256)


def _not_approved(found: approvals.Missing) -> JobFailure:
    return JobFailure(
        found.says,
        failure_class=NOT_APPROVED,
        blame=Blame.CONFIGURATION,
        advice=found.advice,
    )


def marker_prefix(station: Station) -> str:
    """Names this installation's worker; leftovers of its earlier lives are found by it."""
    home = hashlib.sha256(os.fsencode(station.settings.root)).hexdigest()[:12]
    return f"{home}/{station.name.partition('@')[0]}/"


@dataclass(frozen=True)
class Subject:
    """The revision a job is about, with its rows and its family's module.

    `origin` is where its repository is asked for now, where it has one.
    """

    engine_row: EngineRow
    revision_row: RevisionRow
    revision: Revision
    family: Engine
    origin: Origin | None = None


def subject(session: Session, revision_id: int) -> Subject:
    """Look a revision up; raises `Permanent` where it is gone."""
    row = session.get(RevisionRow, revision_id)
    engine = session.get(EngineRow, row.engine_id) if row else None
    if row is None or engine is None:
        raise Permanent(f"revision {revision_id} is not in the database")
    origin = origins.origin_of(session, engine) if engine.repo else None
    value = Revision(
        engine=engine.name,
        family=engine.family,
        commit=row.commit,
        label=row.label,
        source=origin.repo if origin else engine.package or "",
    )
    return Subject(engine, row, value, family(engine.family), origin)


def read_subject(station: Station, revision_id: int) -> Subject:
    """`subject` in a session of its own."""
    with reading(station.database) as session:
        return subject(session, revision_id)


def model_file(session: Session, model_file_id: int) -> ModelFileRow:
    """Look a model file up; raises `Permanent` where it is gone."""
    row = session.get(ModelFileRow, model_file_id)
    if row is None:
        raise Permanent(f"model file {model_file_id} is not in the database")
    return row
