"""What pages read from the database, on both kinds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Engine
from support.rows import NOON, Rows

from jobs import db
from jobs.model import Lane, State, Validity, VerdictKind
from jobs.store import board, overview


def test_the_board_takes_the_newest_result_of_a_series_and_revision(database: Engine) -> None:
    """An older result of the same revision is not on the board; another revision is."""
    with db.writing(database) as session:
        rows = Rows(session)
        engine = rows.engine(name="buun")
        first, second = rows.revision(engine), rows.revision(engine)
        rows.result(first)
        again = rows.result(first)
        other = rows.result(second)
        expected = {again.id, other.id}
    with db.reading(database) as session:
        entries = board.leaderboard(session)
    assert {entry.result_id for entry in entries} == expected
    assert {entry.engine for entry in entries} == {"buun"}


@pytest.mark.parametrize("state", [State.FAILED, State.DEAD, State.CANCELLED])
def test_a_result_of_a_failed_job_never_reaches_the_board(database: Engine, state: State) -> None:
    """What a job left before it failed does not replace the result that stands."""
    with db.writing(database) as session:
        rows = Rows(session)
        revision = rows.revision()
        standing = rows.result(revision).id
        rows.result(revision, job=rows.job(state=state))
    with db.reading(database) as session:
        assert [entry.result_id for entry in board.leaderboard(session)] == [standing]


def test_the_spread_is_between_boots_and_counts_only_valid_runs(database: Engine) -> None:
    """A tainted run and the warm-up change neither medians nor spread."""
    with db.writing(database) as session:
        rows = Rows(session)
        result = rows.result(runs=[(60.0, 61.0, 62.0)])
        boot = rows.boot(result, number=2, runs=(70.0, 71.0, 72.0))
        rows.sample(boot, run=9, decode_tps=8.0, validity=Validity.TAINTED)
    with db.reading(database) as session:
        entry = board.leaderboard(session)[0]
    assert entry.runs == ((60.0, 61.0, 62.0), (70.0, 71.0, 72.0))
    assert entry.spread == (61.0, 71.0)


def test_no_draft_is_not_an_acceptance_of_zero(database: Engine) -> None:
    """Acceptance is None without drafts, 0 when all were refused, else accepted over drafted."""
    with db.writing(database) as session:
        rows = Rows(session)
        for name, sample in (
            ("none", {}),
            ("refused", {"draft_n": 20, "draft_accepted_n": 0}),
            ("some", {"draft_n": 221, "draft_accepted_n": 61}),
        ):
            rows.result(rows.revision(rows.engine(name=name)), sample=sample)
    with db.reading(database) as session:
        found = {entry.engine: entry.acceptance for entry in board.leaderboard(session)}
    assert found["none"] is None
    assert found["refused"] == 0
    assert found["some"] == pytest.approx(0.276, abs=0.001)


def test_the_newest_verdict_speaks_for_a_result(database: Engine) -> None:
    """Verdicts are never rewritten; the last one is shown and the first is still in the detail."""
    with db.writing(database) as session:
        rows = Rows(session)
        result = rows.result()
        rows.verdict(result, kind=VerdictKind.FIRST, sentence="The first of its series.")
        rows.verdict(result, kind=VerdictKind.CANNOT_TELL, sentence="Cannot tell below 9 %.")
        result_id = result.id or 0
    with db.reading(database) as session:
        entry = board.leaderboard(session)[0]
        detail = board.result(session, result_id)
    assert entry.verdict is not None
    assert entry.verdict.sentence == "Cannot tell below 9 %."
    assert detail is not None
    assert [shown.verdict.kind for shown in detail.verdicts] == ["cannot_tell", "first"]


def test_a_result_shows_every_sample_of_every_boot(database: Engine) -> None:
    """Warm-ups and refused samples are there too, in order."""
    with db.writing(database) as session:
        rows = Rows(session)
        result = rows.result(runs=[(60.0, 61.0), (70.0,)])
        result_id = result.id or 0
    with db.reading(database) as session:
        detail = board.result(session, result_id)
        assert board.result(session, 999_999) is None
    assert detail is not None
    assert [[s.decode_tps for s in boot.samples] for boot in detail.boots] == [
        [51.0, 60.0, 61.0],
        [51.0, 70.0],
    ]
    assert detail.boots[0].samples[0].warmup
    assert detail.build.artifact
    assert detail.asked["context_tokens"] == 2048


def test_the_queue_is_in_serving_order_with_places(database: Engine) -> None:
    """Lane first, then due time; each queue counts its own places; needs are named."""
    with db.writing(database) as session:
        rows = Rows(session)
        build = rows.job(state=State.RUNNING, queue="build", progress={"phase": "compile"})
        late = rows.job(state=State.QUEUED, needs=[build])
        early = rows.job(state=State.QUEUED, turn_at=NOON - timedelta(hours=1))
        asked = rows.job(state=State.QUEUED, lane=Lane.ON_DEMAND)
        alone = rows.job(state=State.QUEUED, queue="build", lane=Lane.BACKFILL)
        rows.job(state=State.BLOCKED, blocked_by="no_sandbox")
        rows.job(state=State.DEAD, finished_at=NOON, failure_class="lost")
        expected = [(asked.id, 1), (early.id, 2), (late.id, 3), (alone.id, 1)]
        late_id, build_id = late.id or 0, build.id
    with db.reading(database) as session:
        queue = overview.queue(session, now=NOON)
        job = overview.job(session, late_id, now=NOON)
    assert [(item.id, item.position) for item in queue.waiting] == expected
    assert [item.id for item in queue.running] == [build_id]
    assert [item.blocked_by for item in queue.blocked] == ["no_sandbox"]
    assert [item.failure_class for item in queue.ended] == ["lost"]
    assert job is not None
    assert job.position == 3
    assert job.waits_for == (build_id,)


def test_the_front_page_has_news_failures_and_counts(database: Engine) -> None:
    """Events, results and failed jobs come newest first, with totals beside them."""
    with db.writing(database) as session:
        rows = Rows(session)
        rows.event(title="older")
        rows.event(title="newer")
        rows.result()
        rows.job(state=State.FAILED, failure_class="compile", finished_at=NOON)
    with db.reading(database) as session:
        front = overview.front(session)
    assert [event.title for event in front.events] == ["newer", "older"]
    assert [job.failure_class for job in front.failures] == ["compile"]
    assert (front.engines, front.revisions, front.builds, front.results_total) == (1, 1, 1, 1)


def test_engines_come_with_their_newest_revision_first(database: Engine) -> None:
    """A revision says how often it was built and where its newest result is."""
    with db.writing(database) as session:
        rows = Rows(session)
        engine = rows.engine(name="beellama", parent="buun")
        old, new = rows.revision(engine), rows.revision(engine)
        result_id = rows.result(old).id
        labels = [new.label, old.label]
        rows.engine(name="a-retired", retired=True)
    with db.reading(database) as session:
        found = overview.engines(session)
    assert [engine.name for engine in found] == ["beellama", "a-retired"]
    assert [revision.label for revision in found[0].revisions] == labels
    assert [r.newest_result_id for r in found[0].revisions] == [None, result_id]
    assert [r.builds for r in found[0].revisions] == [0, 1]


def test_an_empty_database_has_nothing_to_show(database: Engine) -> None:
    """No row, no error."""
    with db.reading(database) as session:
        assert board.leaderboard(session) == ()
        assert overview.queue(session, now=NOON).waiting == ()
        assert overview.front(session).results == ()
        assert overview.engines(session) == ()
        assert overview.job(session, 1, now=NOON) is None
