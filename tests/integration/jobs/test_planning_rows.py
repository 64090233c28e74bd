"""What planning writes: baselines, reasons, files of the hub and budgets, over both databases."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlmodel import delete, select
from support.fit_rows import shaped_file
from support.rows import NOON, Rows, digest
from support.shapes import dflash_drafter, qwen36
from typer.testing import CliRunner

from jobs import db
from jobs.cli.root import build_app
from jobs.dispatch import plan_events
from jobs.fit.stored import shape_stored
from jobs.model import Blame, Kind, Lane, State, Trust
from jobs.planning_tables import BudgetRow, RuleRow
from jobs.sightings import HubFileRow, HubRepositoryRow, LinkedIssueRow
from jobs.store import rules, weights, work
from jobs.tables import (
    EngineRow,
    EventRow,
    JobNeedRow,
    JobRow,
    ModelFileRow,
    RevisionRow,
    StackRow,
)

DRAFTER = "dflash-q8_0.gguf"
REPO = "spiritbuun/Qwen3.6-27B-DFlash-GGUF"


def add_stack(session, engine, **fields):
    values = {
        "name": f"qwen-{engine.name}",
        "engine_id": engine.id,
        "target": "qwen:q3",
        "intent": {"context": 8192},
        "scenarios": ["decode-128"],
        "created_at": NOON,
    }
    session.add(StackRow(**values | fields))
    session.flush()


@pytest.fixture
def put(database):
    """An engine with a stack, two revisions, and a push of the second that nobody planned."""

    def write(*, scenarios=("decode-128",), facts=None, **changes):
        with db.writing(database) as session:
            rows = Rows(session)
            engine = rows.engine(
                **{
                    "name": "buun",
                    "repo": "spiritbuun/buun-llama-cpp",
                    "trust": Trust.AUTO,
                    "targets": [{"rig": "big", "via": "cmake", "cuda_arch": "120"}],
                }
                | changes
            )
            rows.rig(name="big", device="cuda", memory_bytes=48 * 2**30, facts={})
            shaped_file(rows, "qwen:q3", qwen36(), stored_in=None, model_class="qwen3.6-27b")
            add_stack(session, engine, scenarios=list(scenarios))
            new = rows.revision(
                engine, label="master@2", commit="2" * 40, order_key="2", committed_at=NOON
            )
            rows.event(
                engine,
                kind="fork_pushed",
                revision_id=new.id,
                planned=False,
                title="buun pushed",
                payload={"facts": facts or {}},
            )

    return write


def plan(database, now=NOON, **fields):
    with db.writing(database) as session:
        jobs = plan_events(session, now, **fields)
        return {(job.kind, job.lane): job for job in jobs}


def left_out(database, **fields):
    with db.reading(database) as session:
        return [(row.why, row.detail, row.ending) for row in rules.left_out(session, **fields)]


def test_the_commit_before_a_push_becomes_the_baseline(database, put):
    """Nothing older is known: its build and bench wait as backfill, and name what needs them."""
    put(facts={"before": "1" * 40, "forced": False})
    jobs = plan(database)
    bench, baseline = jobs[Kind.BENCH, Lane.FRESH], jobs[Kind.BENCH, Lane.BACKFILL]
    assert baseline.cause["baseline_of"] == bench.id
    assert "master@111111111" in baseline.title
    assert baseline.payload["stack"] == bench.payload["stack"]
    assert jobs[Kind.BUILD, Lane.BACKFILL].id < baseline.id


@pytest.mark.parametrize(
    "facts",
    [
        {"before": "1" * 40, "forced": True},
        {"before": "../../etc", "forced": False},
        {"before": "2" * 40, "forced": False},
        {"before": None, "merge_base": 7},
    ],
)
def test_what_is_no_ancestor_is_no_baseline(database, put, facts):
    """A head that was thrown away, words that are no commit, the revision itself."""
    put(facts=facts)
    assert {lane for _, lane in plan(database)} == {Lane.FRESH}


def test_a_failed_build_is_not_asked_again(database, put):
    """Another stack of the same revision is left out with the job that failed."""
    put()
    build = plan(database)[Kind.BUILD, Lane.FRESH]
    with db.writing(database) as session:
        row = work.job(session, build.id)
        row.state, row.blame = State.FAILED.value, Blame.ENGINE.value
        row.failure_class, row.message = "compile", "error: no turbo"
        [event] = session.exec(select(EventRow)).all()
        event.planned = False
        engine = session.get_one(EngineRow, event.engine_id)
        add_stack(session, engine, name="two", intent={"kv": "f16"})
    assert plan(database) == {}
    assert {why for why, _, _ in left_out(database)} == {"build failed"}
    assert f"job {build.id} failed (compile): error: no turbo" in left_out(database)[0][1]


def test_rules_of_the_list_decide(database, put):
    """And what they switch off is on record with the rule's name."""
    put()
    with db.writing(database) as session:
        session.add(
            RuleRow(
                name="quiet",
                place=0,
                asked="fork_pushed",
                does="nothing",
                only={"engines": ["buun"]},
                created_at=NOON,
            )
        )
    assert plan(database) == {}
    assert left_out(database) == [("rule", "quiet says nothing is done", "")]


