"""What candidates may cost, how long they are kept, and that one stops no other."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine
from support.candidates import BUUN, UPSTREAM, Watch, fork, rooms
from support.chain import Chain, patch
from support.hub import Hub
from support.watching import CHAIN, engine

from jobs import git_rooms
from jobs.db import reading, writing
from jobs.sightings import RepositoryRow
from jobs.store import refs, source_states, standings
from scout.candidate_rows import DROPPED_AFTER, candidates_due
from scout.candidates import CandidateRound
from scout.github.governor import Tier
from scout.sources.base import RefsSeen

pytestmark = pytest.mark.needs("git")


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
    monkeypatch.setattr(git_rooms, "COMMITS_LIMIT", 3)
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
    monkeypatch.setattr(git_rooms, "LEFT_LIMIT", 2)
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
