"""A scout that looks at GitHub's forks too, and forks for it to look at."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from support.hub import Hub, Repository
from support.watching import CHAIN, NOON, Scout, bench_of

from jobs import git_network
from jobs.db import reading, writing
from jobs.sightings import RepositoryRow, StandingRow
from jobs.store import forks, refs
from scout.candidates import CandidateRound, look_at_candidates
from scout.github.governor import Tier
from scout.ranking import GitFacts

UPSTREAM, TURBO, BUUN, BEE = 1, 2, 3, 4
IDS = {"upstream": UPSTREAM, "turbo": TURBO, "buun": BUUN, "bee": BEE}
PARENTS = {TURBO: UPSTREAM, BUUN: TURBO, BEE: BUUN}
NAMES = {"upstream": "up/llama.cpp", "turbo": "tom/turbo", "buun": "buun/engine",
         "bee": "bee/engine"}  # fmt: skip


class Watch(Scout):
    """A scout whose engines GitHub has numbered, and whose candidates are looked at too."""

    def start(self) -> None:
        """Load the chain, look at it once, and give its repositories their numbers."""
        self.load(CHAIN + bench_of("upstream", "buun"))
        self.look()
        with writing(self.database) as session:
            rows = refs.repositories_of_engines(session)
            for row in rows.values():
                number = next(n for name, n in IDS.items() if NAMES[name] == row.full_name)
                row.github_id, row.parent_github_id = number, PARENTS.get(number)
                session.add(row)

    def list(self, github_id: int, full_name: str, parent: int, **facts: Any) -> int:
        """GitHub's list shows a fork; pushed to just now."""
        with writing(self.database) as session:
            row = forks.repository(session, github_id)
            if row is None:
                row = RepositoryRow(full_name=full_name, first_seen_at=self.at,
                                    last_seen_at=self.at)  # fmt: skip
            row.github_id, row.full_name, row.parent_github_id = github_id, full_name, parent
            row.root_github_id, row.tier = UPSTREAM, Tier.CANDIDATE
            row.default_branch = row.default_branch or "main"
            row.created_at, row.pushed_at = NOON - timedelta(days=30), self.at
            for name, value in facts.items():
                setattr(row, name, value)
            session.add(row)
            session.flush()
            return row.id or 0

    def glance(self, **how: Any) -> CandidateRound:
        """One round over the candidates."""
        self.at += timedelta(minutes=30)
        asked = {"ask": lambda _one: "", **how}
        return look_at_candidates(self.database, network=self.network, now=lambda: self.at, **asked)

    def git(self, number: int) -> GitFacts | None:
        """What is stored of a repository."""
        with reading(self.database) as session:
            row = session.get(StandingRow, number)
            return GitFacts.read(row.git) if row else None

    def told(self, kind: str = "") -> list[dict[str, Any]]:
        rows = [row for row in self.events().values() if kind in ("", row.kind)]
        return [row.payload["facts"] for row in rows]


def fork(hub: Hub, name: str, of: Repository, branch: str) -> Repository:
    """A fork that stands where its parent does."""
    made = hub.add(name)
    branch, _, back = branch.partition("~")
    made.git("reset", "--quiet", "--hard", f"{made.take(of, branch)}~{back or 0}")
    made.push("HEAD:refs/heads/main")
    return made


def rooms(watch: Watch) -> Collection[str]:
    """Refs of candidates that the network holds."""
    words = ["for-each-ref", "--format=%(refname)", "refs/candidates/"]
    return git_network.ask(words, mirror=watch.network).split()
