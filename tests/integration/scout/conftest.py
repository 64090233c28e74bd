"""The chain of forks that most tests of scouting watch, and who watches it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.candidates import Watch
from support.chain import Chain, build_chain, copy_chain
from support.hub import Hub
from support.watching import Scout


@pytest.fixture(scope="session")
def first_chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Built once, to copy and never to push to."""
    return build_chain(Hub(tmp_path_factory.mktemp("chain")))


@pytest.fixture
def chain(hub: Hub, first_chain: Chain) -> Chain:
    """Upstream, a fork of it, and two more down the line."""
    return copy_chain(first_chain, hub)


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
