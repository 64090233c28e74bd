"""How the real chain ranks, out of mirrors in the folder `FORKSCOUT_MIRRORS` (see test_replay).

Stars, releases and mentions are left out, so that git alone decides. A copy of buun without work
of its own, and beellama as if GitHub had lost whose fork it is, stand beside.
Run with -s for the table.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.mirrors import FORKS, LIST, Past, chain_of, git, refs_of
from support.watching import Scout

from jobs.db import reading, writing
from jobs.sightings import RepositoryRow
from jobs.store import forks, refs
from scout.candidates import look_at_candidates
from scout.engine_facts import keep_engine_facts
from scout.github.governor import Tier
from scout.ranked_forks import RankedFork, best_first, ranked_forks

NOW = datetime(2026, 5, 22, tzinfo=UTC)
NUMBERS = {"ggml-org/llama.cpp": 1, FORKS["turboquant"][0]: 2, FORKS["buun"][0]: 3,
           FORKS["beellama"][0]: 4}  # fmt: skip
COPIES = {"somebody/buun-llama-cpp": (10, "buun", 3), "somebody/beellama.cpp": (11, "beellama", 1)}


def _ranks(sqlite: Engine, hub: Path, tmp_path: Path) -> dict[str, RankedFork]:
    mirrors = Path(os.environ["FORKSCOUT_MIRRORS"]).absolute()
    past = chain_of(mirrors, hub)
    for name, (_, of, _) in COPIES.items():
        mirror = mirrors / f"{FORKS[of][0]}.git"
        past[name] = Past(hub / f"{name}.git", mirror, refs_of(mirror))
    for each in past.values():
        each.show()
    scout = Scout(sqlite, tmp_path)
    scout.load(LIST)
    assert scout.look().troubles == ()
    with writing(sqlite) as session:
        for row in refs.repositories_of_engines(session).values():
            row.github_id = NUMBERS[row.full_name]
            row.parent_github_id = row.github_id - 1 or None
            _listed(row, past, next((n for n, f in FORKS.items() if f[0] == row.full_name), ""))
            session.add(row)
        for name, (number, of, parent) in COPIES.items():
            row = RepositoryRow(full_name=name, github_id=number, parent_github_id=parent,
                                root_github_id=1, tier=Tier.CANDIDATE, first_seen_at=NOW,
                                default_branch=FORKS[of][1], last_seen_at=NOW)  # fmt: skip
            _listed(row, past, of)
            session.add(row)
    assert keep_engine_facts(sqlite, history=scout.history, now=lambda: NOW) == ()
    found = look_at_candidates(sqlite, network=scout.network, now=lambda: NOW)
    assert found.troubles == ()
    with reading(sqlite) as session:
        rows = [row for row in forks.repositories(session) if row.parent_github_id]
        ranks = best_first(ranked_forks(session, rows, now=NOW))
    return {each.row.full_name: each for each in ranks}


def _listed(row: RepositoryRow, past: dict[str, Past], name: str) -> None:
    """What GitHub's list would say: pushed to when its branch was committed to."""
    if not name:
        return
    head = past[name].final[f"refs/heads/{FORKS[name][1]}"]
    at = int(git(past[name].place, "log", "-1", "--format=%ct", head))
    row.pushed_at = datetime.fromtimestamp(at, UTC)
    row.created_at = row.pushed_at - timedelta(days=60)


def _table(ranks: dict[str, RankedFork]) -> str:
    lines = ["| score | fork | own | beyond its parent | hot | authors | names only it knows |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, each in ranks.items():
        known = each.git
        assert known is not None
        beyond = f"{known.own_vs_parent} ({known.parent})"
        cells = (each.rank.score, name, known.own_vs_upstream, beyond, known.hot_patches,
                 known.own_authors, len(known.capabilities))  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if "FORKSCOUT_MIRRORS" in os.environ:

    def test_the_real_chain_ranks_by_its_own_work(
        sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """beellama by 38 patches and not by 299; a copy of buun far below all of them."""
        hub = tmp_path / "hub"
        (tmp_path / "gitconfig").write_text(f'[url "{hub}/"]\n\tinsteadOf = https://github.com/\n')
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        ranks = _ranks(sqlite, hub, tmp_path)
        print(_table(ranks))  # noqa: T201
        for each in ranks.values():
            print(each.row.full_name, *each.rank.points, sep="\n  ")  # noqa: T201
        scores = {name: each.rank.score for name, each in ranks.items()}
        bee, copy = ranks[FORKS["beellama"][0]], ranks["somebody/buun-llama-cpp"]
        assert bee.git is not None
        assert (bee.git.own_vs_upstream, bee.git.own_vs_parent) == (299, 38)
        assert copy.git is not None
        assert copy.git.own_vs_parent == 0
        assert min(scores[repo] for repo, _ in FORKS.values()) > copy.rank.score + 30
