"""The chain of forks that most tests of scouting watch, and who watches it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.candidates import Watch
from support.chain import Chain, build_chain
from support.hub import Hub
from support.watching import Scout


@pytest.fixture
def chain(hub: Hub) -> Chain:
    """Upstream, a fork of it, and two more down the line."""
    return build_chain(hub)


@pytest.fixture
def scout(database: Engine, tmp_path: Path) -> Scout:
    """It has seen nothing yet."""
    return Scout(database, tmp_path)


@pytest.fixture
def watch(database: Engine, tmp_path: Path, chain: Chain) -> Watch:
    """It has seen the chain once."""
    watch = Watch(database, tmp_path)
    watch.start()
    return watch
