"""An artifact that changed between build and bench is never run, and is built again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.rows import Rows
from support.work import request

from jobs import clock, db, queue
from jobs.config import Settings
from jobs.control import Control
from jobs.errors import JobFailure
from jobs.model import Blame, Kind
from jobs.payloads import BenchPayload
from jobs.station import Station
from jobs.store import leases, results, work
from workers import artifacts
from workers.benching import bench


def _change(tree: Path) -> None:
    program = tree / "bin" / "llama-server"
    program.chmod(0o755)
    program.write_text("#!/bin/sh\necho other code\n")


def _add(tree: Path) -> None:
    (tree / "bin").chmod(0o755)
    (tree / "bin" / "libextra.so").write_text("preloaded")


def _plant_a_link(tree: Path) -> None:
    (tree / "bin").chmod(0o755)
    (tree / "bin" / "libc.so.6").symlink_to("/etc/passwd")


def _lose_provenance(tree: Path) -> None:
    (tree.parent / "provenance.json").unlink()


def _break_provenance(tree: Path) -> None:
    (tree.parent / "provenance.json").write_text(json.dumps(["not", "an", "object"]))


@pytest.mark.parametrize(
    "tamper", [_change, _add, _plant_a_link, _lose_provenance, _break_provenance]
)
def test_a_tampered_artifact_is_thrown_away_and_no_engine_blamed(
    sqlite: Engine, tmp_path: Path, tamper: Callable[[Path], None]
) -> None:
    """The bench ends with advice, the store forgets the artifact, the next request builds it."""
    settings = Settings(_env_file=None, home=tmp_path / "home")  # type: ignore[call-arg]
    settings.prepare()
    made = tmp_path / "made"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "llama-server").write_text("#!/bin/sh\n")
    digest = artifacts.store(made, settings.artifacts)
    artifacts.write_provenance(settings.artifacts, digest, {"help": "--port"})
    station = Station(settings, sqlite, queue.make_app(settings), "bench.cpu@here")
    with db.writing(sqlite) as session:
        rows = Rows(session)
        build = rows.build(artifact=digest)
        payload = BenchPayload(
            revision_id=build.revision_id,
            build_identity=build.identity,
            model_file_id=rows.model_file().id or 0,
            scenario="decode-128",
            rig="cpu",
            stack="a",
            context_tokens=2048,
            runs=1,
            boots=1,
        )
        wish = request("bench", kind=Kind.BENCH, payload=payload.model_dump(mode="json"))
        work.enqueue(session, [wish], clock.now())
        held = leases.lease(session, "build", "me", clock.now())
    assert held is not None
    tamper(settings.artifacts / digest / "tree")
    with pytest.raises(JobFailure) as caught:
        bench(station, held, Control())
    assert caught.value.failure_class == "artifact_damaged"
    assert caught.value.blame is Blame.CONFIGURATION
    assert "submit the bench again" in caught.value.advice
    assert artifacts.find(settings.artifacts, digest) is None
    with db.reading(sqlite) as session:
        lost = results.build_with_identity(session, build.identity)
    assert lost is not None
    assert lost.lost
