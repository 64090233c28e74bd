"""A scout that watches repositories of a hub into a database, one round at a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine

from jobs.db import reading, writing
from jobs.store import catalog
from jobs.tables import EventRow
from scout.history import GitHistory
from scout.loading import apply
from scout.reading import parse
from scout.ref_watch import watch_refs
from scout.watch import Summary

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def engine(name: str, repo: str, branch: str = "", parent: str = "", trust: str = "auto") -> str:
    """One engine of a watch list."""
    more = f'branches = ["{branch}"]\n' if branch else ""
    more += f'parent = "{parent}"\n' if parent else ""
    return (
        f'[[engine]]\nname = "{name}"\nfamily = "llama.cpp"\nrepo = "{repo}"\ntrust = "{trust}"\n'
        f'{more}[[engine.build]]\nrig = "cpu"\nvia = "cmake"\n'
    )


def bench_of(*engines: str) -> str:
    """A stack for each engine, on one model file."""
    model = (
        '[[model]]\nname = "m"\npackage = "tiny"\nversion = "1.0"\n'
        f'sha256 = "{"a" * 64}"\nmodel_class = "tiny"\n'
    )
    return model + "".join(
        f'[[stack]]\nname = "s-{name}"\nengine = "{name}"\ntarget = "m"\n' for name in engines
    )


CHAIN = (
    engine("upstream", "up/llama.cpp", "master")
    + engine("turbo", "tom/turbo", "feature/turbo", "upstream", trust="approve")
    + engine("buun", "buun/engine", "master", "turbo")
    + engine("bee", "bee/engine", "main", "buun")
)


class Scout:
    """Rounds of watching; each is an hour after the one before."""

    def __init__(self, database: Engine, folder: Path) -> None:
        self.database = database
        self.network = folder / "git" / "network.git"
        self.history = GitHistory(self.network)
        self.at = NOON

    def load(self, text: str) -> None:
        """Watch what this list names."""
        with writing(self.database) as session:
            apply(session, parse(text, "list.toml"), self.at)

    def look(self, *, force: bool = False) -> Summary:
        """One round."""
        self.at += timedelta(hours=1)
        return watch_refs(
            self.database,
            history=self.history,
            network=self.network,
            now=lambda: self.at,
            force=force,
        )

    def events(self) -> Mapping[str, EventRow]:
        """Everything told so far, by key."""
        with reading(self.database) as session:
            return {row.key: row for row in catalog.events(session, limit=1000)}
