"""Commit graphs in a few letters, for what is decided from graphs alone."""

from __future__ import annotations

from jobs.git_history import CommitFacts
from scout.graph import Graph

DAY = 86_400
START = 1_770_000_000


def sha(name: str) -> str:
    """A full sha that begins with the name, in hex."""
    return name.encode().hex().ljust(40, "0")


class Story:
    """Adds commits oldest first; each is a day younger than the one before."""

    def __init__(self) -> None:
        self._commits: list[CommitFacts] = []

    def commit(
        self, name: str, *parents: str, author: str = "A", subject: str = "", authored: int = 0
    ) -> str:
        """One commit on these parents, all by their names."""
        at = START + len(self._commits) * DAY
        facts = CommitFacts(
            sha(name), tuple(map(sha, parents)), authored or at, at, author, subject or name
        )
        self._commits.append(facts)
        return facts.sha

    def line(self, names: str, on: str | None = None, author: str = "A") -> str:
        """One commit for each word, each on the one before."""
        for name in names.split():
            number = name.removeprefix("u")
            subject = f"{name} (#{10_000 + int(number)})" if author == "Up" else name
            self.commit(name, *([on] if on else []), author=author, subject=subject)
            on = name
        return sha(on or "")

    def rebased(self, name: str, of: str, *parents: str) -> str:
        """A copy of a commit on other parents, as a rebase or a cherry-pick makes it."""
        (old,) = (commit for commit in self._commits if commit.sha == sha(of))
        return self.commit(
            name, *parents, author=old.author, subject=old.subject, authored=old.authored_at
        )

    def graph(self) -> Graph:
        """All of it."""
        return Graph(reversed(self._commits))
