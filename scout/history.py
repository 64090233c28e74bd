"""The git questions that lineage and news ask, behind one protocol; it answers from one network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog
from pydantic import SecretStr

from jobs import git_contents, git_history
from jobs.git_memory import TooMuch
from scout.graph import Graph

_log = structlog.get_logger(__name__)


class History(Protocol):
    """What is known of the commits of several repositories, told apart by their numbers."""

    def graph(self, numbers: Sequence[int]) -> Graph:
        """Commits and parents of these repositories, and of what they forced away.

        Where they are too many, the largest repositories are left out, and never the first.
        """

    def changed_paths(self, shas: Sequence[str]) -> Collection[str] | None:
        """Paths that these commits touch; None where they are too many."""

    def paths_between(self, before: str, after: str) -> Collection[str] | None:
        """Paths in which two commits differ; None where that cannot be told."""

    def changed_files(self, shas: Sequence[str]) -> Mapping[str, Collection[str]] | None:
        """Paths that each of these commits touches; None where they are too many."""

    def file_ids(self, wanted: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        """Content ids by (commit, path), without reading a content."""

    def read_files(
        self, url: str, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], str]:
        """Texts by (commit, path), fetched from `url` where they are not here."""


@dataclass(frozen=True)
class GitHistory:
    """History out of the network's bare repository; only `read_files` reaches out, with `token`."""

    network: Path
    token: SecretStr | None = None
    tick: Callable[[], None] | None = None
    """Called several times a second while something is fetched; what it raises ends that."""

    def graph(self, numbers: Sequence[int]) -> Graph:
        """Commits and parents of these repositories; empty before anything was fetched."""
        if not (self.network / "HEAD").exists():
            return Graph(())
        read = list(dict.fromkeys(numbers))
        counts: dict[int, int] = {}
        left_out: set[int] = set()
        while True:
            try:
                return Graph(git_history.commits(self.network, read), left_out=left_out)
            except TooMuch:
                if len(read) <= 1:
                    raise
            counts = counts or git_history.commit_counts(self.network, read)
            largest = max(read[1:], key=lambda number: counts[number])
            read.remove(largest)
            left_out.add(largest)
            _log.warning("too much history", repository=largest, commits=counts[largest])

    def changed_paths(self, shas: Sequence[str]) -> Collection[str] | None:
        """Paths that these commits touch; None where they are too many."""
        return git_history.changed_paths(self.network, shas)

    def paths_between(self, before: str, after: str) -> Collection[str] | None:
        """Paths in which two commits differ; None where that cannot be told."""
        return git_history.paths_between(self.network, before, after)

    def changed_files(self, shas: Sequence[str]) -> Mapping[str, Collection[str]] | None:
        """Paths that each of these commits touches; None where they are too many."""
        return git_history.changed_files(self.network, shas)

    def file_ids(self, wanted: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        """Content ids by (commit, path), without reading a content."""
        return git_contents.file_ids(self.network, wanted)

    def read_files(
        self, url: str, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], str]:
        """Texts by (commit, path), fetched from `url` where they are not here."""
        return git_contents.read_files(self.network, url, wanted, tick=self.tick, token=self.token)
