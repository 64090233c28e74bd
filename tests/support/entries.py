"""Values that pages show, complete, so that a test names only what it is about."""

from __future__ import annotations

from typing import Any

from support.rows import NOON, QUIET, digest

from jobs.model import Kind, Lane, State, Validity, Verdict, VerdictKind
from jobs.store.shown import Entry, Group, ShownJob

GROUP = Group(model_class="gemma-3-270m", rig="cpu", context_tokens=2048, scenario="decode-128.v2")
SAME = Verdict(kind=VerdictKind.SAME, sentence="Same within 3.1 %.", resolution=0.031)


def entry(**fields: Any) -> Entry:
    """One line of the leaderboard."""
    return Entry(
        **{
            "result_id": 7,
            "job_id": 3,
            "group": GROUP,
            "series": "series-1",
            "stack": "gemma-cpu",
            "engine": "buun",
            "family": "llama.cpp",
            "label": "v0.1.2",
            "commit": digest("commit")[:40],
            "model_file": "gemma-3-270m:q4_k_m",
            "quantisation": "Q4_K_M",
            "decode_tps": 66.4,
            "prefill_tps": 325.7,
            "ttft_ms": 79.8,
            "load_seconds": 1.2,
            "peak_memory_bytes": 612_000_000,
            "boots_used": 3,
            "runs_used": 9,
            "validity": Validity.OK,
            "validity_reason": "",
            "sandbox": "bubblewrap",
            "measured_at": NOON,
            "runs": QUIET,
            "verdict": SAME,
        }
        | fields
    )


def job(**fields: Any) -> ShownJob:
    """One job of the queue."""
    return ShownJob(
        **{
            "id": 3,
            "kind": Kind.BENCH,
            "queue": "bench.cpu",
            "state": State.QUEUED,
            "lane": Lane.FRESH,
            "title": "bench buun v0.1.2 on cpu",
            "reason": "new revision",
            "source": "engine:buun",
            "cause": {},
            "estimate_seconds": None,
            "expires_at": None,
            "created_at": NOON,
            "due_at": NOON,
            "turn_at": NOON,
            "started_at": None,
            "finished_at": None,
            "blocked_by": None,
            "attempts": 0,
            "leased_by": None,
            "beat_at": None,
            "cancel_requested": False,
            "failure_class": None,
            "blame": None,
            "message": "",
            "advice": "",
            "progress": {},
            "identity": digest("job"),
        }
        | fields
    )
