"""Negatives that stand, that were followed and that were overturned, one full of harm."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from support.rows import Rows, digest

from jobs.negative_tables import NegativeMoveRow, NegativeRow
from jobs.negatives import Grounds
from jobs.store.grounds import stored
from jobs.tables import EngineRow


def negative(rows: Rows, engine: EngineRow, now: datetime, **fields: Any) -> NegativeRow:
    """A negative of that engine with every field filled."""
    values = {
        "question": digest(str(fields)),
        "kind": "bench",
        "engine_id": engine.id,
        "rig": "olares-5090m",
        "scenario": "decode-800",
        "stack": "qwen-dflash-262k",
        "context_tokens": 262_144,
        "outcome": "failed",
        "failure_class": "oom_kv",
        "blame": "configuration",
        "why": "cudaMalloc failed: out of memory",
        "source": "bench",
        "days": 7.0,
        "created_at": now - timedelta(days=2),
        "expires_at": now + timedelta(days=5),
        "grounds": stored(
            Grounds(
                commit="1" * 40,
                label="master@111111111",
                target="unsloth/Qwen3.6-27B-GGUF:UD-Q3_K_XL",
                target_sha256=digest("target"),
                drafter="spiritbuun/Qwen3.6-27B-DFlash-GGUF:q8_0",
                drafter_sha256=digest("drafter"),
                flags=("--spec-dflash-cross-ctx", "1024"),
                driver="570.86.16",
                vram_bytes=24 * 2**30,
                fingerprint="3f9a1c",
                sandbox="bubblewrap",
                issues=("spiritbuun/buun-llama-cpp#35",),
            )
        ),
    }
    row = NegativeRow(**values | fields)
    rows.session.add(row)
    rows.session.flush()
    return row


def fill_negatives(
    rows: Rows,
    engine: EngineRow,
    evil: EngineRow,
    now: datetime,
    *,
    works: int,
    retest: int,
    harm: str,
) -> dict[str, int]:
    """`works` is the job that overturned two of them, `retest` one that asks again now."""
    ended = {
        "state": "overturned",
        "ended_at": now - timedelta(hours=5),
        "ended_by": f"job {works} succeeded",
        "overturned_by": works,
    }
    first = negative(
        rows,
        engine,
        now,
        failure_class="does_not_fit",
        why="target 17 + drafter 6 (BF16) + buffers 3 + KV 2 = 28 GB, the card has 24",
        outcome="said",
        source="hand",
        preflight="fits: 21.9 GiB (20.4 to 22.9) of 23.7 GiB usable",
        created_at=now - timedelta(days=3, hours=9),
        **ended,
    )
    second = negative(
        rows,
        engine,
        now,
        failure_class="unstable",
        why="unstable: speed falls run over run in boot 1",
        follows_id=first.id,
        created_at=now - timedelta(days=2, hours=8),
        **ended,
    )
    standing = negative(rows, engine, now)
    evil_one = negative(rows, evil, now, why=harm, failure_class=harm, stack=harm, rig=harm)
    move(rows, standing, now, "the driver went from 560.1 to 570.86.16", job_id=retest)
    move(rows, evil_one, now, harm, refusal=harm)
    build = negative(
        rows,
        engine,
        now,
        kind="build",
        stack="",
        scenario="",
        context_tokens=0,
        failure_class="exit",
        why="fattn.cu:1265: error: static assertion failed",
        days=14.0,
        expires_at=now + timedelta(days=13),
    )
    return {
        "believed": first.id or 0,
        "unstable": second.id or 0,
        "standing": standing.id or 0,
        "unbuilt": build.id or 0,
    }


def move(rows: Rows, row: NegativeRow, now: datetime, says: str, **fields: Any) -> None:
    """Something moved under a negative."""
    found = NegativeMoveRow(
        negative_id=row.id, key=says, kind="driver", says=says, moved_at=now, **fields
    )
    rows.session.add(found)
    rows.session.flush()
