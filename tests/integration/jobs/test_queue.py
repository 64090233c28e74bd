"""The doorbell over real brokers of both makes, and a real worker that hears it."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from structlog.testing import capture_logs
from support.rows import NOON, Rows
from support.waiting import wait_for

from jobs import clock, db, queue
from jobs.config import Settings
from jobs.model import Kind, Lane, State
from jobs.planner import JobRequest, digest
from jobs.station import Station
from jobs.store import fleet, line, upkeep, work

ROOT = Path(__file__).parents[3]


@pytest.fixture
def station(make_station, home, broker):
    """A desk over the home's own database, which the worker process opens too."""
    home.mkdir()
    database = db.open_database(Settings(home=home))
    yield make_station(database, broker)
    database.dispose()


class Reader:
    """Pickled into a message: whoever unpickles it makes a folder."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@contextmanager
def worker(station: Station, **environment: str):
    """A real worker process of the build queue; drained at the end."""
    log = station.settings.logs / "worker.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jobs.cli", "worker", "build"],
            cwd=station.settings.root,
            env={
                **os.environ,
                "FORKSCOUT_HOME": str(station.settings.root),
                "FORKSCOUT_BROKER_URL": station.settings.broker_url,
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: greeted(station) or process.poll() is not None, seconds=60, what="worker")
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def greeted(station):
    with db.reading(station.database) as session:
        return fleet.workers(session)


def queue_fetches(station, count, start=0):
    """Jobs that need nothing but a file that is there already; their numbers."""
    requests = []
    with db.writing(station.database) as session:
        rows = Rows(session)
        for number in range(start, start + count):
            content = f"weights {number}".encode()
            sha256 = hashlib.sha256(content).hexdigest()
            (station.settings.weights / f"{sha256}.gguf").write_bytes(content)
            model = rows.model_file(name=f"m{number}", sha256=sha256, stored_in=None)
            requests.append(
                JobRequest(
                    kind=Kind.FETCH_MODEL,
                    queue="build",
                    lane=Lane.FRESH,
                    identity=digest(sha256),
                    title=f"fetch m{number}",
                    payload={"model_file_id": model.id},
                    reason="a test",
                )
            )
        return [row.id for row in work.enqueue(session, requests, clock.now()).values()]


def all_served_once(station, ids):
    with db.reading(station.database) as session:
        rows = [work.job(session, each) for each in ids]
    assert all(row.attempts <= 1 for row in rows)
    return all(row.state == State.SUCCEEDED for row in rows)


def waiting(broker, name="build"):
    with broker.client() as client:
        return client.llen(name)


def test_a_ring_is_one_message(station, broker):
    """Into the queue it is for; a sweep counts all priority keys, adds what is missing (C46)."""
    assert queue.ring(station.app, "build")
    assert waiting(broker) == 1
    assert queue.sweep(station.app, {"build": 3, "publish": 1}) == {"build": 2, "publish": 1}
    assert queue.sweep(station.app, {"build": 3, "publish": 1}) == {}
    assert (waiting(broker), waiting(broker, "publish")) == (3, 1)


def test_a_long_queue_does_not_fill_the_broker(station, broker):
    """However many jobs wait, only so many doorbells do."""
    assert queue.sweep(station.app, {"build": 100_000}) == {"build": queue.MOST_RINGS}
    assert queue.sweep(station.app, {"build": 100_000}) == {}
    assert waiting(broker) == queue.MOST_RINGS


def test_a_broker_that_is_away_is_not_waited_for(station, broker):
    """The ring says False and warns once; when the broker is back, the next one is heard."""
    broker.kill()
    began = time.monotonic()
    with capture_logs() as logs:
        assert not queue.ring(station.app, "build")
    assert time.monotonic() - began < 10
    assert [entry["event"] for entry in logs] == ["doorbell not heard"]
    broker.start()
    assert queue.ring(station.app, "build")


def test_a_broker_that_takes_no_writes_costs_a_warning_and_no_job(station, broker):
    """Full, or unable to save: the row stands, the ring says False, a later sweep rings (C50)."""
    ids = queue_fetches(station, 1)
    with broker.client() as client:
        limit = client.config_get("maxmemory")["maxmemory"]
        client.config_set("maxmemory", 1)
    try:
        with capture_logs() as logs:
            assert not queue.ring(station.app, "build")
    finally:
        with broker.client() as client:
            client.config_set("maxmemory", limit)
    assert [entry["event"] for entry in logs] == ["doorbell not heard"]
    with db.reading(station.database) as session:
        due = line.due_queues(session, clock.now(), most=queue.MOST_RINGS)
    assert queue.sweep(station.app, due) == {"build": len(ids)}


def test_a_forgetful_broker_loses_no_job(station, broker):
    """Twelve jobs, every doorbell flushed: one sweep, each is served exactly once (case C50)."""
    ids = queue_fetches(station, 12)
    for _ in ids:
        queue.ring(station.app, "build")
    broker.flush()
    with worker(station):
        with db.reading(station.database) as session:
            queue.sweep(station.app, line.due_queues(session, clock.now(), most=queue.MOST_RINGS))
        wait_for(lambda: all_served_once(station, ids), seconds=60, what="all of them")
        broker.flush()
        more = queue_fetches(station, 2, start=12)
        queue.sweep(station.app, {"build": len(more)})
        wait_for(lambda: all_served_once(station, more), seconds=60, what="after the flush")


def test_a_worker_that_hears_nothing_while_work_waits_starts_again(station, broker):
    """The broker was restarted and forgot us: the process ends, the next one looks (case C39)."""
    quick = {"FORKSCOUT_DEAF_SECONDS": "1", "FORKSCOUT_HEARTBEAT_SECONDS": "0.2"}
    with worker(station, **quick) as process:
        ids = queue_fetches(station, 1)
        wait_for(lambda: process.poll() is not None, seconds=60, what="the end of the worker")
    assert "doorbell unheard" in (station.settings.logs / "worker.log").read_text()
    with worker(station):
        wait_for(lambda: all_served_once(station, ids), seconds=60, what="the job")


JUNK = (
    b"no json",
    b"\xff\xfe\x00",
    b"[]",
    b"null",
    b"{}",
    b'{"properties": {}, "body": "x"}',
    b'{"body": 7, "headers": [], "properties": {"delivery_tag": null}}',
    b"{" * 5000,
    b"9" * 5000,
)


def test_what_is_no_message_is_thrown_away(station, broker):
    """The worker that popped it goes on; whatever it was, it is said and served no further."""
    ids = queue_fetches(station, 1)
    with worker(station) as process:
        with broker.client() as client:
            client.lpush("build", *JUNK)
        queue.ring(station.app, "build")
        wait_for(lambda: all_served_once(station, ids), seconds=60, what="the job")
        wait_for(lambda: not waiting(broker), seconds=60, what="an empty queue")
        assert process.poll() is None
    said = (station.settings.logs / "worker.log").read_text()
    assert said.count("no message") >= len(JUNK) - 3


def test_a_message_of_a_job_that_is_over_is_acknowledged_and_that_is_all(station, broker):
    """A worker that was away for days hears of a job that expired meanwhile (case C34)."""
    with db.writing(station.database) as session:
        row = Rows(session).job(queue="build", state=State.QUEUED, expires_at=NOON)
        session.flush()
        number = row.id
    for _ in range(3):
        queue.ring(station.app, "build")
    with db.writing(station.database) as session:
        upkeep.expire(session, clock.now())
    with worker(station):
        wait_for(lambda: waiting(broker) == 0, seconds=60, what="an empty queue")
    with db.reading(station.database) as session:
        found = work.job(session, number)
    assert (found.state, found.fence) == (State.EXPIRED, 0)


def test_what_the_worker_hears_is_harmless(station, broker, tmp_path):
    """Pickle is refused, repeated doorbells find nothing, no result stays (case C49)."""
    trace = tmp_path / "unpickled"
    with worker(station) as process:
        station.app.send_task(
            "workers.look", args=[Reader(trace)], queue="build", serializer="pickle"
        )
        ids = queue_fetches(station, 1)
        with broker.client() as client:
            before = int(client.info("memory")["used_memory"])
        for _ in range(1000):
            queue.ring(station.app, "build")
        wait_for(lambda: all_served_once(station, ids), seconds=60, what="the job")
        wait_for(lambda: waiting(broker) == 0, seconds=120, what="an empty queue")
        with broker.client() as client:
            keys = {key.decode() for key in client.scan_iter()}
            grown = int(client.info("memory")["used_memory"]) - before
        assert process.poll() is None
    assert not trace.exists()
    assert "Refusing to deserialize" in (station.settings.logs / "worker.log").read_text()
    assert all_served_once(station, ids)
    assert not [key for key in keys if key.startswith("celery-task-meta")]
    assert len(keys) < 10, keys
    assert grown < 5_000_000


def test_every_name_that_is_rung_is_a_task(tmp_path):
    """Doorbells and schedule name tasks that exist; a misspelt one would ring unheard."""
    app = queue.make_app(Settings(home=tmp_path), rooms=("scout", "workers", "web"))
    app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    looks = {f"{queue.room_of(name)}.look" for name in ("build", "publish", "bench.cpu")}
    assert scheduled | looks | {"scout.watch"} <= set(app.tasks)


def test_redis_and_kombu_are_pinned_as_a_pair():
    """A mismatch looks connected and takes no jobs: both are capped, locked and agree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {r.name: r.specifier for r in map(Requirement, project["dependencies"])}
    locked = dict(
        line.split(" ")[0].split("==")
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if "==" in line.split(" ")[0]
    )
    for name in ("celery", "kombu", "redis"):
        assert {"<"} <= {each.operator for each in wanted[name]}
        assert locked[name] == version(name)
    offered = [Requirement(line) for line in requires("kombu") or ()]
    (pair,) = [r for r in offered if r.name == "redis"]
    assert version("redis") in pair.specifier


