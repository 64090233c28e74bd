"""Which state of an engine a person means, with a watch list and its history at hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.chain import patch
from support.hub import Hub
from support.watching import Scout, engine

from jobs.config import Settings
from jobs.db import open_database, writing
from jobs.errors import UsageError
from jobs.store import catalog
from scout.capability import ARCHITECTURES
from scout.engine_states import state_meant

NOW = datetime(2026, 5, 18, tzinfo=UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of its own for every test."""
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    return tmp_path


def watch(name: str, repo: str, commit: str, label: str, *, look: bool = False) -> None:
    """An engine of the watch list with one revision of 18 May 2026."""
    settings = Settings()
    database = open_database(settings)
    scout = Scout(database, settings.home)
    scout.network = settings.network
    scout.load(engine(name, repo, "master"))
    if look:
        scout.look()
    with writing(database) as session:
        row = catalog.engine_named(session, name)
        catalog.add_revision(
            session,
            engine_id=row.id or 0,
            commit=commit,
            label=label,
            committed_at=NOW,
            now=NOW,
        )
    database.dispose()


def test_nothing_said_means_any_engine() -> None:
    """With the formats that every llama.cpp shares."""
    found = state_meant("")
    assert found.state.title == "any llama.cpp"
    assert found.archs is None


def test_a_revision_of_a_repository_we_read_has_the_state_of_its_version_or_day() -> None:
    """Whatever the watch list calls the engine."""
    watch("bee", "Anbeeld/beellama.cpp", "a" * 40, "v0.1.2")
    assert state_meant("bee@v0.1.2").state.title == "beellama@0.1"
    watch("mine", "spiritbuun/buun-llama-cpp", "b" * 40, "master-1234567")
    assert state_meant(f"mine@{'b' * 12}").state.title == "buun@2026-05"


def test_a_revision_of_a_repository_nobody_read_has_no_guessed_state() -> None:
    """It has a name, and nothing else."""
    watch("other", "o/other", "c" * 40, "v1")
    found = state_meant("other@v1").state
    assert found.title == "other@v1"
    assert found.loads_nextn is None
    assert "turbo3" not in found.cache_bits


def test_what_is_not_watched_either_is_refused_with_what_was_read() -> None:
    """Of an engine that is watched the known revisions are named."""
    with pytest.raises(UsageError, match="nothing was read of beellama at 'v7'"):
        state_meant("beellama@v7")
    watch("other", "o/other", "c" * 40, "v1")
    with pytest.raises(UsageError, match="other has no known revision 'v2'"):
        state_meant("other@v2")


@pytest.mark.needs("git")
def test_architectures_are_read_out_of_the_revisions_own_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the network of watched histories, where it holds the commit."""
    hub = Hub(tmp_path / "outside")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hub.config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    fork = hub.add("o/fork")
    source = '{ LLM_ARCH_LLAMA, "llama" }, { LLM_ARCH_QWEN35, "qwen35" },'
    patch(fork, source, "o", 1, ARCHITECTURES)
    fork.push("HEAD:refs/heads/master")
    watch("fork", "o/fork", fork.head, "v1", look=True)
    assert state_meant("fork@v1").archs == frozenset({"llama", "qwen35"})
