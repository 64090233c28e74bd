"""Negatives over both databases: born, moved, tried again once at a time, renewed, overturned."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlmodel import select
from support.one_stack import REPO, RIG, TARGET, Bench, crash

from jobs import db
from jobs.errors import UsageError
from jobs.model import Blame, Lane, State, Trust, Validity
from jobs.negative_tables import NegativeMoveRow
from jobs.planning_tables import BudgetRow
from jobs.sightings import RepositoryRow
from jobs.store import forks, leases, negatives, noted, retests, rigs, work
from jobs.tables import EngineRow, RigRow, StackRow

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
HOSTILE = "\x1b]0;owned\x07<b>evil</b>"


@pytest.fixture
def bench(database):
    return Bench(database, NOON)


def fail(bench, failure_class="fattn", **fields):
    """The stack fails at the newest revision; its negative."""
    bench.ask(**fields)
    (known,) = bench.work_off(failure=crash(failure_class))
    return known.born


def benches(jobs):
    return [job for job in jobs if job.kind == "bench"]


def moves(bench, number):
    with db.reading(bench.database) as session:
        return [(m.kind, m.job_id, m.refusal) for m in noted.moves_of(session, [number])]


def test_a_failure_that_the_engine_is_blamed_for_is_stored_with_its_grounds(bench) -> None:
    """Commit, files, flags, driver, memory, fingerprint and sandbox, as they were."""
    row = fail(bench, flags=("--x",), env={"A": "1"})
    assert (row.outcome, row.failure_class, row.blame, row.state) == (
        "failed",
        "fattn",
        "engine",
        "standing",
    )
    grounds = row.grounds
    assert grounds["commit"] == "1" * 40
    assert (grounds["flags"], grounds["env"]) == (["--x"], {"A": "1"})
    assert (grounds["driver"], grounds["fingerprint"]) == ("570.1", "f1")
    assert (grounds["vram_bytes"], grounds["sandbox"]) == (24 * 2**30, "bubblewrap")
    assert len(grounds["target_sha256"]) == len(grounds["drafter_sha256"]) == 64
    with db.reading(bench.database) as session:
        assert negatives.standing_identities(session) == {row.identity}


@pytest.mark.parametrize("blame", [Blame.INFRASTRUCTURE, Blame.ENVIRONMENT])
def test_faults_of_machines_make_no_negative(bench, blame) -> None:
    """However often they come, until the job is dead."""
    bench.ask()
    for _ in range(3):
        assert bench.work_off(failure=crash("disk_full", blame)) == []
        bench.later(hours=2)
    assert bench.negatives() == []


@pytest.mark.parametrize(
    ("validity", "is_one"),
    [
        (Validity.SPEC_INACTIVE, True),
        (Validity.BROKEN_OUTPUT, True),
        (Validity.TAINTED, False),
        (Validity.WRONG_SERVER, False),
    ],
)
def test_a_result_is_negative_by_its_validity(bench, validity, is_one) -> None:
    """A busy machine says nothing of a stack."""
    bench.ask()
    bench.work_off(1.0, 2.0, 3.0, validity=validity)
    assert [row.failure_class for row in bench.negatives()] == ([validity.value] if is_one else [])


def test_a_build_that_fails_is_a_negative_until_one_succeeds(bench) -> None:
    """Its question is an engine for a rig; the next push overturns it."""
    bench.ask()
    (known,) = bench.work_off(build_failure=crash("exit"))
    assert (known.born.kind, known.born.rig, known.born.stack) == ("build", RIG, "")
    bench.later(hours=2)
    bench.push("2")
    found = bench.work_off(50.0, 51.0, 50.5)
    assert [row.id for each in found for row in each.overturned] == [known.born.id]
    (event,) = bench.events("negative_overturned")
    assert (
        event.title == "buun: the build of buun for olares works, impossible for 2 h 0 min (exit)"
    )


def test_what_works_is_told_with_the_context_at_which_it_did_not(bench) -> None:
    """Another context is another question."""
    fail(bench)
    bench.later(hours=2)
    bench.push("2")
    bench.work_off(50.0, 51.0, 50.5)
    (event,) = bench.events("negative_overturned")
    assert event.title == (
        "buun: qwen-dflash on olares at 8,192 tokens works, impossible for 2 h 0 min (fattn)"
    )


def test_it_expires_and_waits_twice_as_long_after_the_same_failure(bench) -> None:
    """7, 14, 28 days and never longer; each follows the one before."""
    fail(bench)
    for days in (7, 14, 28, 28):
        last = bench.negatives()[-1]
        assert last.days == days
        bench.later(days=days, seconds=-1)
        assert bench.look() == []
        bench.later(seconds=1)
        (job,) = benches(bench.look())
        assert job.reason == f"expired after {days} days"
        assert (job.lane, job.cause) == (Lane.RETEST, {"negative_id": last.id})
        bench.work_off(failure=crash())
    rows = bench.negatives()
    assert [row.follows_id for row in rows] == [None, *(row.id for row in rows[:-1])]
    assert [row.state for row in rows] == [*["followed"] * 4, "standing"]


def test_another_failure_begins_anew(bench) -> None:
    """It got further: that is news."""
    fail(bench)
    bench.later(days=7)
    bench.look()
    bench.work_off(failure=crash("logits"))
    assert [(row.failure_class, row.days) for row in bench.negatives()] == [
        ("fattn", 7),
        ("logits", 7),
    ]


@pytest.mark.parametrize(
    ("table", "name", "change", "says"),
    [
        (RigRow, RIG, {"facts": {"driver": "580.2"}}, "the driver went from 570.1 to 580.2"),
        (RigRow, RIG, {"memory_bytes": 32 * 2**30}, "32.0 GiB of memory, it was 24.0 GiB"),
        (RigRow, RIG, {"fingerprint": "f2"}, "the rig is another: f2, it was f1"),
        (
            StackRow,
            "qwen-dflash",
            {"flags": ["--kv-unified"]},
            "the watch list asks for other flags: --kv-unified",
        ),
    ],
)
def test_what_changed_without_an_event_is_seen_by_the_sweep(
    bench, table, name, change, says
) -> None:
    """Once: a second sweep asks nothing."""
    fail(bench)
    assert bench.look() == []
    bench.change(table, name, **change)
    (job,) = benches(bench.look())
    assert job.reason == says
    assert bench.look() == []
    if table is StackRow:
        assert job.payload["flags"] == ["--kv-unified"]


def test_a_worker_that_starts_on_a_new_driver_asks_again(bench) -> None:
    """Before anything was measured with it."""
    fail(bench)
    with db.writing(bench.database) as session:
        rigs.arrive(session, RIG, {"hardware": "f1", "driver": "580.2"}, bench.now)
    (job,) = benches(bench.look())
    assert job.reason == "the driver went from 570.1 to 580.2"


def test_a_linked_issue_that_is_closed_asks_again(bench) -> None:
    """A stranger's issue does not."""
    row = fail(bench)
    payload = {"full_name": REPO, "number": 35}
    closed = f"{REPO}#35 closed: slow"
    assert bench.tell("issue_closed", "of a stranger", payload=payload) == []
    with db.writing(bench.database) as session:
        forks.link_issue(session, REPO, 35, note="", now=bench.now)
        session.add(
            RepositoryRow(
                full_name=REPO, engine_id=row.engine_id, first_seen_at=NOON, last_seen_at=NOON
            )
        )
    (job,) = benches(bench.tell("issue_closed", closed, payload=payload))
    assert (job.reason, job.cause["negative_id"]) == (closed, row.id)


