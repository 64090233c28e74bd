"""A model hub on loopback, a database, a clock, and a scout who looks around between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from support.hugging_face import START, HuggingFace

from jobs.db import reading, writing
from jobs.sightings import HubFileRow, HubRepositoryRow, SourceStateRow
from jobs.store import catalog, hub, source_states
from jobs.tables import EventRow
from scout.hub.client import Client
from scout.hub.desk import Desk
from scout.hub.rounds import HubRound, checked, look_around

ONLY = "spiritbuun/x-GGUF"


@dataclass
class HubScene:
    """A hub, a database, a clock, and a scout who looks."""

    hub: HuggingFace
    database: Engine
    home: Path
    now: datetime = START
    token: str = ""
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = Client(
            home=self.home,
            token=self.token,
            base=self.hub.url,
            now=lambda: self.now,
            read_seconds=1.0,
            whole_seconds=3.0,
        )

    def look(self, source: str = "hf", **how: Any) -> HubRound:
        self.hub.now = self.now
        return look_around(
            Desk(self.database, self.client, lambda: self.now), checked(source), **how
        )

    def later(self, **span: float) -> None:
        self.now += timedelta(**span)
        self.hub.now = self.now

    def watch(self, *places: str, roles: Iterable[str] = ("target", "drafter")) -> None:
        with writing(self.database) as session:
            for place in places:
                hub.upsert_watch(session, place, roles=list(roles), now=self.now)

    def events(self) -> list[EventRow]:
        with reading(self.database) as session:
            return sorted(catalog.events(session, limit=1000), key=lambda row: row.id or 0)

    def kinds(self) -> list[str]:
        return [row.kind for row in self.events()]

    def event(self, kind: str) -> EventRow:
        (row,) = [each for each in self.events() if each.kind == kind]
        return row

    def row(self, hub_id: str) -> HubRepositoryRow:
        with reading(self.database) as session:
            row = hub.repository(session, hub_id)
            assert row is not None
            return row

    def files(self, hub_id: str, *, gone: bool = False) -> dict[str, HubFileRow]:
        with reading(self.database) as session:
            row = hub.repository(session, hub_id)
            assert row is not None
            return {each.path: each for each in hub.files(session, row.id or 0, gone=gone)}

    def state(self, key: str) -> SourceStateRow | None:
        """What a source remembers under a key."""
        with reading(self.database) as session:
            return source_states.source_state(session, key)

    @property
    def only_id(self) -> str:
        """The id of the first repository there is."""
        return next(iter(self.hub.repos.values())).hub_id
