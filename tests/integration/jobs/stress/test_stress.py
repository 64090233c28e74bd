"""Everything goes wrong at once, with real workers: nothing is lost, done twice or left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.broker import Broker
from support.stress import JOBS, SELF_KILLERS, Storm, tally

from jobs import db

SHAPES = [
    pytest.param(("sqlite", "valkey"), id="sqlite+valkey"),
    pytest.param(
        ("postgresql", "redis_server"),
        id="postgresql+redis",
        marks=pytest.mark.needs("redis-server"),
    ),
]


@pytest.fixture(params=SHAPES)
def storm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storm]:
    """Six workers with a home each, over one database and one broker of each shape."""
    kind, make = request.param
    url = f"sqlite:///{tmp_path / 'stress.sqlite'}"
    if kind == "postgresql":
        url = request.getfixturevalue("postgres").fresh()
    broker: Broker = request.getfixturevalue(make)
    broker.start() if broker.process is None else broker.flush()
    db.migrate(url)
    engine = db.connect(url)
    found = Storm(engine, broker, tmp_path, seed=request.config.getoption("--stress-seed"))
    yield found
    found.stop()
    engine.dispose()


def test_a_storm_loses_nothing_and_does_nothing_twice(
    storm: Storm, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is counted in capitals is nought, on both shapes."""
    storm.run(seconds=request.config.getoption("--stress-seconds"))
    storm.wait_it_out(seconds=300)
    storm.stop()
    found = tally(storm)
    with capsys.disabled():
        print(f"\nstress, {request.node.callspec.id}")  # noqa: T201
        for name, count in found.items():
            print(f"  {name:<42}{count:>6}")  # noqa: T201
    assert {name: n for name, n in found.items() if name.isupper() and n} == {}
    assert found["jobs"] == JOBS
    assert found["dead letters"] >= SELF_KILLERS
