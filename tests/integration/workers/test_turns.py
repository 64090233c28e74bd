"""A job that boots a candidate and its baseline in turns, and what it leaves in rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sqlmodel import select
from support.offline_stub import SpokenCard
from support.stub_bench import scenario
from support.two_builds import TwoBuilds

from jobs import db
from jobs.arm_tables import ArmRow
from jobs.errors import JobFailure, Stopped
from jobs.failure_tables import FailureRow
from jobs.model import Blame, Validity
from jobs.negative_tables import NegativeRow
from jobs.prompts import GRADIENT
from jobs.rig_tables import GoldenRow
from jobs.store import births, board, reasons
from jobs.tables import BootRow, EngineRow, JobRow, ResultRow, VerdictRow
from workers.sandbox import Mount
from workers.turns import run_in_turns


def rows(database, table):
    with db.reading(database) as session:
        return list(session.exec(select(table)))


def heard(two, act):
    """Do something once the baseline's first boot is measured."""
    told = two.control.report

    def report(phase, **words):
        if str(words.get("note", "")).startswith("B, boot 1"):
            act()
        told(phase, **words)

    two.control.report = report


def engine_names(database):
    return {row.id: row.name for row in rows(database, EngineRow)}


def test_two_builds_are_booted_in_turns_and_judged_by_their_pairs(database, tmp_path):
    """A, B, A, B; two results that know each other, and a verdict against the partner."""
    two = TwoBuilds(database, tmp_path, {}, {})
    said = two.run()
    assert said.startswith("in turns: looks 50.0 % faster than theirs-1")
    kept = [json.loads(line) for line in two.kept.read_text().splitlines()]
    assert [(each["arm"], each["number"]) for each in kept] == [
        ("A", 1),
        ("B", 1),
        ("A", 2),
        ("B", 2),
    ]
    by_arm = {row.arm: row for row in rows(database, ArmRow)}
    assert by_arm["A"].turns == by_arm["B"].turns
    results = {row.id: row for row in rows(database, ResultRow)}
    candidate, baseline = results[by_arm["A"].result_id], results[by_arm["B"].result_id]
    assert candidate.job_id == two.held.job_id
    names = engine_names(database)
    assert (names[candidate.engine_id], names[baseline.engine_id]) == ("ours", "theirs")
    [verdict] = [row for row in rows(database, VerdictRow) if row.result_id == candidate.id]
    assert (verdict.baseline_id, verdict.boots) == (baseline.id, 2)
    assert len(rows(database, BootRow)) == 4
    with db.reading(database) as session:
        detail = board.result(session, candidate.id)
        theirs = reasons.why(session, baseline.job_id, db.database_now(session), share=0.5)
        mine = reasons.why(session, candidate.job_id, db.database_now(session), share=0.5)
    assert (detail.arm, detail.beside_id) == ("A", baseline.id)
    assert (theirs.job.state, theirs.job.result_id) == ("succeeded", baseline.id)
    assert any(each.id == two.held.job_id for each in theirs.origins)
    assert any("in turns, A, B, A, B, with theirs theirs-1" in each.says for each in mine.origins)


def test_a_baseline_that_fails_blames_its_own_engine(database, tmp_path):
    """The candidate keeps its turns and its result; the failure is that of the other engine."""
    two = TwoBuilds(database, tmp_path, {}, {"exit_on_load": 3})
    said = two.run()
    assert "first result of its series" in said
    assert "theirs theirs-1 could not be measured beside it" in said
    [result] = rows(database, ResultRow)
    assert result.job_id == two.held.job_id
    [failed] = [row for row in rows(database, JobRow) if row.state == "failed"]
    assert failed.cause == {"in_turns_with": two.held.job_id}
    assert failed.blame == "engine"
    assert [row.job_id for row in rows(database, FailureRow)] == [failed.id]
    names = engine_names(database)
    assert [names[row.engine_id] for row in rows(database, NegativeRow)] == ["theirs"]
    [golden] = rows(database, GoldenRow)
    assert golden.payload["against"] is None


def test_a_candidate_that_fails_ends_the_job_and_keeps_both_arms_boots(sqlite, tmp_path):
    """The failure is its own; what was measured by then is on disk."""
    two = TwoBuilds(sqlite, tmp_path, behaviour := {}, {})
    heard(two, lambda: behaviour.update(exit_on_load=3))
    with pytest.raises(JobFailure) as caught:
        run_in_turns(two.errand, two.sides, most_rounds=4)
    assert caught.value.blame is Blame.ENGINE
    kept = [json.loads(line) for line in two.kept.read_text().splitlines()]
    assert [(each["arm"], each["number"]) for each in kept] == [("A", 1), ("B", 1)]


def test_a_cancel_in_the_middle_keeps_what_was_measured(sqlite, tmp_path):
    """The baseline's boot is under way when somebody stops the job."""
    two = TwoBuilds(sqlite, tmp_path, {}, {"token_seconds": 0.02})
    heard(two, lambda: two.control.ask("cancelled"))
    with pytest.raises(Stopped):
        run_in_turns(two.errand, two.sides, most_rounds=4)
    kept = [json.loads(line) for line in two.kept.read_text().splitlines()]
    assert (kept[0]["arm"], kept[0]["number"]) == ("A", 1)
    assert rows(sqlite, ResultRow) == []


def test_boots_below_the_usual_clock_are_tried_again_and_then_tainted(sqlite, tmp_path):
    """The card runs at 1980 MHz where this rig has 2340 at least: no round counts."""
    two = TwoBuilds(sqlite, tmp_path, {}, {})
    for side in two.sides:
        side.place = replace(side.place, card=SpokenCard(), least_mhz=2340.0)
    run_in_turns(two.errand, two.sides, most_rounds=3)
    assert [len(side.boots) for side in two.sides] == [3, 3]
    measured = [m for side in two.sides for b in side.boots for m in b.measurements]
    assert {m.validity for m in measured if not m.warmup} == {Validity.TAINTED}


def test_a_job_with_a_projector_proves_that_its_drafter_drafted(sqlite, tmp_path):
    """One build drafts beside the projector, the other switched it off and says it drafts."""
    (tmp_path / "mmproj.gguf").write_bytes(b"GGUF")
    two = TwoBuilds(
        sqlite,
        tmp_path,
        {"text": "red", "speculative": True},
        {"text": "red", "drafts": [9, 4]},
        asked=scenario(picture=GRADIENT, names="red", runs=1, boots=2),
        projector=Mount(tmp_path / "mmproj.gguf", "/run/mmproj.gguf"),
        drafter=Mount(tmp_path / "model.gguf", "/run/drafter.gguf"),
        intent={"vision": "on"},
    )
    assert "nothing was drafted" in two.run()
    worth = {row.arm: row.result_id for row in rows(sqlite, ArmRow)}
    results = {row.id: row for row in rows(sqlite, ResultRow)}
    assert results[worth["A"]].validity == "spec_inactive"
    assert results[worth["B"]].validity == "ok"
    assert [row.failure_class for row in rows(sqlite, NegativeRow)] == []
    with db.writing(sqlite) as session:
        born = births.job_ended(session, two.held.job_id, db.database_now(session), days=14.0)
        assert born.born.failure_class == "spec_inactive"
