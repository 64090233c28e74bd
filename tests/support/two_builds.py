"""A bench job that boots two builds of the stub in turns, as its handler would hand it over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from support.rows import Rows
from support.stub_bench import SUPPORT, scenario
from support.stub_family import StubFamily
from support.work import request

from jobs import clock, db, queue
from jobs.config import Settings
from jobs.control import Control
from jobs.db import database_now
from jobs.model import Boot, Flags, Kind, Revision, Validity
from jobs.payloads import AgainstPayload, BenchPayload
from jobs.scenarios import Scenario
from jobs.station import Station
from jobs.store import leases, work
from workers.errands import Errand, Subject
from workers.host import machine_facts
from workers.plan import Place, Plan
from workers.preparing import Bench
from workers.sandbox import Limits, Mount
from workers.turns import Side, record_sides, run_in_turns
from workers.uncaged import Uncaged

BUSY = (Validity.OK, Validity.TAINTED, Validity.INCONSISTENT)
"""What an honest run may be called on a machine that does other things."""


def _at(boot: Boot, speed: float) -> Boot:
    return replace(
        boot,
        measurements=tuple(
            replace(m, validity=Validity.OK, reason="", decode_tps=speed)
            if m.validity in BUSY
            else m
            for m in boot.measurements
        ),
    )


ASKED = scenario(runs=1, boots=2)


class TwoBuilds:
    """One leased job of engine `ours` against engine `theirs`; each side has its behaviour."""

    def __init__(
        self,
        database: Engine,
        folder: Path,
        ours: dict[str, Any],
        theirs: dict[str, Any],
        *,
        asked: Scenario = ASKED,
        **plan: Any,
    ) -> None:
        settings = Settings(  # type: ignore[call-arg]
            _env_file=None, home=folder / "home", quiet_seconds=0.0
        )
        settings.prepare()
        (folder / "model.gguf").write_bytes(b"GGUF")
        self.database, self.folder, self.asked, self.plan = database, folder, asked, plan
        self.station = Station(settings, database, queue.make_app(settings), "bench.cpu@here")
        self.control = Control()
        self.facts = machine_facts()
        with db.writing(database) as session:
            rows = Rows(session)
            self._model = rows.model_file(name="tiny:q4")
            rows.rig(name="cpu", fingerprint="")
            parts = [self._build(rows, name) for name in ("ours", "theirs")]
            self.wanted = BenchPayload(
                revision_id=parts[0][1].id,
                build_identity=parts[0][2].identity,
                model_file_id=self._model.id or 0,
                scenario=asked.name,
                rig="cpu",
                stack="a",
                runs=1,
                boots=2,
                against=AgainstPayload(
                    revision_id=parts[1][1].id, build_identity=parts[1][2].identity
                ),
            )
            payload = self.wanted.model_dump(mode="json")
            wish = request("turns", kind=Kind.BENCH, queue="bench.cpu", payload=payload)
            work.enqueue(session, [wish], clock.now())
            held = leases.lease(session, "bench.cpu", "me", database_now(session))
            assert held is not None
            leases.start(session, held, database_now(session))
            session.flush()
            for each in (self._model, *(row for part in parts for row in part)):
                session.refresh(each)
                session.expunge(each)
        self.held = held
        self.errand = Errand(self.station, held, self.control)
        baseline = self.wanted.baseline
        assert baseline is not None
        self.sides = [
            self._side(arm, payload, part, behaviour)
            for arm, payload, part, behaviour in (
                ("A", self.wanted, parts[0], ours),
                ("B", baseline, parts[1], theirs),
            )
        ]

    def run(self, *, speeds: tuple[float, float] = (60.0, 40.0)) -> str:
        """Boot both in turns and store what came of it, as the end of the job does.

        Whatever else this machine does: runs that it may have disturbed are `ok` at these speeds.
        """
        run_in_turns(self.errand, self.sides, most_rounds=2)
        for side, speed in zip(self.sides, speeds, strict=True):
            side.boots = [_at(boot, speed) for boot in side.boots]
        with db.writing(self.database) as session:
            said = record_sides(
                session, held=self.held, sides=self.sides, facts=self.facts, days=14.0
            )
            leases.succeed(session, self.held, database_now(session), said)
        return said

    @property
    def kept(self) -> Path:
        """Where each boot is written as it ends."""
        return self.errand.log.with_suffix(".boots.jsonl")

    def _build(self, rows: Rows, name: str) -> tuple[Any, Any, Any]:
        engine = rows.engine(name=name, family="stub", repo=None, package=name)
        revision = rows.revision(engine, label=f"{name}-1")
        return engine, revision, rows.build(revision)

    def _side(
        self, arm: str, payload: BenchPayload, part: tuple[Any, Any, Any], behaviour: dict[str, Any]
    ) -> Side:
        engine, revision, build = part
        family = StubFamily(behaviour)
        plan = Plan(
            engine=family,
            scenario=self.asked,
            flags=Flags(frozenset()),
            artifact=Mount(SUPPORT, "/run/artifact"),
            model=Mount(self.folder / "model.gguf", "/run/model.gguf"),
            context_tokens=2048,
            threads=1,
            runs=1,
            boots=2,
            **self.plan,
        )
        value = Revision(engine.name, "stub", revision.commit, revision.label, engine.name)
        bench = Bench(
            wanted=payload,
            subject=Subject(engine, revision, value, family),
            scenario=self.asked,
            build=build,
            model=self._model,
            others={},
            weights=(self.folder / "model.gguf",),
            card=None,
            sandbox=Uncaged(),
            plan=plan,
            header=None,
        )
        place = Place(
            Uncaged(),
            Limits(output_bytes=2**20),
            self.station.settings.runtime,
            self.errand.log,
            f"test-{self.folder.name}",
        )
        return Side(arm, bench, place)
