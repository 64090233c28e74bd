"""A home folder that loses parts while the system runs mends itself at the next job."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.work import request

from jobs import clock, db, queue
from jobs.config import Settings
from jobs.model import Blame, Kind, State
from jobs.station import Station, as_failure, serve
from jobs.store import work


def test_folders_that_were_deleted_are_there_again_for_the_next_job(
    database: Engine, tmp_path: Path
) -> None:
    """Scratch space, logs and weights may be thrown away at any time."""
    settings = Settings(_env_file=None, home=tmp_path / "home")  # type: ignore[call-arg]
    settings.prepare()
    station = Station(settings, database, queue.make_app(settings), "build@here")
    with db.writing(database) as session:
        wanted = request("any")
        number = work.enqueue(session, [wanted], clock.now())[wanted.identity].id
    for folder in (settings.scratch, settings.logs, settings.weights, settings.artifacts):
        shutil.rmtree(folder)

    def handler(station, held, control):
        station.log_of(held).write_text("here")
        (station.settings.scratch / "build-x").mkdir()
        return lambda _session: "done"

    assert serve(station, "build", {Kind.SMOKE: handler}) == 1
    with db.reading(database) as session:
        assert work.job(session, number).state == State.SUCCEEDED


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_disk_that_fails_is_neither_a_bug_nor_the_engines_fault(number: int) -> None:
    """It is ours, named as such, and the job is tried again."""
    failure = as_failure(OSError(number, os.strerror(number), "/x"))
    assert failure.failure_class in ("disk_failed", "disk_full")
    assert failure.blame is Blame.INFRASTRUCTURE
