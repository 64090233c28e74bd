"""A rig of the real server: learned, run by hand, out of band, quarantined, released."""

from __future__ import annotations

import json

from support.waiting import wait_for

from jobs import db
from jobs.db import writing
from jobs.model import Kind, State
from jobs.store import rigs


def shown(system):
    done = system.run("rig", "show", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def runs_of(system, count):
    return wait_for(
        lambda: len((found := shown(system))["runs"]) >= count and found,
        seconds=180,
        what=f"{count} runs of the golden",
    )


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
    learned = shown(system)
    assert (learned["state"], learned["golden"]["origin"]) == ("trusted", "learned")
    assert learned["runs"] == []
    system.up()
    assert "runs next" in system.run("rig", "golden", "cpu").stdout
    first = runs_of(system, 1)
    assert first["runs"][0]["decode_tps"] > 0
    assert first["state"] == "trusted"
    (job,) = [row for row in system.jobs() if row.kind == Kind.SMOKE]
    assert (job.state, system.count("result")) == (State.SUCCEEDED, 1)
    misremember(system)
    system.run("rig", "golden", "cpu")
    last = runs_of(system, 3)
    assert [run["outcome"] for run in last["runs"][:2]] == ["out_of_band", "out_of_band"]
    assert last["state"] == "quarantined"
    words = ("submit", "bench", "--engine", "xllamacpp", "--runs", "1", "--boots", "1", "--json")
    number = json.loads(system.run(*words).stdout)[-1]["id"]
    said = system.run("jobs", "--why", str(number)).stdout
    assert "cpu is quarantined since" in said
    assert system.job(number).state == State.QUEUED
    assert "cpu is released" in system.run("rig", "release", "cpu").stdout
    system.wait_for_state(number, State.SUCCEEDED, State.FAILED)
