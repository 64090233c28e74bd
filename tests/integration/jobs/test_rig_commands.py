"""Commands about rigs and workers, over a real database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.rows import Rows
from typer.testing import CliRunner

from jobs import clock, db
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.errors import UsageError
from jobs.payloads import BenchPayload
from jobs.store import rigs

HOSTILE = "\x1b]0;owned\x07evil\u202e\nfake line"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    opened = db.open_database(Settings())
    with db.writing(opened) as session:
        Rows(session).rig(name="cpu")
    yield opened
    opened.dispose()


def run(*words: str) -> str:
    done = CliRunner().invoke(build_app(words[0]), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_rig_is_shut_and_opened_by_hand(database) -> None:
    """With the reason, in the list and as JSON; a hostile reason obeys no terminal."""
    assert run("rig", "list") == "cpu: unproven\n"
    assert "release" in run("rig", "quarantine", "cpu", "--why", HOSTILE)
    listed = run("rig", "list")
    assert "cpu: quarantined, since" in listed
    assert "\x1b" not in listed
    (found,) = json.loads(run("rig", "list", "--json"))
    assert (found["state"], found["by_hand"], found["golden"]) == ("quarantined", True, None)
    assert run("rig", "release", "cpu") == "cpu is released\n"
    assert run("rig", "release", "cpu", "--believe").splitlines() == [
        "cpu was not quarantined",
        "0 results believed again",
    ]
    assert "released by hand" in run("rig", "show", "cpu")


def test_a_golden_is_asked_for_and_shown(database) -> None:
    """Band and origin are told; without a golden there is nothing to run."""
    with pytest.raises(UsageError, match="no golden"):
        run("rig", "golden", "cpu")
    wanted = BenchPayload(
        revision_id=1,
        build_identity="b",
        model_file_id=1,
        scenario="decode-128",
        rig="cpu",
        stack="tiny",
    )
    with db.writing(database) as session:
        rigs.learn(
            session,
            "cpu",
            wanted,
            revision="1.0",
            speeds=[60.0],
            text_sha256="",
            now=clock.now(),
        )
    assert "the golden of cpu (tiny at 1.0) runs next" in run("rig", "golden", "cpu")
    said = run("rig", "show", "cpu")
    assert "golden: tiny at 1.0 (learned), band 45.0 to 75.0 t/s" in said
    assert json.loads(run("rig", "show", "cpu", "--json"))["run_wanted"] == "asked for by hand"


def test_an_unknown_rig_is_refused_with_the_nearest(database) -> None:
    """Nothing is shut by a typing error."""
    for words in (["show", "cpuu"], ["quarantine", "cpuu", "--why", "x"], ["release", "cpuu"]):
        with pytest.raises(UsageError, match="cpuu") as caught:
            run("rig", *words)
        assert "cpu" in caught.value.advice


def test_workers_are_listed_with_what_holds_them_back(database) -> None:
    """As a table and as JSON; none is said so."""
    assert "forkscout up" in run("workers")
    with db.writing(database) as session:
        now = clock.now()
        rows = Rows(session)
        rows.worker(name="bench-a", beat_at=now, heard_at=now, trouble="the card is lost")
        rows.worker(name="bench-b")
    said = run("workers")
    assert "held: the card is lost" in said
    assert "gone" in said
    found = json.loads(run("workers", "--json"))
    assert [each["condition"] for each in found["workers"]] == ["held", "gone"]
    assert found["alarms"] == []
