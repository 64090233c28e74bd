"""Budgets as a command shows them, over a real installation."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from support.rows import NOON, Rows
from typer.testing import CliRunner

from jobs import db
from jobs.cli.budgets import NO_BUDGET
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.model import State
from jobs.store import rules
from jobs.store.shown_budgets import shown_budgets

HOUR = timedelta(hours=1)


def run(*words: str) -> str:
    done = CliRunner().invoke(build_app("budgets"), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_used_planned_and_left_are_told_by_rig_and_source(database) -> None:
    """What ended today is used, what waits is planned; a rig of no list has the default."""
    with db.writing(database) as session:
        rows = Rows(session)
        rows.rig(name="cpu")
        rows.rig(name="gpu")
        for name, values in (
            ("rig:cpu", {"rig": "cpu", "source": "", "hours_per_day": 5.0}),
            ("engine:buun", {"rig": "", "source": "engine:buun", "hours_per_day": 1.0}),
        ):
            rules.upsert_budget(session, name, now=NOON, values=values)
        rows.job(source="engine:buun", started_at=NOON - HOUR, finished_at=NOON)
        rows.job(source="hand", state=State.QUEUED, estimate_seconds=7200.0)
        session.flush()
        found = shown_budgets(session, NOON, hours=3.0)
    told = [
        (each.name, each.hours_per_day, each.used_hours, each.planned_hours, each.left_hours)
        for each in found
    ]
    assert told == [
        ("rig cpu", 5.0, 1.0, 2.0, 2.0),
        ("rig gpu", 3.0, 0.0, 0.0, 3.0),
        ("source engine:buun", 1.0, 1.0, 0.0, 0.0),
    ]
    assert [each.by_default for each in found] == [False, True, False]


def test_the_command_says_who_set_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one it says how to set it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    assert run("budgets") == f"{NO_BUDGET}\n"
    monkeypatch.setenv("FORKSCOUT_BUDGET_HOURS_PER_DAY", "6")
    database = db.open_database(Settings())
    with db.writing(database) as session:
        Rows(session).rig(name="cpu")
    database.dispose()
    assert "FORKSCOUT_BUDGET_HOURS_PER_DAY" in run("budgets")
    (only,) = json.loads(run("budgets", "--json"))
    assert (only["rig"], only["left_hours"], only["by_default"]) == ("cpu", 6.0, True)
