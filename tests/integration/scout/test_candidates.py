"""Forks that nobody builds, from GitHub's list to facts and events, in each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine
from support.chain import Chain, build_chain, patch, upstream_commit
from support.hub import Hub, Repository
from support.watching import CHAIN, NOON, Scout, bench_of, engine

from jobs import git_network
from jobs.db import reading, writing
from jobs.dispatch import plan_events
from jobs.errors import Transient
from jobs.sightings import RepositoryRow, StandingRow
from jobs.store import forks, refs, source_states, standings
from scout.candidate_rows import DROPPED_AFTER, candidates_due
from scout.candidates import CandidateRound, look_at_candidates
from scout.engine_facts import keep_engine_facts
from scout.github.governor import Tier
from scout.history import GitHistory
from scout.ranking import GitFacts
from scout.sources.base import RefsSeen

pytestmark = pytest.mark.needs("git")

UPSTREAM, TURBO, BUUN, BEE = 1, 2, 3, 4
IDS = {"upstream": UPSTREAM, "turbo": TURBO, "buun": BUUN, "bee": BEE}
PARENTS = {TURBO: UPSTREAM, BUUN: TURBO, BEE: BUUN}


@pytest.fixture
def chain(hub: Hub) -> Chain:
    return build_chain(hub)


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


NAMES = {"upstream": "up/llama.cpp", "turbo": "tom/turbo", "buun": "buun/engine",
         "bee": "bee/engine"}  # fmt: skip


@pytest.fixture
def watch(database: Engine, tmp_path: Path, chain: Chain) -> Watch:
    watch = Watch(database, tmp_path)
    watch.start()
    return watch


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


def test_a_fresh_copy_costs_a_list_and_no_fetch(hub: Hub, chain: Chain, watch: Watch) -> None:
    """It stands at a commit of its parent: nothing of it is brought here, nothing is its own."""
    copy = fork(hub, "new/copy", chain.buun, "master")
    copy.git("tag", "v9")
    copy.push("v9")
    number = watch.list(9, "new/copy", BUUN)
    found = watch.glance()
    assert (found.looked, found.new, found.troubles) == (("new/copy",), (), ())
    assert rooms(watch) == []
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own_vs_upstream, facts.own_vs_parent, facts.only_syncs) == (7, 0, True)
    assert facts.parent == "buun"
    assert watch.glance().looked == ()


def test_a_fork_that_stopped_at_an_older_commit_is_not_fetched(
    hub: Hub, chain: Chain, watch: Watch
) -> None:
    """Most forks were synced once and left: what they stand at is upstream's history."""
    old = fork(hub, "new/old", chain.upstream, "master~3")
    number = watch.list(9, "new/old", UPSTREAM)
    assert watch.glance().troubles == ()
    assert rooms(watch) == []
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own, facts.behind, facts.head) == (0, 3, old.head)


def test_work_beyond_the_parent_counts_alone(hub: Hub, chain: Chain, watch: Watch) -> None:
    """Seven patches came with the parent, two are the fork's own; one of those is hot."""
    made = fork(hub, "new/work", chain.buun, "master")
    patch(made, "kernel", "eve", 40, "ggml/src/ggml-cuda/fattn.cu")
    patch(made, "faster dflash", "mallory", 41)
    made.git("tag", "v1.0")
    made.git("tag", "b77")
    made.push("HEAD:refs/heads/main", "v1.0", "b77")
    number = watch.list(9, "new/work", BUUN)
    assert watch.glance().new == ()
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own_vs_upstream, facts.own_vs_parent) == (9, 2)
    assert (facts.hot_patches, facts.own_authors, facts.human_tag) == (1, 2, "v1.0")
    assert facts.subjects == ("faster dflash", "kernel")
    assert facts.head == made.head
    assert watch.events() == {}


def test_later_pushes_are_told_and_build_nothing(hub: Hub, chain: Chain, watch: Watch) -> None:
    """Push, sync, tag and a new flag are events without engine or revision; no job is queued."""
    made = fork(hub, "new/work", chain.buun, "master")
    patch(made, "one", "eve", 40)
    made.push()
    number = watch.list(9, "new/work", BUUN)
    watch.glance()
    made.commit({"common/arg.cpp": 'x({"--tree"});'}, message="tree", author="eve")
    made.git("merge", "--quiet", "--no-ff", "-m", "sync", made.take(chain.upstream, "master"))
    made.git("tag", "v2")
    made.push("HEAD:refs/heads/main", "v2")
    watch.list(9, "new/work", BUUN)
    found = watch.glance()
    assert found.troubles == ()
    kinds = sorted(news.kind for news in found.new)
    assert kinds == ["fork_pushed", "tag_created", "upstream_synced"]
    (push,) = watch.told("fork_pushed")
    assert (push["new_patches"], push["repo_id"], push["after"]) == (1, 9, made.head)
    assert all(row.engine_id is None and row.revision_id is None
               for row in watch.events().values())  # fmt: skip
    with writing(watch.database) as session:
        assert plan_events(session, watch.at) == []
    assert watch.glance().new == ()
    facts = watch.git(number)
    assert facts is not None
    assert facts.own_vs_parent == 2


