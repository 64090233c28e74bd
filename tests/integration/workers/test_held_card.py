"""A card that did not come back after a bench keeps the next one waiting, and lets it go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Engine
from support.offline_stub import SpokenCard
from support.rows import Rows
from support.work import request

from jobs import db, queue
from jobs.config import Settings
from jobs.machine_check import obstacle
from jobs.model import Kind
from jobs.station import Station, serve
from jobs.store import fleet, work, workshop
from jobs.tables import WorkerRow
from workers.machine import forget_card, look, remember_card

QUEUE = "bench.big"
GIB = 2**30


class Driver(SimpleNamespace):
    """A binding of NVML with one large card that holds `used` bytes."""

    NVMLError = RuntimeError
    used = GIB

    def nvmlInit(self) -> None: ...  # noqa: N802 - the binding's names

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, _card: int) -> str:  # noqa: N802
        return "H200"

    def nvmlDeviceGetMemoryInfo(self, _card: int) -> Any:  # noqa: N802
        return SimpleNamespace(used=self.used, total=140 * GIB)


class Card(SpokenCard):
    """A card that held a gibibyte before the bench."""

    def reading(self, pids: Any) -> dict[str, Any]:
        return super().reading(pids) | {"device_bytes": GIB}


@pytest.fixture
def station(database: Engine, tmp_path: Any) -> Station:
    settings = Settings(_env_file=None, home=tmp_path / "home")  # type: ignore[call-arg]
    settings.prepare()
    station = Station(settings, database, queue.make_app(settings), f"{QUEUE}@here")
    with db.writing(database) as session:
        Rows(session).rig(name="big", device="cuda")
        now = db.database_now(session)
        fleet.greet(
            session,
            WorkerRow(name=station.name, queue=QUEUE, host="h", pid=1, started_at=now, beat_at=now),
        )
        work.enqueue(session, [request("next", queue=QUEUE)], now)
    return station


def served(station: Station, driver: Driver) -> int:
    """How many jobs are taken while the driver says this."""
    handlers = {Kind.SMOKE: lambda *_: lambda _session: "done"}
    return serve(station, QUEUE, handlers, check=lambda it: obstacle(look(it, "big", nvml=driver)))


def shown(station: Station) -> Any:
    """The worker as its page tells it."""
    with db.reading(station.database) as session:
        now = db.database_now(session)
        [found] = workshop.workers_at_work(session, now, silent_seconds=45)
    return found


def test_a_rig_takes_no_bench_before_its_card_is_free_again(station):
    """Three gibibytes stay of 140: too few to be another program, and not what was there before."""
    remember_card(station, Card())
    driver = Driver(used=4 * GIB)
    assert served(station, driver) == 0
    worker = shown(station)
    assert worker.condition == "held"
    assert "3,072 MiB more are held than before the last bench" in worker.trouble
    assert "restart this worker" in worker.advice
    driver.used = GIB + 400 * 2**20
    assert served(station, driver) == 1
    assert (shown(station).condition, shown(station).trouble) == ("idle", "")


def test_what_comes_after_the_card_was_seen_free_is_not_of_the_bench(station):
    """A desktop that opens later is judged by the rule for other programs alone."""
    remember_card(station, Card())
    assert obstacle(look(station, "big", nvml=Driver())) is None
    assert obstacle(look(station, "big", nvml=Driver(used=4 * GIB))) is None


def test_a_restart_takes_what_is_held_for_given(station):
    """A person looked at it and wants benches all the same."""
    remember_card(station, Card())
    assert obstacle(look(station, "big", nvml=Driver(used=4 * GIB))).code == "memory_held"
    forget_card(station)
    assert served(station, Driver(used=4 * GIB)) == 1
