"""A message says "look" and nothing else: it chooses neither queue nor job, whoever sent it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.work import NOW, request

from jobs import clock, db, queue
from jobs.config import Settings
from jobs.model import Kind, State
from jobs.station import Station, serve
from jobs.store import fleet, work
from jobs.worker import SERVED, open_station
from web.tasks import look as look_web
from workers.tasks import look as look_workers


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    return Settings()


@pytest.mark.parametrize("look", [look_web, look_workers])
@pytest.mark.parametrize("named", ["publish", "bench.other", "../../x", "", 7, None, ["build"]])
def test_a_doorbell_of_another_queue_is_ignored(
    look, named: object, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bench of another rig, or a job we have no hands for, is not taken from here."""
    monkeypatch.setenv(SERVED, "build")
    station = open_station(settings, "build")
    with db.writing(station.database) as session:
        for name in ("publish", "bench.other", "../../x"):
            work.enqueue(session, [request(name, queue=name)], NOW)
    look(named)
    with db.reading(station.database) as session:
        assert work.count_by_state(session) == {State.QUEUED: 3}
        assert not fleet.workers(session)
    station.database.dispose()


def test_a_kind_this_release_does_not_know_ends_with_advice(
    settings: Settings, database: Engine
) -> None:
    """A row of another release is refused in words, not leased again and again."""
    settings.prepare()
    station = Station(settings, database, queue.make_app(settings), "build@here")
    with db.writing(database) as session:
        wanted = request("later", kind=Kind.BISECT)
        number = work.enqueue(session, [wanted], clock.now())[wanted.identity].id
    assert serve(station, "build", {}) == 1
    with db.reading(database) as session:
        job = work.job(session, number)
    assert (job.state, job.failure_class) == (State.FAILED, "refused")
    assert "another release" in job.advice