def test_an_answer_alone_asks_nothing(bench) -> None:
    """It is told with the next retest."""
    row = fail(bench)
    with db.writing(bench.database) as session:
        forks.link_issue(session, REPO, 35, note="", now=bench.now)
    payload = {"full_name": REPO, "number": 35}
    assert bench.tell("issue_moved", "an answer", payload=payload) == []
    assert bench.look() == []
    (job,) = benches(bench.push("2"))
    assert job.reason == "an answer; buun moved 1 commit to master@2, it was master@1"
    assert moves(bench, row.id) == [("answer", job.id, ""), ("revision", job.id, "")]


def test_there_is_one_retest_at_a_time(bench) -> None:
    """One that waits gives way to a newer revision, with all that moved in its reason."""
    fail(bench)
    (first,) = benches(bench.push("2"))
    bench.later(minutes=5)
    (second,) = benches(bench.push("3"))
    assert bench.job(first.id).state == State.SUPERSEDED
    assert "master@2" in second.reason
    assert second.reason.endswith("buun moved 1 commit to master@3, it was master@1")
    assert bench.look() == []


def test_what_moves_while_a_retest_runs_is_tried_after_it(bench) -> None:
    """The push is not lost: it moves the negative that the running retest leaves."""
    fail(bench)
    bench.push("2")
    bench.work_off_to_bench()
    with db.writing(bench.database) as session:
        held = leases.lease(session, f"bench.{RIG}", "w1", bench.now)
        leases.start(session, held, bench.now)
    assert benches(bench.push("3")) == []
    bench.end(held, crash())
    (job,) = benches(bench.look())
    with db.reading(bench.database) as session:
        assert session.get(work.JobRow, job.id).title.startswith("bench buun master@3")


