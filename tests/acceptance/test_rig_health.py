"""A rig of the real server: learned, run by hand, out of band, quarantined, released."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.waiting import wait_for

from jobs import db
from jobs.db import writing
from jobs.model import Kind, State
from jobs.store import catalog, rigs

RUNS = "health_run"


def shown(system):
    done = system.run("rig", "show", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def learn(system):
    """Bench until a result counts: on a busy machine the first ones may be tainted."""
    for _ in range(15):
        if (found := shown(system))["golden"]:
            return found
        system.wait_for_state(submit(system), State.SUCCEEDED, State.FAILED)
    pytest.skip("a quiet machine: every boot of the golden was disturbed")


def run_golden(system):
    """Ask until a run says something; the rig after it."""
    for _ in range(15):
        before = system.count(RUNS)
        assert "runs next" in system.run("rig", "golden", "cpu").stdout
        # Asked of the database: a command each second would be what disturbs the run.
        wait_for(
            lambda seen=before: system.count(RUNS) > seen,
            seconds=180,
            what="a run of the golden",
        )
        found = shown(system)
        if found["runs"][0]["outcome"] != "disturbed":
            return found
    pytest.skip("a quiet machine: every boot of the golden was disturbed")


def submit(system):
    """Queue a short bench by hand; its number."""
    words = ("submit", "bench", "--engine", "xllamacpp", "--runs", "1", "--boots", "1", "--json")
    return json.loads(system.run(*words).stdout)[-1]["id"]


def misremember(system):
    """Let the golden's known result be one that this machine never reaches."""
    database = db.connect(system.settings.resolved_database_url)
    with writing(database) as session:
        golden = rigs.golden_of(session, "cpu")
        golden.low, golden.high = 1e6, 2e6
        session.add(golden)
    database.dispose()


def test_a_golden_runs_and_one_whose_known_result_is_off_shuts_the_rig(system):
    """In the band by hand; then twice out of it: quarantined, a bench waits, released by hand."""
    system.up()
    learned = learn(system)
    assert (learned["state"], learned["golden"]["origin"]) == ("trusted", "learned")
    results = system.count("result")
    first = run_golden(system)
    assert first["runs"][0]["decode_tps"] > 0
    assert system.count("result") == results
    assert {row.state for row in system.jobs() if row.kind == Kind.SMOKE} == {State.SUCCEEDED}
    misremember(system)
    while (last := run_golden(system))["state"] != "quarantined":
        assert last["runs"][0]["outcome"] == "out_of_band"
    number = submit(system)
    said = system.run("jobs", "--why", str(number)).stdout
    assert "cpu is quarantined since" in said
    assert system.job(number).state == State.QUEUED
    assert "cpu is released" in system.run("rig", "release", "cpu").stdout
    system.wait_for_state(number, State.SUCCEEDED, State.FAILED)


def test_a_golden_of_the_watch_list_runs_as_soon_as_a_worker_serves_its_rig(system):
    """On any machine, however busy: one health job with the real server, one run, no result."""
    database = db.connect(system.settings.resolved_database_url)
    with db.reading(database) as session:
        engine = catalog.engine_named(session, "xllamacpp")
        label = catalog.revisions_of(session, engine.id)[-1].label
    database.dispose()
    golden = f'\n[[golden]]\nrig = "cpu"\nstack = "tiny-cpu"\nrevision = "{label}"\n'
    listed = system.folder / "golden.toml"
    shipped = Path(system.environment["FORKSCOUT_WATCHLIST"]).read_text()
    listed.write_text(shipped + golden + "decode_tps = [1, 1000000]\n")
    done = system.run("watchlist", "import", str(listed))
    assert "golden of cpu" in done.stdout, done.stdout + done.stderr
    results = system.count("result")
    system.up()
    found = wait_for(
        lambda: (now := shown(system))["runs"] and now, seconds=200, what="a run of the golden"
    )
    assert found["golden"]["origin"] == "watch list"
    assert found["runs"][0]["outcome"] in ("in_band", "disturbed")
    assert system.count("result") == results
    assert {row.state for row in system.jobs() if row.kind == Kind.SMOKE} == {State.SUCCEEDED}
