"""A bench job of two real builds, from its lease to its rows."""

from __future__ import annotations

import hashlib
import shutil

from sqlmodel import select
from support.real_engine import LIMITS, VERSION
from support.rows import Rows
from support.work import request

from jobs import clock, db, queue
from jobs.arm_tables import ArmRow
from jobs.config import Settings
from jobs.control import Control
from jobs.engines import xllamacpp
from jobs.model import Kind, Trust
from jobs.payloads import AgainstPayload, BenchPayload
from jobs.station import Station, serve
from jobs.store import work
from jobs.tables import JobRow, ResultRow
from workers import artifacts
from workers.benching import bench
from workers.flags import ask_help
from workers.plan import Place, interpreter_mounts
from workers.sandbox import Mount
from workers.uncaged import Uncaged
from workers.weight_bringing import store_of


def test_a_job_boots_two_real_builds_in_turns(sqlite, real_artifact, tiny_weights, tmp_path):
    """Both are checked and prepared, booted in turns, and leave two results that are a pair."""
    settings = Settings(_env_file=None, home=tmp_path / "home", quiet_seconds=0.0)
    settings.prepare()
    station = Station(settings, sqlite, queue.make_app(settings), "bench.cpu@here")
    place = Place(Uncaged(), LIMITS, tmp_path, tmp_path / "log", f"test-{tmp_path.name}")
    tree = Mount(real_artifact, "/run/artifact")
    extra = interpreter_mounts(xllamacpp)
    text = ask_help(xllamacpp, tree, place, control=Control(), mounts=extra)
    digest = artifacts.store(shutil.copytree(real_artifact, tmp_path / "made"), settings.artifacts)
    artifacts.write_provenance(settings.artifacts, digest, {"help": text})
    sha256 = hashlib.sha256(tiny_weights.read_bytes()).hexdigest()
    store = store_of(settings, sqlite, say=[].append)
    store.file(sha256).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(tiny_weights, store.file(sha256))
    with db.writing(sqlite) as session:
        rows = Rows(session)
        model = rows.model_file(name="tiny", sha256=sha256, source={}, stored_in=store.name)
        rows.rig(name="cpu", fingerprint="")
        builds = []
        for name in ("ours", "theirs"):
            engine = rows.engine(
                name=name, family="xllamacpp", repo=None, package=name, trust=Trust.PACKAGE
            )
            revision = rows.revision(engine, label=VERSION)
            builds.append(rows.build(revision, artifact=digest))
        payload = BenchPayload(
            revision_id=builds[0].revision_id,
            build_identity=builds[0].identity,
            model_file_id=model.id,
            scenario="completion-128",
            rig="cpu",
            stack="a",
            context_tokens=1024,
            runs=1,
            boots=1,
            against=AgainstPayload(
                revision_id=builds[1].revision_id, build_identity=builds[1].identity
            ),
        )
        wish = request(
            "turns", kind=Kind.BENCH, queue="bench.cpu", payload=payload.model_dump(mode="json")
        )
        work.enqueue(session, [wish], clock.now())
    assert serve(station, "bench.cpu", {Kind.BENCH: bench}) == 1
    with db.reading(sqlite) as session:
        jobs = session.exec(select(JobRow).where(JobRow.kind == Kind.BENCH)).all()
        arms = session.exec(select(ArmRow)).all()
        results = session.exec(select(ResultRow)).all()
    told = [(job.title, job.state, job.failure_class, job.message) for job in jobs]
    assert [
        job.state for job in jobs if job.queue == "bench.cpu" and job.payload.get("scenario")
    ] == [
        "succeeded",
        "succeeded",
    ], told
    assert sorted(each.arm for each in arms) == ["A", "B"]
    assert len({each.engine_id for each in results}) == 2
