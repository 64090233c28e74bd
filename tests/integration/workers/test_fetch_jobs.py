"""The fetch job at a worker's desk: put off, shown, logged, cancelled; over both databases."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from support.rows import Rows
from support.weights_hub import COMMIT, REPO, WeightsHub, sha256_of, status

from jobs import clock, db, queue
from jobs.config import Settings
from jobs.control import Control
from jobs.errors import Transient, UsageError
from jobs.model import Kind, State
from jobs.resolving import Desk
from jobs.station import Station, serve
from jobs.store import catalog, weights, work
from jobs.store.leases import Lease
from jobs.submit import submit_fetch
from jobs.tables import JobRow
from workers.errands import Errand, model_file
from workers.fetching import fetch_model
from workers.weight_bringing import take_stock

FILE = "tiny-Q4_K_M.gguf"
WEIGHTS = b"GGUF" + bytes(range(256)) * 8000
HANDLERS = {Kind.FETCH_MODEL: fetch_model}
PLACE = f"{REPO}/{FILE}@{COMMIT}"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[WeightsHub]:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    with WeightsHub({FILE: WEIGHTS}) as server:
        yield server


@pytest.fixture
def station(database: Engine, hub: WeightsHub, tmp_path: Path) -> Iterator[Station]:
    settings = Settings(
        home=tmp_path / "home",
        broker_url=f"redis+socket://{tmp_path / 'nobody.sock'}",
        hf_endpoint=hub.url,
        min_free_bytes=0,
        control_seconds=0.05,
        heartbeat_seconds=0.2,
    )
    settings.prepare()
    app = queue.make_app(settings)
    yield Station(settings=settings, database=database, app=app, name="w1")
    app.close()


def desk(station: Station) -> Desk:
    return Desk(station.settings, station.database)


def submitted(station: Station, place: str = PLACE) -> int:
    job = submit_fetch(desk(station), place).last
    assert job is not None
    assert job.id is not None
    return job.id


def row(station: Station, job_id: int) -> JobRow:
    with db.reading(station.database) as session:
        return work.job(session, job_id)


def test_a_submitted_file_is_fetched_once(station: Station) -> None:
    """The job says what it did, its log too; the same wish afterwards needs no job."""
    job_id = submitted(station)
    assert submitted(station) == job_id
    assert serve(station, "build", HANDLERS) == 1
    done = row(station, job_id)
    assert (done.state, done.title) == (State.SUCCEEDED, f"fetch {REPO}:{FILE}")
    assert sha256_of(WEIGHTS)[:12] in done.message
    log = station.settings.job_log(job_id).read_text()
    assert f"fetch {FILE} of {REPO} at {COMMIT}" in log
    assert "verified" in log
    again = submit_fetch(desk(station), PLACE)
    assert (again.jobs, again.done) == ((), 1)


def test_a_machine_with_another_store_brings_what_it_lacks(
    station: Station, hub: WeightsHub, tmp_path: Path
) -> None:
    """A fetch is done once any store holds the file; a bench elsewhere fetches it there first."""
    job_id = submitted(station)
    serve(station, "build", HANDLERS)
    number = int(row(station, job_id).payload["model_file_id"])
    settings = Settings(home=tmp_path / "other", hf_endpoint=hub.url, min_free_bytes=0)
    settings.prepare()
    other = replace(station, settings=settings, name="w2")
    with db.writing(station.database) as session:
        lease = Lease(job_id, 1, 1, Kind.BENCH, "bench", {})
        model = model_file(session, number)
        assert len(weights.stores_of(session, number)) == 1
    settings.job_log(job_id).parent.mkdir(parents=True, exist_ok=True)
    [path] = Errand(other, lease, Control()).weights(model)
    assert path.is_relative_to(settings.weights)
    assert path.read_bytes() == WEIGHTS
    with db.reading(station.database) as session:
        assert len(weights.stores_of(session, number)) == 2
    path.unlink()
    take_stock(settings, station.database)
    with db.reading(station.database) as session:
        assert len(weights.stores_of(session, number)) == 1


def test_a_rig_with_a_store_of_its_own_fetches_into_it(
    station: Station, hub: WeightsHub, tmp_path: Path
) -> None:
    """The job waits for that rig's worker; afterwards its benches fetch nothing."""
    settings = Settings(home=tmp_path / "other", hf_endpoint=hub.url, min_free_bytes=0)
    settings.prepare()
    other = replace(station, settings=settings, name="w2")
    take_stock(station.settings, station.database, worker="build@a", queue="build")
    take_stock(settings, station.database, worker="bench.far@b", queue="bench.far")
    with db.writing(station.database) as session:
        Rows(session).rig(name="far")
    submit_fetch(desk(station), PLACE)
    assert serve(station, "build", HANDLERS) == 1
    job = submit_fetch(desk(station), PLACE, rig="far").last
    assert job is not None
    assert job.queue == "bench.far"
    assert serve(station, "build", HANDLERS) == 0
    assert serve(other, "bench.far", HANDLERS) == 1
    assert row(station, job.id or 0).state == State.SUCCEEDED
    sent = hub.count("cdn")
    with db.reading(station.database) as session:
        model = model_file(session, int(job.payload["model_file_id"]))
    lease = Lease(job.id or 0, 2, 1, Kind.BENCH, "bench", {})
    [path] = Errand(other, lease, Control()).weights(model)
    assert path.is_relative_to(settings.weights)
    assert hub.count("cdn") == sent
    assert submit_fetch(desk(station), PLACE, rig="far").jobs == ()
    with pytest.raises(UsageError, match="rig"):
        submit_fetch(desk(station), PLACE, rig="nobody")


