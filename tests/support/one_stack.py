"""A fork with one stack on one rig, and a hand that works its jobs off with given speeds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, select
from support.fit_rows import shaped_file
from support.rows import Rows, digest
from support.shapes import qwen36

from jobs import compare, db
from jobs.compare import BootRuns
from jobs.dispatch import bench_requests, plan_events
from jobs.errors import JobFailure
from jobs.model import (
    Blame,
    Boot,
    BootFacts,
    Effective,
    Kind,
    Lane,
    Measurement,
    Trust,
    Validity,
)
from jobs.negative_tables import NegativeRow
from jobs.planning.chains import BenchWish
from jobs.scenarios import SCENARIOS
from jobs.store import births, catalog, doubts, leases, results, retests, weights, work
from jobs.store.births import Known
from jobs.store.leases import Lease
from jobs.store.results import Finished
from jobs.tables import (
    BuildRow,
    EventRow,
    JobRow,
    ModelFileRow,
    RevisionRow,
    RigRow,
    StackRow,
)

RIG = "olares"
TARGET = "qwen3.6-27b:q4_k_m"
DRAFTER = "qwen3.6-27b-dflash:bf16"
REPO = "spiritbuun/buun-llama-cpp"
DRAFTS = "spiritbuun/Qwen3.6-27B-DFlash-GGUF"
GIB = 2**30


class Bench:
    """One fork, one stack, one rig, and a clock that is passed in."""

    def __init__(self, database: Engine, now: datetime) -> None:
        self.database, self.now = database, now
        with db.writing(database) as session:
            rows = Rows(session)
            engine = rows.engine(
                name="buun",
                repo=REPO,
                trust=Trust.AUTO,
                targets=[{"rig": RIG, "via": "cmake", "cuda_arch": "120"}],
            )
            rows.rig(
                name=RIG,
                device="cuda",
                fingerprint="f1",
                memory_bytes=24 * GIB,
                facts={"driver": "570.1"},
            )
            shaped_file(rows, TARGET, qwen36(), model_class="qwen3.6-27b")
            rows.model_file(name=DRAFTER, role="drafter", model_class="qwen3.6-27b")
            session.add(
                StackRow(
                    name="qwen-dflash",
                    engine_id=engine.id,
                    target=TARGET,
                    drafter=DRAFTER,
                    intent={"context": 8192, "speculation": "dflash"},
                    scenarios=["decode-800"],
                    created_at=now,
                )
            )
            rows.worker(name="w1", queue=f"bench.{RIG}")
        self.revision("1", "master@1")

    def later(self, **span: float) -> datetime:
        self.now += timedelta(**span)
        return self.now

    def revision(self, digit: str, label: str) -> int:
        with db.writing(self.database) as session:
            row = catalog.add_revision(
                session,
                engine_id=catalog.engine_named(session, "buun").id or 0,
                commit=digit * 40,
                label=label,
                order_key=f"{self.now.isoformat()} {digit}",
                committed_at=self.now,
                now=self.now,
            )
            return row.id or 0

    def change(self, table: type[Any], name: str, **values: Any) -> None:
        """Another value in the row of that name."""
        with db.writing(self.database) as session:
            row = session.exec(select(table).where(table.name == name)).one()
            for key, value in values.items():
                setattr(row, key, value)
            session.add(row)

    def tell(self, kind: str, title: str, **fields: Any) -> list[JobRow]:
        """Write an event and plan it; the jobs that are new."""
        with db.writing(self.database) as session:
            catalog.add_event(
                session,
                key=f"{kind}:{title}:{self.now.isoformat()}",
                kind=kind,
                title=title,
                now=self.now,
                **{"engine_id": catalog.engine_named(session, "buun").id} | fields,
            )
            return plan_events(session, self.now)

    def push(self, digit: str, *, commits: int = 1) -> list[JobRow]:
        number = self.revision(digit, f"master@{digit}")
        payload = {"facts": {"new_patches": commits, "forced": False}}
        return self.tell("fork_pushed", "buun pushed", revision_id=number, payload=payload)

    def publish(self, path: str, **facts: Any) -> list[JobRow]:
        """A drafter appears on the hub."""
        payload = {
            "repo_id": DRAFTS,
            "sha": "a" * 40,
            "path": path,
            "lfs_sha256": digest(path),
            "size": 1_750_000_000,
            "shards": [],
            "role": "drafter",
            "base_models": ["Qwen/Qwen3.6-27B"],
        }
        title = f"{DRAFTS} published the drafter {path}"
        return self.tell("drafter_published", title, engine_id=None, payload=payload | facts)

    def look(self) -> list[JobRow]:
        """What a sweep does."""
        with db.writing(self.database) as session:
            doubts.settle(session, self.now)
            return retests.look(session, self.now)

    def ask(self, **changes: Any) -> list[JobRow]:
        """A bench of the stack by hand, at the newest revision."""
        with db.writing(self.database) as session:
            engine = catalog.engine_named(session, "buun")
            revision = session.get_one(
                RevisionRow, changes.pop("revision_id", self.newest(session))
            )
            wish = BenchWish(
                **{
                    "rig": RIG,
                    "scenario": SCENARIOS["decode-800"],
                    "stack": "qwen-dflash",
                    "context_tokens": 8192,
                    "intent": {"speculation": "dflash"},
                }
                | changes
            )
            files = {
                role: catalog.model_named(session, name)
                for role, name in (("target", TARGET), ("drafter", DRAFTER))
            }
            requests = bench_requests(
                engine, revision, files, wish, lane=Lane.ON_DEMAND, reason="asked for by hand"
            )
            return [job for job in work.enqueue(session, requests, self.now).values() if job]

    @staticmethod
    def newest(session: Session) -> int:
        rows = session.exec(select(RevisionRow).order_by(RevisionRow.order_key)).all()
        return rows[-1].id or 0

    def work_off(
        self,
        *runs: float,
        failure: JobFailure | None = None,
        build_failure: JobFailure | None = None,
        validity: Validity = Validity.OK,
    ) -> list[Known]:
        """Do every due job: builds succeed, benches measure these runs in each boot, or fail."""
        found: list[Known] = []
        for queue in ("build", f"bench.{RIG}", "build", f"bench.{RIG}"):
            while True:
                with db.writing(self.database) as session:
                    held = leases.lease(session, queue, "w1", self.now)
                    if held is None:
                        break
                    leases.start(session, held, self.now)
                ended = build_failure if held.kind is Kind.BUILD else failure
                ended = ended if held.kind in (Kind.BUILD, Kind.BENCH) else None
                with db.writing(self.database) as session:
                    if ended is not None:
                        leases.fail(session, held, ended, self.now, limit=3)
                    else:
                        said = self._record(session, held, runs, validity)
                        leases.succeed(session, held, self.now, said)
                    found.append(births.job_ended(session, held.job_id, self.now, days=7.0))
        return [known for known in found if known.born or known.overturned]

    def work_off_to_bench(self) -> None:
        """Do what comes before the bench."""
        while True:
            with db.writing(self.database) as session:
                held = leases.lease(session, "build", "w1", self.now)
                if held is None:
                    return
                leases.start(session, held, self.now)
                said = self._record(session, held, (), Validity.OK)
                leases.succeed(session, held, self.now, said)

    def end(self, held: Lease, failure: JobFailure) -> Known:
        """The job that is held fails."""
        with db.writing(self.database) as session:
            leases.fail(session, held, failure, self.now, limit=3)
            return births.job_ended(session, held.job_id, self.now, days=7.0)

    def _record(
        self, session: Session, held: Lease, runs: Sequence[float], validity: Validity
    ) -> str:
        payload = held.payload
        if held.kind is Kind.FETCH_MODEL:
            row = session.get_one(ModelFileRow, payload["model_file_id"])
            weights.say_stored(session, row.sha256, 1, store="a-store", now=self.now)
            return "stored"
        if held.kind is Kind.BUILD:
            results.record_build(
                session,
                BuildRow(
                    identity=payload["build_identity"],
                    revision_id=payload["revision_id"],
                    job_id=held.job_id,
                    target=payload["target"],
                    artifact=digest(payload["build_identity"]),
                    recipe="llama.cpp/cmake/1",
                    size_bytes=1,
                    duration_seconds=1.0,
                    sandbox="bubblewrap",
                    created_at=self.now,
                ),
            )
            return "built"
        return self._measure(session, held, runs, validity)

    def _measure(
        self, session: Session, held: Lease, runs: Sequence[float], validity: Validity
    ) -> str:
        payload = held.payload
        boots = [
            Boot(
                number=number,
                load_seconds=9.0,
                facts=BootFacts(),
                effective=Effective(),
                props={},
                slots=(),
                measurements=tuple(
                    Measurement(run, False, validity, decode_tps=speed)
                    for run, speed in enumerate(runs, start=1)
                ),
            )
            for number in (1, 2)
        ]
        counted = [BootRuns(b.number, tuple(runs)) for b in boots if validity is Validity.OK]
        stands = compare.standing(
            counted, runs_asked=payload["runs"], boots_asked=2, worst=validity, why="a test"
        )
        build = results.build_with_identity(session, payload["build_identity"])
        rig = session.exec(select(RigRow).where(RigRow.name == RIG)).one()
        revision = session.get_one(RevisionRow, payload["revision_id"])
        found = Finished(
            build_id=build.id if build else 0,
            revision_id=revision.id or 0,
            engine_id=revision.engine_id,
            model_file_id=payload["model_file_id"],
            drafter_file_id=payload["drafter_file_id"],
            rig_id=rig.id or 0,
            series="series",
            cell="cell",
            stack=payload["stack"],
            scenario=f"{payload['scenario']}.v1",
            context_tokens=payload["context_tokens"],
            sandbox="bubblewrap",
            validity=stands.validity,
            validity_reason=stands.reason,
            summary={"decode_tps": sorted(runs)[len(runs) // 2] if runs else None},
            boots=boots,
        )
        row = results.record_result(session, held.job_id, found, self.now)
        verdict = compare.judge(
            counted, standing=stands, baseline=(), baseline_label="", history=()
        )
        results.record_verdict(session, row.id or 0, None, verdict, self.now)
        return verdict.sentence

    def negatives(self) -> list[NegativeRow]:
        with db.reading(self.database) as session:
            return list(session.exec(select(NegativeRow).order_by(NegativeRow.id)))

    def job(self, number: int | None) -> JobRow:
        with db.reading(self.database) as session:
            return work.job(session, number or 0)

    def events(self, kind: str) -> list[EventRow]:
        with db.reading(self.database) as session:
            return catalog.events(session, kind=kind)


def crash(failure_class: str = "fattn", blame: Blame = Blame.ENGINE) -> JobFailure:
    """What a bench or a build may end with."""
    return JobFailure("it fell over", failure_class=failure_class, blame=blame)
