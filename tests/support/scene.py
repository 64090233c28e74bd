"""A GitHub on loopback, a database, a clock, and a scout who looks around between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine
from support.github import GitHub

from jobs.db import reading, writing
from jobs.sightings import RepositoryRow
from jobs.store import catalog, forks
from jobs.tables import EventRow
from scout.github.client import Client
from scout.github.desk import Desk
from scout.github.rounds import Round, checked, look_around

UPSTREAM, TURBO, BUUN, BEE = 612354784, 1188001001, 1188001002, 1188001003
START = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)


@dataclass
class Scene:
    """A GitHub, a database, a clock, and a scout who looks."""

    github: GitHub
    database: Engine
    now: datetime = START
    token: str = "t0ken"
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = self.worker()

    def worker(self) -> Client:
        return Client(
            token=self.token, adapter=self.github.adapter, now=lambda: self.now, read_seconds=2.0
        )

    def look(self, source: str = "github", client: Client | None = None, **how: Any) -> Round:
        desk = Desk(self.database, client or self.client, lambda: self.now)
        return look_around(desk, checked(source), **how)

    def later(self, **span: float) -> None:
        self.now += timedelta(**span)

    def engine(self, name: str, repo: str, **values: Any) -> None:
        with writing(self.database) as session:
            kept = {"family": "llama.cpp", "repo": repo, "trust": "approve", **values}
            catalog.upsert_engine(session, name, now=self.now, values=kept)

    def told(self) -> list[str]:
        with reading(self.database) as session:
            return sorted(row.key for row in catalog.events(session, limit=1000))

    def event(self, key: str) -> EventRow:
        with reading(self.database) as session:
            return next(row for row in catalog.events(session, limit=1000) if row.key == key)

    def row(self, github_id: int) -> RepositoryRow:
        with reading(self.database) as session:
            row = forks.repository(session, github_id)
            assert row is not None
            return row

    def gone_keys(self, github_id: int) -> list[str]:
        """Events that tell of that repository's end."""
        return [key for key in self.told() if key.startswith(f"gh:repo:{github_id}:gone")]