def test_a_name_with_signs_of_shells_and_addresses_is_fetched(
    station: Station, hub: WeightsHub
) -> None:
    """As the hub lists it, byte for byte, from the right address."""
    name = "sub dir/a b%20c#?&+@x-Q4_K_M.gguf"
    hub.files[name] = WEIGHTS
    job_id = submitted(station, f"{REPO}/{name}")
    assert serve(station, "build", HANDLERS) == 1
    assert row(station, job_id).state == State.SUCCEEDED, row(station, job_id).message
    assert row(station, job_id).title == f"fetch {REPO}:{name}"


def test_a_quota_puts_the_job_into_the_queue_until_then(station: Station, hub: WeightsHub) -> None:
    """No attempt is counted and the worker is free; when it is due it goes on."""
    job_id = submitted(station)
    hub.faults["resolve"] = [status(429, RateLimit='"resolvers";r=0;t=290')]
    assert serve(station, "build", HANDLERS) == 1
    waiting = row(station, job_id)
    assert (waiting.state, waiting.attempts) == (State.QUEUED, 0)
    assert "asks to wait 291 s" in waiting.message
    wait = waiting.due_at - clock.now()
    assert timedelta(seconds=280) < wait <= timedelta(seconds=291)
    with db.writing(station.database) as session:
        due = work.job(session, job_id)
        due.due_at = clock.now()
        session.add(due)
    assert serve(station, "build", HANDLERS) == 1
    assert row(station, job_id).state == State.SUCCEEDED


def test_a_gated_file_fails_with_what_to_do(station: Station, hub: WeightsHub) -> None:
    """It is not tried again by itself."""
    job_id = submitted(station)
    hub.faults["resolve"] = [status(403, X_Error_Code="GatedRepo")]
    serve(station, "build", HANDLERS)
    failed = row(station, job_id)
    assert (failed.state, failed.failure_class) == (State.FAILED, "hub_gated")
    assert "FORKSCOUT_HF_TOKEN" in failed.advice


