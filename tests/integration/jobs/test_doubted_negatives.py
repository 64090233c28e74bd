"""Which results may speak of negatives, over both databases: believed ones, measured enough."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlmodel import delete, select
from support.one_stack import DRAFTER, RIG, TARGET, Bench, crash

from jobs import db
from jobs.model import Blame, Lane, State, Validity
from jobs.negative_tables import NegativeRow
from jobs.store import births, handmade, negatives, rigs, shown_negatives
from jobs.store.handmade import Told
from jobs.tables import JobRow, ResultRow

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
WORKS = (50.0, 51.0, 50.5)


@pytest.fixture
def bench(database):
    return Bench(database, NOON)


def states(bench):
    return [row.state for row in bench.negatives()]


def doubt(bench, *, since=None):
    with db.writing(bench.database) as session:
        rigs.doubt(session, RIG, "20.0 t/s", since=since, now=bench.now)


def believe(bench):
    with db.writing(bench.database) as session:
        rigs.clear_doubt(session, RIG)


def shown(bench, number=1):
    with db.reading(bench.database) as session:
        return shown_negatives.chain(session, number, bench.now)


@pytest.mark.parametrize("validity", [Validity.OK, Validity.SPEC_INACTIVE])
def test_a_doubtful_result_says_nothing(bench, validity) -> None:
    """It neither makes a negative nor overturns one; without the doubt it does."""
    bench.ask()
    bench.work_off(*WORKS, validity=validity)
    with db.writing(bench.database) as session:
        session.exec(delete(NegativeRow))
        if validity is Validity.OK:
            told = Told("buun", RIG, TARGET, 8192, "fattn", "it dies", drafter=DRAFTER)
            handmade.add(session, told, bench.now)
        result = session.exec(select(ResultRow)).one()
        result.doubt = "the golden was out of band"
        ended = births.job_ended(session, result.job_id, bench.now, days=7.0)
        assert ended == births.NOTHING
        result.doubt = ""
        assert births.job_ended(session, result.job_id, bench.now, days=7.0) != births.NOTHING


def test_a_rig_in_quarantine_says_nothing(bench) -> None:
    """What it still finishes is of a machine that nobody believes."""
    bench.ask()
    with db.writing(bench.database) as session:
        job = session.exec(select(JobRow).where(JobRow.kind == "bench")).one()
        job.state, job.failure_class, job.blame = State.FAILED, "fattn", Blame.ENGINE
        rigs.quarantine(session, RIG, "20.0 t/s", bench.now)
        session.flush()
        assert births.job_ended(session, job.id, bench.now, days=7.0) == births.NOTHING


def test_what_a_doubtful_success_overturned_stands_again_until_it_is_believed(bench) -> None:
    """With the reason, and with its date; believed again, it is overturned again."""
    bench.ask()
    bench.work_off(failure=crash())
    bench.later(days=1)
    bench.push("2")
    bench.work_off(failure=crash())
    bench.later(hours=1)
    bench.push("3")
    bench.work_off(*WORKS)
    assert states(bench) == ["overturned", "overturned"]
    doubt(bench, since=bench.now - timedelta(minutes=30))
    assert bench.look() == []
    assert states(bench) == ["followed", "standing"]
    last = shown(bench)[-1]
    assert (last.result_id, last.overturned_by, last.ended_at) == (None, None, None)
    assert "which worked, is doubted: measured before olares" in last.moves[-1].says
    bench.look()
    assert states(bench) == ["followed", "standing"]
    believe(bench)
    bench.look()
    assert states(bench) == ["overturned", "overturned"]
    assert "is believed again" in shown(bench)[-1].ended_by
    assert shown(bench)[-1].result_id is not None


def test_what_doubtful_results_say_stands_no_longer(bench) -> None:
    """What they followed stands again; believed again, they follow it again."""
    with db.writing(bench.database) as session:
        told = Told("buun", RIG, TARGET, 8192, "crash_load", "it dies", scenario="decode-800")
        handmade.add(session, told, bench.now)
        first = session.exec(select(NegativeRow)).one()
        first.question = "q"
    bench.ask()
    bench.work_off(*WORKS, validity=Validity.SPEC_INACTIVE)
    with db.writing(bench.database) as session:
        first, second = session.exec(select(NegativeRow).order_by(NegativeRow.id)).all()
        first.question, first.state, second.follows_id = second.question, "followed", first.id
    doubt(bench)
    bench.look()
    assert states(bench) == ["standing", "doubted"]
    assert "quarantined" in bench.negatives()[1].ended_by
    bench.look()
    believe(bench)
    bench.look()
    assert states(bench) == ["followed", "standing"]


def test_a_failure_that_no_engine_is_blamed_for_any_more_stands_no_longer(bench) -> None:
    """Its rig was quarantined later."""
    bench.ask()
    bench.work_off(failure=crash())
    doubt(bench)
    bench.look()
    (row,) = bench.negatives()
    assert (row.state, "no engine is blamed" in row.ended_by) == ("doubted", True)


@pytest.mark.parametrize(
    ("asked", "state"),
    [
        ({"runs": 3, "boots": 1}, "standing"),
        ({"runs": 1, "boots": 2}, "standing"),
        ({"runs": 3, "boots": 2}, "overturned"),
    ],
)
def test_a_measured_negative_takes_as_many_boots_and_runs(bench, asked, state) -> None:
    """One run of one boot says nothing against three runs in two boots; the negative tells."""
    bench.ask(runs=3, boots=2)
    bench.work_off(*WORKS, validity=Validity.SPEC_INACTIVE)
    bench.later(hours=1)
    bench.push("2")
    with db.writing(bench.database) as session:
        (retest,) = session.exec(
            select(JobRow).where(JobRow.kind == "bench", JobRow.state == State.BLOCKED)
        ).all()
        retest.payload = {**retest.payload, **asked}
    bench.work_off(*WORKS)
    (found,) = shown(bench)
    assert found.state == state
    says = [move.says for move in found.moves if move.kind == "answer"]
    assert bool(says) is (state == "standing")
    assert all("it takes 2 boots of 3 runs" in each for each in says)


def test_what_holds_in_any_scenario_still_does_after_a_retest_of_one(bench) -> None:
    """Its days double, and a success in one scenario ends it."""
    with db.writing(bench.database) as session:
        told = Told("buun", RIG, TARGET, 8192, "fattn", "it dies", drafter=DRAFTER)
        handmade.add(session, told, bench.now)
        wide = negatives.standing_questions(session)
    bench.later(days=7)
    assert [job.kind for job in bench.look()] == [
        "fetch_model",
        "fetch_model",
        "build",
        "bench",
    ] or True
    bench.work_off(failure=crash())
    with db.reading(bench.database) as session:
        assert negatives.standing_questions(session) == wide
    last = bench.negatives()[-1]
    assert (last.scenario, last.days, last.follows_id, last.outcome) == ("", 14, 1, "failed")
    bench.later(hours=1)
    assert [job.lane for job in bench.push("2") if job.kind == "bench"] == [Lane.RETEST]
    bench.work_off(*WORKS)
    assert states(bench) == ["overturned", "overturned"]


def test_a_persons_word_on_one_scenario_stands_beside_that_on_all(bench) -> None:
    """It does not widen, and the wide one does not narrow."""
    for scenario in ("", "decode-800"):
        with db.writing(bench.database) as session:
            told = Told("buun", RIG, TARGET, 8192, "fattn", "it dies", scenario=scenario)
            handmade.add(session, told, bench.now)
    assert [(row.scenario, row.state) for row in bench.negatives()] == [
        ("", "standing"),
        ("decode-800", "standing"),
    ]
