"""An installation in a temporary folder, filled with the example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import Engine
from support.example import fill, write_log

from jobs import db
from jobs.config import Settings


class Installation(NamedTuple):
    """Settings, an open database and the ids of the example's rows."""

    settings: Settings
    engine: Engine
    ids: dict[str, int]


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    """A fresh installation; commands find it through the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    settings = Settings()
    engine = db.open_database(settings)
    yield Installation(settings, engine, {})
    engine.dispose()


@pytest.fixture
def example(empty: Installation) -> Installation:
    """The installation with results, jobs in every state and a log that tells too much."""
    ids = fill(empty.engine)
    log = f"\x1b[31m<script>alert(1)</script>\nartifact {empty.settings.artifacts}/ab12/bin\n"
    log += "/home/alice/build/x.cu:12: error\nHF_TOKEN=hf_abcdefghij0123456789\n"
    write_log(empty.settings, ids["failed"], log)
    return empty._replace(ids=ids)