def test_a_queue_is_as_long_as_all_of_its_priorities(station, broker):
    """Celery keeps a list for each priority: what waits in any of them was rung (C46)."""
    for priority in (0, 3, 6, 9):
        station.app.send_task("workers.look", args=("build",), queue="build", priority=priority,
                              ignore_result=True)  # fmt: skip
    assert waiting(broker) < 4, "they are in lists of their own"
    assert queue.sweep(station.app, {"build": 4}) == {}
    assert queue.sweep(station.app, {"build": 5}) == {"build": 1}


def test_a_broker_that_cannot_write_loses_no_job(station, broker):
    """It refuses the message (MISCONF, its disk is full): the job was taken and waits (C50)."""
    in_the_way = broker.folder / "dump.rdb"
    in_the_way.mkdir()
    (in_the_way / "nothing").touch()
    with broker.client() as client:
        client.config_set("save", "3600 1")
        client.set("something", "to save")
        client.bgsave()
        wait_for(
            lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err",
            seconds=20,
            what="a save that fails",
        )
    ids = queue_fetches(station, 1)
    with capture_logs() as logs:
        assert not queue.ring(station.app, "build")
    with broker.client() as client:
        client.config_set("save", "")
    shutil.rmtree(in_the_way)
    assert ["MISCONF" in entry["cause"] for entry in logs] == [True]
    with db.reading(station.database) as session:
        assert work.job(session, ids[0]).state == State.QUEUED