def test_a_cut_sweep_comes_back_the_next_day(database, put):
    """As backfill; on the same day it stays out, and its reason is closed once it is queued."""
    put(scenarios=("decode-128", "decode-800"))
    with db.writing(database) as session:
        session.add(BudgetRow(name="rig:big", rig="big", hours_per_day=0.25, created_at=NOON))
    first = plan(database)[Kind.BENCH, Lane.FRESH]
    assert first.payload["scenario"] == "decode-128"
    [(why, detail, _)] = left_out(database)
    assert why == "over budget"
    assert "rig big has 0.2 of 0.2 h left today" in detail
    assert plan(database, NOON + timedelta(hours=1)) == {}
    with db.writing(database) as session:
        row = work.job(session, first.id)
        row.state = State.SUCCEEDED.value
        row.started_at, row.finished_at = NOON, NOON + timedelta(minutes=9)
    jobs = plan(database, NOON + timedelta(days=1))
    assert jobs[Kind.BENCH, Lane.BACKFILL].payload["scenario"] == "decode-800"
    assert left_out(database) == []
    assert left_out(database, closed=True)[0][2] == "queued"


def test_what_a_newer_push_replaced_does_not_come_back(database, put):
    """The budget has room for it, and nobody wants to know any more."""
    put()
    assert plan(database, budget_hours=0.1) == {}
    with db.writing(database) as session:
        rows = Rows(session)
        [event] = session.exec(select(EventRow)).all()
        engine = session.get_one(EngineRow, event.engine_id)
        rows.revision(engine, commit="3" * 40, order_key="3")
    assert plan(database, NOON + timedelta(days=1)) == {}
    assert left_out(database, closed=True)[0][2] == "something newer took its place"


def hub_event(session, **changes):
    """A drafter that the hub showed, with its header in the hub's own row."""
    repository = HubRepositoryRow(
        hub_id="h1", full_name=REPO, look_at=NOON, first_seen_at=NOON, last_seen_at=NOON
    )
    session.add(repository)
    session.flush()
    session.add(
        HubFileRow(
            repository_id=repository.id,
            path=DRAFTER,
            sha256=digest("drafter"),
            role="drafter",
            shape=shape_stored(dflash_drafter()),
            facts={"role": "drafter"},
            first_seen_at=NOON,
            changed_at=NOON,
        )
    )
    payload = {
        "repo_id": REPO,
        "sha": "a" * 40,
        "path": DRAFTER,
        "lfs_sha256": digest("drafter"),
        "size": 1_750_000_000,
        "role": "drafter",
        "quant": "Q8_0",
        "shards": [],
        "base_models": ["Qwen/Qwen3.6-27B"],
    }
    session.add(
        EventRow(
            key="hf:drafter:1",
            kind="drafter_published",
            title="a drafter",
            payload=payload | changes,
            seen_at=NOON,
        )
    )


def test_a_published_drafter_is_fetched_and_benched(database, put):
    """Its file gets a row with digest, place and shape; the bench names it by its sha256."""
    put()
    plan(database)
    with db.writing(database) as session:
        hub_event(session)
    jobs = plan(database)
    bench = jobs[Kind.BENCH, Lane.RETEST]
    assert jobs[Kind.FETCH_MODEL, Lane.RETEST].title == f"fetch {REPO}:{DRAFTER}"
    assert bench.payload["drafter_sha256"] == digest("drafter")
    assert bench.payload["intent"] == {"speculation": "dflash"}
    assert bench.source == "hub:spiritbuun"
    assert "which drafter forms" in bench.reason or "was not read" in bench.reason
    with db.reading(database) as session:
        row = session.get(ModelFileRow, bench.payload["drafter_file_id"])
        assert (row.role, row.model_class) == ("drafter", "qwen3.6-27b")
        assert row.source == {"repo": REPO, "file": DRAFTER, "revision": "a" * 40}