def test_two_drafters_at_once_have_both_their_turn(bench) -> None:
    """The second waits for the retest with the first, and moves the negative that it leaves."""
    row = fail(bench)
    facts = {"base_models": ["x/qwen3.6-27b"]}
    (one,) = benches(bench.publish("a-q8_0.gguf", **facts))
    assert benches(bench.publish("b-q4_k_m.gguf", **facts)) == []
    assert moves(bench, row.id) == [("drafter", one.id, ""), ("drafter", None, "")]
    bench.work_off(failure=crash())
    (two,) = benches(bench.look())
    assert two.reason == "drafter b-q4_k_m.gguf appeared"
    assert two.payload["drafter_file_id"] not in (
        row.drafter_file_id,
        one.payload["drafter_file_id"],
    )
    bench.work_off(failure=crash())
    assert bench.look() == []


def test_a_drafter_of_another_model_asks_nothing(bench) -> None:
    """And one of the same model asks with its own file."""
    row = fail(bench)
    assert bench.publish("other.gguf", base_models=["x/Gemma-4"]) == []
    (job,) = benches(bench.publish("q8_0.gguf", base_models=["x/qwen3.6-27b"]))
    assert job.reason == "drafter q8_0.gguf appeared"
    assert job.payload["drafter_file_id"] != row.drafter_file_id


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"trust": Trust.APPROVE}, "waits for a person's approval"),
        ({"trust": Trust.NEVER}, "is never built"),
        ({"retired": True}, "is no longer watched"),
    ],
)
def test_what_trust_forbids_is_not_tried(bench, changes, why) -> None:
    """The negative says so, and the sweep does not ask again every few seconds."""
    row = fail(bench)
    bench.change(EngineRow, "buun", **changes)
    bench.later(days=7)
    assert bench.look() == []
    assert bench.look() == []
    ((kind, job_id, refusal),) = moves(bench, row.id)
    assert (kind, job_id) == ("expired", None)
    assert why in refusal


def test_a_person_may_try_what_needs_their_word(bench) -> None:
    """That is the approval; `never` stays never, and a second try at once is refused."""
    row = fail(bench)
    bench.change(EngineRow, "buun", trust=Trust.NEVER)
    with db.writing(bench.database) as session, pytest.raises(UsageError, match="never built"):
        retests.retry(session, row.id, bench.now)
    bench.change(EngineRow, "buun", trust=Trust.APPROVE)
    with db.writing(bench.database) as session:
        (job,) = benches(retests.retry(session, row.id, bench.now))
    assert (job.lane, job.reason) == (Lane.ON_DEMAND, "asked for by hand")
    with db.writing(bench.database) as session, pytest.raises(UsageError, match="being tried"):
        retests.retry(session, row.id, bench.now)


