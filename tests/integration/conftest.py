"""Fixtures of everything that reads repositories: a real git server in GitHub's place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.git_server import GitServer
from support.hub import Hub


@pytest.fixture
def git_server(tmp_path: Path) -> Iterator[GitServer]:
    """`git http-backend` on loopback over the repositories of `hub`."""
    with GitServer(tmp_path / "outside" / "hub") as server:
        yield server


@pytest.fixture
def hub(tmp_path: Path, git_server: GitServer, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """Repositories that git finds under GitHub's address."""
    hub = Hub(tmp_path / "outside", server=git_server)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hub.config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return hub
