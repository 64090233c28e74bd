"""Looks at this machine just before a bench is taken; what follows is decided in the core."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
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
from workers.gpu import Card


def machine_obstacle(station: Station) -> Obstacle | None:
    """What keeps this worker's machine from a bench now."""
    return obstacle(look(station, rig_of(served_queue())))


def look(station: Station, rig: str, nvml: Any | None = None) -> MachineFacts:
    """The facts that decide; cards are asked only on a rig that measures on one."""
    with reading(station.database) as session:
        device = session.exec(select(RigRow.device).where(col(RigRow.name) == rig)).first()
    fault, held = cards.self_test(nvml) if device not in (None, "cpu") else ("", ())
    facts = MachineFacts(
        disk_free_bytes=shutil.disk_usage(station.settings.root).free,
        skew_seconds=clock_skew(station.database),
        card_fault=fault,
        cards=held,
        held_before=_held_before(station),
    )
    if held and not facts.left_bytes:
        forget_card(station)
    return facts


def remember_card(station: Station, card: Card | None) -> None:
    """Keep what a card holds before a bench: however that ends, the next one waits for it.

    On disk, so that it outlives a worker's pool process that was killed.
    """
    held = card.reading(())["device_bytes"] if card else None
    if held is not None:
        _note(station).write_text(str(held))


def forget_card(station: Station) -> None:
    """Take what the card holds now for given."""
    _note(station).unlink(missing_ok=True)


def _held_before(station: Station) -> int | None:
    try:
        text = _note(station).read_text()
    except OSError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None


def _note(station: Station) -> Path:
    return station.settings.locks / f"card.{station.name.partition('@')[0]}"


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
