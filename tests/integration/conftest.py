"""Fixtures of everything that reads repositories: a real git server in GitHub's place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.certificates import tls_for
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


@pytest.fixture
def github_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    """A server in the name of github.com and of evil.example, reached as through a proxy."""
    tls, trusted = tls_for(["github.com", "evil.example"], tmp_path / "tls")
    with GitServer(tmp_path / "outside" / "hub", tls=tls) as server:
        monkeypatch.setenv("HTTPS_PROXY", server.url)
        monkeypatch.setenv("GIT_SSL_CAINFO", str(trusted))
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for name in ("https_proxy", "NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield server
