"""Four days of spring: impossible, unstable, works; over both databases."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlmodel import select
from support.one_stack import DRAFTER, DRAFTS, REPO, RIG, TARGET, Bench
from support.shapes import dflash_drafter

from jobs import db
from jobs.fit.stored import shape_stored
from jobs.model import Lane, State
from jobs.sightings import HubFileRow, HubRepositoryRow, RepositoryRow
from jobs.store import forks, handmade, shown_negatives
from jobs.store.handmade import Told
from jobs.tables import ModelFileRow

APRIL_28 = datetime(2026, 4, 28, 9, 0, tzinfo=UTC)
Q8 = "dflash-draft-3.6-q8_0.gguf"
NUMBER = 35


def believe(bench: Bench):
    """What people said that morning: 28 GB on a card of 24."""
    told = Told(
        engine="buun",
        rig=RIG,
        target=TARGET,
        drafter=DRAFTER,
        context_tokens=8192,
        failure_class="does_not_fit",
        why="target 17 + drafter 6 (BF16) + buffers 3 + KV 2 = 28 GB, the card has 24",
    )
    with db.writing(bench.database) as session:
        return handmade.add(session, told, bench.now)


def read_header_of_drafter(bench: Bench) -> None:
    """The hub's look has read its header."""
    with db.writing(bench.database) as session:
        place = HubRepositoryRow(
            hub_id="1",
            look_at=bench.now,
            full_name=DRAFTS,
            first_seen_at=bench.now,
            last_seen_at=bench.now,
        )
        session.add(place)
        session.flush()
        session.add(
            HubFileRow(
                repository_id=place.id,
                path=Q8,
                first_seen_at=bench.now,
                changed_at=bench.now,
                facts={"role": "drafter"},
                shape=shape_stored(dflash_drafter()),
            )
        )


def link_issue(bench: Bench) -> None:
    with db.writing(bench.database) as session:
        forks.link_issue(session, REPO, NUMBER, note="", now=bench.now)
        session.add(
            RepositoryRow(
                full_name=REPO, engine_id=1, first_seen_at=bench.now, last_seen_at=bench.now
            )
        )


def test_the_impossible_of_28_april_is_overturned_on_1_may(database) -> None:
    """A drafter, a bug report, a push and an answer later it runs at 80 t/s; nothing is lost."""
    bench = Bench(database, APRIL_28)
    added = believe(bench)
    assert (added.follows, added.jobs, added.row.state) == (None, [], "standing")

    bench.later(hours=10)
    read_header_of_drafter(bench)
    queued = bench.publish(Q8)
    retest = next(job for job in queued if job.cause.get("negative_id") and job.kind == "bench")
    assert retest.lane == Lane.RETEST
    assert retest.reason == f"drafter {Q8} appeared"
    assert retest.payload["intent"]["speculation"] == "dflash"
    assert [job.id for job in queued if job.kind == "bench"] == [retest.id]

    bench.later(hours=12)
    (known,) = bench.work_off(3.40, 1.52, 0.97)
    first, second = bench.negatives()
    assert known.born.id == second.id
    assert (first.state, second.state, second.follows_id) == ("followed", "standing", first.id)
    assert (second.failure_class, second.days) == ("unstable", 7)
    assert second.why == "unstable: speed falls run over run in boot 1"
    assert second.job_id == retest.id
    assert bench.look() == []
    link_issue(bench)

    bench.later(days=2)
    queued = bench.push("2", commits=8)
    again = next(job for job in queued if job.kind == "bench")
    assert [job.id for job in queued if job.kind == "bench"] == [again.id]
    assert (again.lane, again.cause["negative_id"]) == (Lane.RETEST, second.id)
    assert again.reason == "buun moved 8 commits to master@2, it was master@1"
    with db.reading(database) as session:
        q8 = session.exec(select(ModelFileRow).where(ModelFileRow.name.contains(Q8))).one()
        assert again.payload["drafter_file_id"] == q8.id
    reply = f"{REPO}#{NUMBER} moved: may be fixed, repull"
    assert bench.tell("issue_moved", reply, payload={"full_name": REPO, "number": NUMBER}) == []
    assert bench.job(again.id).reason.endswith(f"; {reply}")

    bench.later(hours=3)
    (known,) = bench.work_off(73.94, 80.31, 85.06)
    assert {row.id for row in known.overturned} == {first.id, second.id}
    first, second = bench.negatives()
    assert {first.state, second.state} == {"overturned"}
    assert {first.overturned_by, second.overturned_by} == {again.id}
    (event,) = bench.events("negative_overturned")
    assert event.payload["negatives"] == [first.id, second.id]
    assert "works, impossible for 3 days 1 h (unstable)" in event.title
    with db.reading(database) as session:
        chain = shown_negatives.chain(session, second.id, bench.now)
        assert [each.id for each in chain] == [first.id, second.id]
        assert [each.stood for each in chain] == ["3 days 1 h", "2 days 3 h"]
        assert chain[1].result_tps == 80.31
        assert [move.kind for move in chain[1].moves] == ["revision", "answer"]
        assert shown_negatives.board(session, bench.now).standing == ()
    assert bench.look() == []


def test_the_pre_flight_of_28_april_disagrees_at_once(database) -> None:
    """Where the drafter's header was read it fits: a trial is queued, and gives way to Q8_0."""
    bench = Bench(database, APRIL_28)
    bench.change(ModelFileRow, DRAFTER, shape=shape_stored(dflash_drafter()))
    added = believe(bench)
    trial = added.jobs[-1]
    assert trial.reason.startswith("the pre-flight disagrees: fits")
    assert (trial.lane, trial.cause) == (Lane.RETEST, {"negative_id": added.row.id})

    bench.later(hours=10)
    read_header_of_drafter(bench)
    queued = bench.publish(Q8)
    assert bench.job(trial.id).state == State.SUPERSEDED
    retest = next(job for job in queued if job.kind == "bench")
    assert retest.reason.startswith("the pre-flight disagrees: fits")
    assert retest.reason.endswith(f"; drafter {Q8} appeared")
    live = [row for row in added.jobs if bench.job(row.id).state == State.QUEUED]
    assert {job.kind for job in live} == {"build"}