@pytest.mark.parametrize(
    "changes",
    [
        {"path": "../../evil.gguf"},
        {"path": "model.safetensors"},
        {"lfs_sha256": "not a digest"},
        {"repo_id": "a/../b"},
        {"sha": "main"},
        {"path": "x-00001-of-00003.gguf"},
    ],
)
def test_a_file_that_cannot_be_named_is_not_fetched(database, put, changes):
    """Whatever an event says that could mean a path, or that has no digest."""
    put()
    plan(database)
    with db.writing(database) as session:
        hub_event(session, **changes)
    assert plan(database) == {}


def test_a_linked_issue_that_closed_runs_again(database, put):
    """At the newest revision, also what was tried before."""
    put()
    first = plan(database)[Kind.BENCH, Lane.FRESH]
    with db.writing(database) as session:
        for row in session.exec(select(JobRow)).all():
            row.state, row.blame = State.FAILED.value, Blame.ENGINE.value
        [event] = session.exec(select(EventRow)).all()
        about = {"full_name": "spiritbuun/buun-llama-cpp", "number": 35}
        session.add(LinkedIssueRow(**about, created_at=NOON))
        session.add(
            EventRow(
                key="gh:issue:1",
                kind="issue_closed",
                title="closed",
                engine_id=event.engine_id,
                payload=about,
                seen_at=NOON,
            )
        )
    again = plan(database, NOON + timedelta(minutes=5))[Kind.BENCH, Lane.FRESH]
    assert again.identity == first.identity
    assert again.id != first.id


@pytest.fixture
def command(database, put, monkeypatch, tmp_path):
    """`forkscout` over that database, and what it printed."""
    monkeypatch.setenv("FORKSCOUT_DATABASE_URL", database.url.render_as_string(False))
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "home"))
    put(facts={"before": "1" * 40, "forced": False})

    def run(*words):
        result = CliRunner().invoke(build_app(), list(words))
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def test_a_dry_run_shows_and_leaves_nothing(database, command):
    """Fetch, build, bench and baseline, the minutes they cost; no row is different after it."""
    text = command("plan", "--dry-run", "--all")
    assert (
        "bench buun master@2 with qwen:q3 on big (decode-128, 8k): fresh, length unknown, "
        "rule default:fork_pushed" in text
    )
    assert "needs: build buun master@2 for big" in text
    assert (
        "2 benches, about 20 minutes of the rig: 2 of unknown length, counted as 10 minutes each"
        in text
    )
    with db.reading(database) as session:
        assert session.exec(select(JobRow)).all() == []
        assert [event.planned for event in session.exec(select(EventRow))] == [False]


def test_a_plan_says_which_builds_are_there(database, command):
    """By this engine, or by another one that has the same commit."""
    command("plan")
    with db.writing(database) as session:
        built = [job for job in session.exec(select(JobRow)) if job.kind == Kind.BUILD]
        own, baseline = (job.payload for job in built)
        for table in (JobNeedRow, JobRow):
            session.execute(delete(table))
        for event in session.exec(select(EventRow)):
            event.planned = False
        rows = Rows(session)
        rows.build(session.get(RevisionRow, own["revision_id"]), identity=own["build_identity"])
        rows.build(identity=baseline["build_identity"])
    text = command("plan", "--dry-run", "--all")
    assert "needs: build buun master@2 for big (built already: build 1)" in text
    assert "has the same commit, build 2)" in text


def test_events_show_what_they_led_to(database, command):
    """Jobs by number with their baselines, and where to read what was left out."""
    command("plan")
    [shown] = json.loads(command("events", "--json"))
    baseline = [job for job in shown["jobs"] if job["baseline_of"]]
    assert [job["kind"] for job in baseline] == ["build", "bench"]
    assert "led to jobs" in command("events")


def test_planning_by_hand_queues(database, command):
    """And `--left-out` shows what was not; rigs that share a store share what they fetch."""
    [found] = json.loads(command("plan", "--json"))
    assert [job["kind"] for job in found["jobs"]].count("bench") == 2
    with db.reading(database) as session:
        jobs = session.exec(select(JobRow)).all()
        asked = {job["identity"] for job in found["jobs"] if job["kind"] != Kind.FETCH_MODEL}
        assert {job.identity for job in jobs if job.kind != Kind.FETCH_MODEL} == asked
        fetched = [job["title"] for job in found["jobs"] if job["kind"] == Kind.FETCH_MODEL]
        assert [job.title for job in jobs if job.kind == Kind.FETCH_MODEL] == fetched
    assert "nothing is left out" in command("plan", "--left-out")


def test_a_drafter_is_kept_as_long_as_a_bench_waits_for_it(database, put):
    """Like its target: neither is pruned meanwhile."""
    put()
    plan(database)
    with db.writing(database) as session:
        hub_event(session)
    plan(database)
    with db.reading(database) as session:
        assert {digest("drafter")} < weights.needed(session)