def test_a_candidates_new_ability_is_told(hub: Hub, chain: Chain, watch: Watch) -> None:
    """A flag that neither upstream nor the parent has; it is a fact of the ranking as well."""
    base = {"common/arg.cpp": 'x({"--mmap"});'}
    chain.upstream.commit(base, message="base (#20000)")
    chain.upstream.push("HEAD:refs/heads/master")
    watch.look()
    made = fork(hub, "new/work", chain.upstream, "master")
    number = watch.list(9, "new/work", UPSTREAM)
    watch.glance()
    made.commit({"common/arg.cpp": 'x({"--mmap"}); x({"--tree"});'}, message="t", author="eve")
    made.push()
    watch.list(9, "new/work", UPSTREAM)
    watch.glance()
    (ability,) = watch.told("fork_capability_changed")
    assert ability["flags_added"] == ["--tree"]
    facts = watch.git(number)
    assert facts is not None
    assert facts.capabilities == ("--tree",)


def test_a_sync_alone_is_no_push(hub: Hub, chain: Chain, watch: Watch) -> None:
    """The button that follows upstream tells of a sync, once."""
    made = fork(hub, "new/copy", chain.upstream, "master")
    watch.list(9, "new/copy", UPSTREAM)
    watch.glance()
    upstream_commit(chain.upstream, 50)
    chain.upstream.push("HEAD:refs/heads/master")
    watch.look()
    made.push(f"{made.take(chain.upstream, 'master')}:refs/heads/main")
    watch.list(9, "new/copy", UPSTREAM)
    before = set(watch.events())
    watch.glance()
    new = [row for key, row in watch.events().items() if key not in before]
    assert [row.kind for row in new] == ["upstream_synced"]
    assert rooms(watch) == []


def test_a_lost_link_does_not_make_a_copy_shine(hub: Hub, chain: Chain, watch: Watch) -> None:
    """GitHub says upstream is the parent; the commits say whose work it is."""
    made = fork(hub, "new/upload", chain.buun, "master")
    patch(made, "one", "eve", 40)
    made.push()
    number = watch.list(9, "new/upload", UPSTREAM)
    watch.glance()
    facts = watch.git(number)
    assert facts is not None
    assert (facts.parent, facts.own_vs_parent, facts.own_vs_upstream) == ("buun", 1, 8)


def test_a_fork_of_a_candidate_is_held_against_it(hub: Hub, chain: Chain, watch: Watch) -> None:
    """Once the parent was looked at; before, its absence is said."""
    first = fork(hub, "new/first", chain.upstream, "master")
    patch(first, "one", "eve", 40)
    first.push()
    second = fork(hub, "new/second", first, "main")
    patch(second, "two", "mallory", 41)
    second.push()
    parent = watch.list(8, "new/first", UPSTREAM, tier=Tier.EVERYTHING)
    number = watch.list(9, "new/second", 8)
    watch.glance()
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own_vs_parent, facts.own_vs_upstream, facts.parent) == (None, 2, "new/first")
    watch.list(8, "new/first", UPSTREAM)
    watch.glance()
    assert watch.git(parent) is not None
    watch.list(9, "new/second", 8)
    watch.glance()
    facts = watch.git(number)
    assert facts is not None
    assert (facts.own_vs_parent, facts.own_vs_upstream) == (1, 2)


def test_one_that_fails_stops_no_other(hub: Hub, chain: Chain, watch: Watch) -> None:
    """It is asked again later and later; once refused, a day passes; no state becomes gone."""
    fork(hub, "new/copy", chain.buun, "master")
    lost = watch.list(8, "new/lost", BUUN)
    watch.list(9, "new/copy", BUUN)
    found = watch.glance()
    assert found.looked == ("new/copy",)
    assert [trouble.engine for trouble in found.troubles] == ["new/lost"]
    assert watch.glance().troubles == ()
    with reading(watch.database) as session:
        state = source_states.source_state(session, f"candidate:{lost}")
        assert state is not None
        assert state.retry_at is not None
        assert state.retry_at - watch.at > timedelta(hours=23)
        assert session.get_one(RepositoryRow, lost).state == "known"
    watch.at += timedelta(hours=25)
    assert len(watch.glance().troubles) == 1


