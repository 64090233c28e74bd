"""A worker's desk for real builds of a tiny engine that git finds under GitHub's address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlmodel import select
from support.hub import Repository
from support.rows import Rows

from jobs import db, queue
from jobs.config import Settings
from jobs.model import Kind
from jobs.resolving import Desk
from jobs.station import Station, serve
from jobs.store import catalog
from jobs.submit import Submitted, submit_build
from jobs.tables import BuildRow, JobRow
from workers.building import build


@dataclass
class Workshop:
    """One installation with one engine; `work` does what is due in the queue of builds."""

    station: Station
    repository: Repository
    said: list[str] = field(default_factory=list)

    @property
    def database(self) -> Engine:
        return self.station.database

    def ask(self, ref: str | None = None, *, engine: str = "tiny") -> Submitted:
        desk = Desk(self.station.settings, self.database)
        return submit_build(desk, engine_name=engine, ref=ref, target="cpu")

    def ask_via(self, ref: str | None = None, **entry: Any) -> JobRow:
        """Ask for a build as one `[[engine.build]]` of the watch list says."""
        with db.writing(self.database) as session:
            engine = catalog.engine_named(session, "tiny")
            engine.targets = [entry]
            session.add(engine)
        return self.ask(ref).jobs[0]

    def work(self) -> int:
        return serve(self.station, "build", {Kind.BUILD: build})

    def make(self, ref: str | None = None, *, engine: str = "tiny") -> JobRow:
        """Ask for a build, do it, and return the job as it ended."""
        job = self.ask(ref, engine=engine).jobs[0]
        self.work()
        return self.job(job.id or 0)

    def job(self, number: int) -> JobRow:
        with db.reading(self.database) as session:
            return session.get_one(JobRow, number)

    def builds(self) -> list[BuildRow]:
        with db.reading(self.database) as session:
            return list(session.exec(select(BuildRow).order_by(BuildRow.id)))

    def rows(self, act: Callable[[Rows], Any]) -> Any:
        with db.writing(self.database) as session:
            return act(Rows(session))


def workshop(database: Engine, home: Path, repository: Repository, **engine: Any) -> Workshop:
    """A workshop whose engine `tiny` lies at `owner/tiny`."""
    settings = Settings(
        home=home,
        broker_url="redis://127.0.0.1:1/0",
        control_seconds=0.1,
        heartbeat_seconds=0.2,
        min_free_bytes=0,
    )
    settings.prepare()
    made = Workshop(Station(settings, database, queue.make_app(settings), "w1"), repository)
    values = {"name": "tiny", "repo": "owner/tiny"} | engine
    made.rows(lambda rows: (rows.engine(**values), rows.rig(name="cpu")))
    return made
