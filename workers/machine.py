"""Looks at this machine just before a bench is taken; what follows is decided in the core."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, text
from sqlmodel import col, select

from jobs import clock
from jobs.db import reading
from jobs.machine_check import MachineFacts, Obstacle, obstacle
from jobs.station import Station
from jobs.store.rigs import rig_of
from jobs.tables import RigRow
from jobs.worker import served_queue
from workers import cards


def machine_obstacle(station: Station) -> Obstacle | None:
    """What keeps this worker's machine from a bench now."""
    return obstacle(look(station, rig_of(served_queue())))


def look(station: Station, rig: str, nvml: Any | None = None) -> MachineFacts:
    """The facts that decide; cards are asked only on a rig that measures on one."""
    with reading(station.database) as session:
        device = session.exec(select(RigRow.device).where(col(RigRow.name) == rig)).first()
    fault, held = cards.self_test(nvml) if device not in (None, "cpu") else ("", ())
    return MachineFacts(
        disk_free_bytes=shutil.disk_usage(station.settings.root).free,
        skew_seconds=clock_skew(station.database),
        card_fault=fault,
        cards=held,
    )


def clock_skew(database: Engine) -> float | None:
    """Seconds that our clock is ahead of the database's; None where both are this machine's."""
    if database.dialect.name != "postgresql":
        return None
    before = clock.now()
    with reading(database) as session:
        theirs = session.connection().execute(text("SELECT clock_timestamp()")).scalar_one()
    middle = before + (clock.now() - before) / 2
    return (middle - _in_utc(theirs)).total_seconds()


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