def test_too_much_history_is_refused(
    hub: Hub, chain: Chain, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is of an engine: nothing of it stays."""
    made = fork(hub, "new/flood", chain.buun, "master")
    for number in range(5):
        patch(made, f"flood {number}", "eve", 40 + number)
    made.push()
    watch.list(9, "new/flood", BUUN)
    monkeypatch.setattr(git_network, "COMMITS_LIMIT", 3)
    (trouble,) = watch.glance().troubles
    assert "more history than an honest fork" in trouble.message
    assert rooms(watch) == []


def test_nobody_holds_the_network_for_long(hub: Hub, chain: Chain, watch: Watch) -> None:
    """A remote that dawdles is left alone after its time; the round starts nothing new either."""

    class Slow:
        def look_at_candidate(
            self, repo: str, *, network: Path, number: int, known: Collection[str],
            tick: Callable[[], None], token: SecretStr | None = None,
        ) -> RefsSeen:  # fmt: skip
            for _ in range(3):
                watch.at += timedelta(seconds=25)
                tick()
            return RefsSeen({})

    watch.list(8, "new/one", BUUN)
    watch.list(9, "new/two", BUUN)
    found = watch.glance(source=Slow())
    assert [trouble.message for trouble in found.troubles] == ["it took longer than 60 s"]
    assert found.left == 1


def test_a_forked_fork_without_a_watched_upstream_waits(hub: Hub, watch: Watch) -> None:
    """Nothing is fetched that could not be held against anything."""
    watch.list(9, "some/other", 77, root_github_id=77)
    (trouble,) = watch.glance().troubles
    assert "no upstream of some/other was seen" in trouble.message


def test_a_watched_fork_is_looked_at_by_its_pace(hub: Hub, chain: Chain, watch: Watch) -> None:
    """Also where GitHub's list knows of no push."""
    made = fork(hub, "new/work", chain.buun, "master")
    watch.list(9, "new/work", BUUN, tier=Tier.WATCHED)
    watch.glance()
    patch(made, "one", "eve", 40)
    made.push()
    assert [news.kind for news in watch.glance().new] == ["fork_pushed"]


def test_old_tips_of_a_candidate_are_bounded(
    hub: Hub, chain: Chain, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A force push is judged against what was there; only the newest few old tips stay."""
    monkeypatch.setattr(git_network, "LEFT_LIMIT", 2)
    made = fork(hub, "new/work", chain.buun, "master")
    base = made.head
    watch.list(9, "new/work", BUUN)
    for number in range(5):
        made.git("reset", "--quiet", "--hard", base)
        patch(made, f"try {number}", "eve", 40 + number)
        made.push()
        watch.list(9, "new/work", BUUN)
        watch.glance()
    forced = [fact["forced"] for fact in watch.told("fork_pushed")]
    assert forced == [True] * 4
    assert len([ref for ref in rooms(watch) if "/left/" in ref]) == 2


def test_what_is_no_candidate_for_long_is_forgotten(hub: Hub, chain: Chain, watch: Watch) -> None:
    """Its history goes, what is known of it stays, and a return is a first sight."""
    made = fork(hub, "new/work", chain.buun, "master")
    patch(made, "one", "eve", 40)
    made.push()
    number = watch.list(9, "new/work", BUUN)
    watch.glance()
    assert rooms(watch)
    watch.list(9, "new/work", BUUN, tier=Tier.EVERYTHING)
    watch.at += DROPPED_AFTER + timedelta(days=1)
    assert candidates_due(watch.database, watch.at)
    watch.glance()
    assert rooms(watch) == []
    assert not candidates_due(watch.database, watch.at)
    with reading(watch.database) as session:
        assert refs.refs_of(session, number) == {}
        assert standings.standings(session)[number].git["own_vs_parent"] == 1
    patch(made, "two", "eve", 41)
    made.push()
    watch.list(9, "new/work", BUUN)
    assert watch.glance().new == ()


def test_a_candidate_that_becomes_an_engine_starts_anew(
    hub: Hub, chain: Chain, watch: Watch
) -> None:
    """Its first look as an engine is a baseline, and no longer a candidate's."""
    made = fork(hub, "new/work", chain.buun, "master")
    patch(made, "one", "eve", 40)
    made.push()
    watch.list(9, "new/work", BUUN)
    watch.glance()
    patch(made, "two", "eve", 41)
    made.push()
    watch.load(CHAIN + engine("work", "new/work", "main", "buun"))
    assert watch.look().new == ()
    watch.list(9, "new/work", BUUN, tier=Tier.CHAIN)
    assert not candidates_due(watch.database, watch.at)


def test_hostile_texts_of_a_candidate_stay_text(hub: Hub, chain: Chain, watch: Watch) -> None:
    """Bounded, printable, and no option of git."""
    made = fork(hub, "new/work", chain.buun, "master")
    made.commit({"--exec=touch": "1"}, message="\x1b[31m<script>" + "z" * 999, author="$(reboot)")
    made.push("HEAD:refs/heads/main", "HEAD:refs/heads/x/--upload-pack=touch;reboot")
    number = watch.list(9, "new/work", BUUN)
    assert watch.glance().troubles == ()
    facts = watch.git(number)
    assert facts is not None
    (subject,) = facts.subjects
    assert subject.startswith("[31m<script>zzz")
    assert len(subject) == 120


def test_quiet_candidates_cost_nothing(
    sqlite: Engine, tmp_path: Path, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand that did not move: no process is started and nothing is asked."""
    watch = Watch(sqlite, tmp_path)
    watch.start()
    with writing(sqlite) as session:
        for number in range(1000):
            row = RepositoryRow(github_id=1000 + number, full_name=f"dev{number}/llama.cpp",
                                parent_github_id=UPSTREAM, tier=Tier.CANDIDATE, pushed_at=watch.at,
                                first_seen_at=watch.at, last_seen_at=watch.at)  # fmt: skip
            session.add(row)
            session.flush()
            state = source_states.lock_source_state(session, f"candidate:{row.id}", watch.at)
            state.cursor = {"looked_at": watch.at.isoformat(), "pushed_at": watch.at.isoformat()}
    monkeypatch.setenv("PATH", str(tmp_path))  # no program could be found

    class Silent:
        def look_at_candidate(self, repo: str, **_: Any) -> RefsSeen:
            raise AssertionError(repo)

    assert not candidates_due(sqlite, watch.at)
    assert watch.glance(source=Silent()) == CandidateRound()


def test_engines_are_ranked_by_the_same_facts(chain: Chain, watch: Watch) -> None:
    """Worked out when a head moved, and left alone otherwise."""
    history = GitHistory(watch.network)
    assert keep_engine_facts(watch.database, history=history, now=lambda: watch.at) == ()
    with reading(watch.database) as session:
        rows = {forks_row.full_name: forks_row.id or 0 for forks_row in forks.repositories(session)}
        first = {key: row.git for key, row in standings.standings(session).items()}
    bee = GitFacts.read(first[rows["bee/engine"]])
    assert bee is not None
    assert (bee.parent, bee.own_vs_parent, bee.own_authors) == ("buun", 3, 2)
    assert "up/llama.cpp" in rows
    assert rows["up/llama.cpp"] not in first
    later = watch.at + timedelta(hours=1)
    keep_engine_facts(watch.database, history=history, now=lambda: later)
    with reading(watch.database) as session:
        assert {key: row.git for key, row in standings.standings(session).items()} == first


def test_a_strangers_push_is_not_told_as_the_candidates(
    hub: Hub, chain: Chain, watch: Watch
) -> None:
    """Where the history was replaced, the name may have passed on: nothing is told or kept of it
    until GitHub's number says that the name is still its own."""
    made = _fork(hub, chain)
    number = watch.list(7, "new/work", UPSTREAM)
    watch.glance()
    with reading(watch.database) as session:
        before = refs.refs_of(session, number)
    made.git("checkout", "--quiet", "--orphan", "evil")
    made.commit({"evil": "1"}, message="evil dflash")
    made.push("HEAD:refs/heads/main")
    for doubt in (lambda _one: "it is called new/other now", None):
        watch.list(7, "new/work", UPSTREAM)
        found = watch.glance(ask=doubt, force=True)
        assert found.new == ()
        assert found.troubles[0].of_a_stranger
        assert "nothing of it is told" in found.troubles[0].message
        with reading(watch.database) as session:
            assert refs.refs_of(session, number) == before
        watch.at += timedelta(hours=2)
    watch.list(7, "new/work", UPSTREAM)
    (told,) = watch.glance(force=True).new
    assert told.kind == "fork_pushed"


def test_a_takedown_that_git_hears_is_kept(hub: Hub, chain: Chain, watch: Watch) -> None:
    """A blocked candidate is blocked at once, and told so; nobody asks it again."""
    number = watch.list(7, "new/work", UPSTREAM)
    watch.glance(
        source=_Silent(Transient("unable to access: The requested URL returned error: 451"))
    )
    with reading(watch.database) as session:
        assert session.get_one(RepositoryRow, number).state == forks.BLOCKED
    assert any(key.startswith("gh:repo:7:blocked:") for key in watch.events())
    assert watch.glance(force=True).troubles == ()


class _Silent:
    """A source that never answers."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def look_at_candidate(self, *_: object, **__: object) -> RefsSeen:
        """Raises."""
        raise self.error


def _fork(hub: Hub, chain: Chain) -> Repository:
    """A fork of upstream with one patch of its own."""
    made = hub.add("new/work")
    made.git("reset", "--quiet", "--hard", made.take(chain.upstream, "master"))
    patch(made, "good", "eve", 40)
    made.push("HEAD:refs/heads/main")
    return made