def test_a_cancel_keeps_the_part_and_a_retry_goes_on(station: Station, hub: WeightsHub) -> None:
    """Progress shows bytes, rate and time left while it runs."""
    hub.chunk_bytes, hub.pause_seconds = 4096, 0.01
    job_id = submitted(station)
    worker = threading.Thread(target=serve, args=(station, "build", HANDLERS))
    worker.start()
    deadline = time.monotonic() + 20
    while "left" not in str(row(station, job_id).progress.get("note")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    shown = row(station, job_id).progress
    assert (shown["phase"], shown["unit"], shown["total"]) == ("download", "B", len(WEIGHTS))
    assert "MB/s" in shown["note"]
    with db.writing(station.database) as session:
        work.cancel(session, job_id, clock.now())
    began = time.monotonic()
    worker.join()
    assert time.monotonic() - began < 3
    assert row(station, job_id).state == State.CANCELLED
    hub.pause_seconds = 0.0
    with db.writing(station.database) as session:
        work.retry(session, job_id, clock.now())
    serve(station, "build", HANDLERS)
    assert row(station, job_id).state == State.SUCCEEDED


def test_the_same_bytes_are_one_model(station: Station, hub: WeightsHub) -> None:
    """A second name on the hub leads to the row of the first."""
    hub.files["copy.gguf"] = WEIGHTS
    assert submitted(station) == submitted(station, f"{REPO}/copy.gguf")
    with db.reading(station.database) as session:
        assert [model.name for model in catalog.model_files(session)] == [f"{REPO}:{FILE}"]


def test_other_bytes_under_a_known_name_get_the_commit(station: Station, hub: WeightsHub) -> None:
    """A replaced file is another model."""
    submitted(station)
    hub.files[FILE] = WEIGHTS + b"more"
    submitted(station)
    with db.reading(station.database) as session:
        names = [model.name for model in catalog.model_files(session)]
    assert names == [f"{REPO}:{FILE}", f"{REPO}:{FILE}@{COMMIT[:12]}"]


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (f"{REPO}/tiny-Q4_K_S.gguf", "has no file"),
        (f"{REPO}/README.md", "not the name of a .gguf"),
        (f"{REPO}/../x.gguf", "not the name"),
        (f"{REPO}/a-00001-of-00002.gguf", "of the set"),
    ],
)
def test_a_wrong_wish_writes_nothing(
    station: Station, hub: WeightsHub, place: str, says: str
) -> None:
    """It is a usage error with the nearest name."""
    hub.files["a-00001-of-00002.gguf"] = WEIGHTS
    with pytest.raises(UsageError, match=says):
        submit_fetch(desk(station), place)
    with db.reading(station.database) as session:
        assert catalog.model_files(session) == []
        assert work.jobs(session) == []


def test_the_missing_file_of_a_set_is_named(station: Station, hub: WeightsHub) -> None:
    """Before anything is queued."""
    for number in (1, 3):
        hub.files[f"x-0000{number}-of-00003.gguf"] = b"x" * number
    with pytest.raises(UsageError, match=r"'x-00002-of-00003\.gguf'.* of the set of"):
        submit_fetch(desk(station), f"{REPO}/x-00001-of-00003.gguf")


@pytest.mark.parametrize(
    ("answer", "says"),
    [(status(401), "not there, or it is private"), (status(404), "is gone")],
)
def test_a_refusal_of_the_hub_is_said_at_once(
    station: Station, hub: WeightsHub, answer: Any, says: str
) -> None:
    """No job is queued that could only fail."""
    hub.faults["api"] = [answer]
    with pytest.raises(UsageError, match=says):
        submit_fetch(desk(station), PLACE)


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (status(500), "try again later"),
        (status(200, b"[]"), "try again later"),
        (status(302, Location="ftp://x"), "try again later"),
        (status(429, Retry_After="17"), "try again in 17 s"),
    ],
)
def test_a_passing_fault_tells_a_person_what_to_do(
    station: Station, hub: WeightsHub, answer: Any, advice: str
) -> None:
    """There is no job yet that could be tried again by itself."""
    hub.faults["api"] = [answer]
    with pytest.raises(Transient) as caught:
        submit_fetch(desk(station), PLACE)
    assert caught.value.advice.startswith(advice)
    assert "by itself" not in caught.value.advice