def test_a_lost_retest_is_asked_for_again_on_the_next_day(bench) -> None:
    """Its machine died: the negative stands and has learned nothing."""
    fail(bench)
    bench.later(days=7)
    (job,) = benches(bench.look())
    for _ in range(3):
        bench.work_off(failure=crash("gpu_init", Blame.ENVIRONMENT))
        bench.later(hours=2)
    assert bench.job(job.id).state == State.DEAD
    assert bench.look() == []
    bench.later(days=1)
    assert len(benches(bench.look())) == 1


def test_a_retest_waits_for_hours_of_its_rig(bench) -> None:
    """What a budget has no time for today is asked as soon as it has; a person is not held back."""
    with db.writing(bench.database) as session:
        session.add(BudgetRow(name=f"rig {RIG}", rig=RIG, hours_per_day=0.1, created_at=NOON))
    row = fail(bench)
    bench.later(days=8)
    assert bench.look() == []
    (move,) = moves(bench, row.id)
    assert move == ("expired", None, noted.NO_HOURS)
    with db.writing(bench.database) as session:
        session.exec(select(BudgetRow)).one().hours_per_day = 5.0
    (job,) = benches(bench.look())
    assert moves(bench, row.id) == [("expired", job.id, "")]


def test_an_older_revision_neither_renews_nor_overturns(bench) -> None:
    """A backfill or a bisect walks backwards; the negative is about what is there now."""
    old = bench.revision("1", "master@1")
    bench.later(days=1)
    bench.revision("2", "master@2")
    row = fail(bench)
    bench.ask(revision_id=old, runs=5)
    assert bench.work_off(failure=crash()) == [] or bench.negatives()[-1].id == row.id
    bench.ask(revision_id=old, runs=6)
    bench.work_off(50.0, 51.0, 50.5)
    assert [each.state for each in bench.negatives()] == ["standing"]


def test_a_failure_of_an_old_revision_is_none_where_a_newer_one_works(bench) -> None:
    """Nobody needs to try again what was mended."""
    old = bench.revision("1", "master@1")
    bench.later(days=1)
    bench.revision("2", "master@2")
    bench.ask()
    bench.work_off(50.0, 51.0, 50.5)
    bench.ask(revision_id=old)
    assert bench.work_off(failure=crash()) == []
    assert bench.negatives() == []


def test_an_event_asks_a_standing_question_by_its_retest_alone(bench) -> None:
    """Planning leaves the stack out, and says why."""
    fail(bench)
    jobs = bench.push("2")
    assert [job.lane for job in benches(jobs)] == [Lane.RETEST]


def test_forgetting_is_undone_unless_another_stands(bench) -> None:
    """One stands per question; a forgotten one is no reason to try again."""
    row = fail(bench)
    with db.writing(bench.database) as session:
        negatives.forget(session, row.id, bench.now, by="hand")
    bench.later(days=8)
    assert bench.look() == []
    with db.writing(bench.database) as session:
        assert negatives.recall(session, row.id).state == "standing"
        negatives.forget(session, row.id, bench.now, by="hand")
    bench.ask(runs=7)
    bench.work_off(failure=crash())
    with db.writing(bench.database) as session, pytest.raises(UsageError, match="stands for"):
        negatives.recall(session, row.id)


def test_words_of_a_log_are_kept_harmless_to_both_databases(bench) -> None:
    """A failure's message may hold a zero byte; a row cannot."""
    bench.ask()
    fault = crash("x" * 200)
    fault.detail = f"{HOSTILE}\x00"
    bench.work_off(failure=fault)
    (row,) = bench.negatives()
    assert len(row.failure_class) <= 80
    assert "\x00" not in row.why
    with db.reading(bench.database) as session:
        assert session.exec(select(NegativeMoveRow)).all() == []
    assert TARGET in row.grounds["target"]
