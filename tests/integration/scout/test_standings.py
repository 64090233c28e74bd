"""Where each repository stands, kept when a chain moved, in each kind of database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

import pytest
from sqlalchemy import Engine
from support.chain import Chain, patch
from support.watching import CHAIN, Scout, engine

from jobs.db import reading
from jobs.errors import Permanent, ScoutError, Transient
from jobs.sightings import StandingRow
from jobs.store import refs
from jobs.store.standings import standings
from scout.history import GitHistory
from scout.standings import keep_standings

pytestmark = pytest.mark.needs("git")

ARGUMENTS = 'add_opt({"--ctx"}, "N");'


class Silent:
    """A history that nobody may ask."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name} was asked in a quiet round")


class Failing(GitHistory):
    """A history that cannot read the sources of one repository."""

    fault: ScoutError = Transient("the line is down")

    def read_files(
        self, url: str, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], str]:
        if "buun" in url:
            raise self.fault
        return super().read_files(url, wanted)


@pytest.fixture
def chain(chain: Chain) -> Chain:
    """With an option of buun's own."""
    flags = ARGUMENTS + 'add_opt({"--tree-budget"}, "N");'
    patch(chain.buun, flags, "buun", 23, "common/arg.cpp")
    chain.buun.push("HEAD:refs/heads/master")
    return chain


@pytest.fixture
def scout(database: Engine, tmp_path: Path, chain: Chain) -> Scout:
    scout = Scout(database, tmp_path)
    scout.load(CHAIN)
    scout.look()
    return scout


def keep(scout: Scout, history: object = None) -> list[str]:
    troubles = keep_standings(
        scout.database,
        history=history or scout.history,  # type: ignore[arg-type]
        now=lambda: scout.at,
    )
    return [f"{each.engine}: {each.message}" for each in troubles]


def kept(scout: Scout) -> dict[str, StandingRow]:
    with reading(scout.database) as session:
        places = {row.id: row for row in refs.repositories_of_engines(session).values()}
        rows = standings(session)
    return {places[number].full_name: row for number, row in rows.items()}


def test_standings_are_kept_at_first_sight_without_an_event(scout: Scout, chain: Chain) -> None:
    """Descent as `forkscout lineage` prints it, and what is understood; nothing is told of it."""
    assert keep(scout) == []
    rows = kept(scout)
    bee = rows["bee/engine"]
    assert (bee.branch, bee.head) == ("main", chain.bee.head)
    assert bee.descent["parent"] == "buun"
    assert bee.descent["from_upstream"]["ahead"] == 10
    assert bee.descent["absorbed"][-1] == {"source": "turbo", "commits": 0, "patches": 1}
    assert rows["up/llama.cpp"].descent["from_upstream"] is None
    assert rows["buun/engine"].capability["understood"]["flags"] == 2
    assert scout.events() == {}


def test_a_quiet_round_asks_no_history(scout: Scout) -> None:
    """While no head moved nothing is worked out, however often one looks."""
    keep(scout)
    scout.look()
    assert keep(scout, Silent()) == []


def test_a_push_anywhere_in_the_chain_moves_all_its_standings(scout: Scout, chain: Chain) -> None:
    """The fork of a fork is further behind when its parent moved, though it did not move itself."""
    keep(scout)
    behind = kept(scout)["bee/engine"].descent["from_parent"]["behind"]
    patch(chain.buun, "more", "buun", 30)
    chain.buun.push("HEAD:refs/heads/master")
    scout.look()
    assert keep(scout) == []
    assert kept(scout)["bee/engine"].descent["from_parent"]["behind"] == behind + 1
    assert keep(scout, Silent()) == []


def test_abilities_are_measured_against_upstream_and_parent(scout: Scout, chain: Chain) -> None:
    """A fork of the fork that took its flag has it beyond upstream, not beyond the parent."""
    keep(scout)
    up = chain.upstream
    up.commit({"common/arg.cpp": ARGUMENTS}, message="arguments (#10999)")
    up.push("HEAD:refs/heads/master")
    base = chain.bee.take(up, "master")
    chain.bee.git("merge", "--quiet", "--no-ff", "-m", "Merge upstream", base)
    both = ARGUMENTS + 'add_opt({"--tree-budget"}, "N"); add_opt({"--bee"}, "N");'
    patch(chain.bee, both, "bee", 31, "common/arg.cpp")
    chain.bee.push("HEAD:refs/heads/main")
    scout.look()
    assert keep(scout) == []
    can = kept(scout)["bee/engine"].capability
    assert can["beyond_upstream"]["flags"] == {"count": 2, "names": ["--bee", "--tree-budget"]}
    assert can["beyond_parent"]["flags"] == {"count": 1, "names": ["--bee"]}
    assert kept(scout)["buun/engine"].capability["beyond_upstream"]["flags"] is None


def test_sources_that_do_not_come_are_a_trouble_and_are_read_again(scout: Scout) -> None:
    """The descent stands all the same, others are whole, and the next round tries once more."""
    failing = Failing(scout.network)
    assert keep(scout, failing) == ["buun: the line is down"]
    rows = kept(scout)
    assert rows["buun/engine"].descent["parent"] == "turbo"
    assert rows["buun/engine"].capability == {}
    assert rows["tom/turbo"].capability["understood"]
    assert keep(scout) == []
    assert kept(scout)["buun/engine"].capability["understood"]["flags"] == 2
    assert keep(scout, Silent()) == []


def test_sources_that_are_refused_are_told_once_and_kept_as_the_reason(scout: Scout) -> None:
    """A source of a gigabyte will not shrink by asking: it is not asked again until it moves."""
    failing = Failing(scout.network)
    object.__setattr__(failing, "fault", Permanent("a source of 1 GB is not read"))
    assert len(keep(scout, failing)) == 1
    assert "1 GB" in kept(scout)["buun/engine"].capability["problem"]
    assert keep(scout, Silent()) == []


def test_one_network_that_fails_stops_no_other(scout: Scout) -> None:
    """A chain whose history cannot be read is a trouble; the others are kept."""

    class Broken(GitHistory):
        def graph(self, numbers):
            raise Permanent("the repository is damaged")

    scout.load(CHAIN + engine("alone", "bee/engine", "main"))
    scout.look()
    assert keep(scout, Broken(scout.network)) == ["upstream: the repository is damaged"]
    assert [row.descent["engine"] for row in kept(scout).values()] == ["alone"]


def test_a_chain_whose_upstream_was_not_seen_waits(scout: Scout, chain: Chain) -> None:
    """Nothing is guessed without the head that all are measured against."""
    scout.load(
        CHAIN
        + engine("orphan", "no/where", "main")
        + engine("child", "bee/engine", "main", "orphan")
    )
    scout.look()
    assert keep(scout) == []
    assert "child" not in {row.descent["engine"] for row in kept(scout).values()}
