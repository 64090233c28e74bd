"""A sound result file as the offline bench writes it, small enough to be read in a test."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from support import gguf_files

from jobs import exchange
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of
from jobs.scenarios import LADDERS, SCENARIOS

SHORT = replace(SCENARIOS["decode-128"], runs=3, boots=1)
DEEP = replace(LADDERS["ladder"], runs=3, boots=1, filled_tokens=32_768, depths=())
AT = "2026-11-30T20:00:00+00:00"


def sample(scenario: str, run: int, *, speed: float = 50.0, **fields: Any) -> dict[str, Any]:
    """One request's values."""
    values = {
        "run": run,
        "warmup": run == 0,
        "validity": "ok",
        "scenario": scenario,
        "predicted_n": 128,
        "predicted_ms": 128 / speed * 1000,
        "decode_tps": speed,
        "prompt_n": 40,
        "prompt_ms": 20.0,
        "prefill_tps": 2000.0,
        "timings": {"predicted_n": 128},
        "after": {"host_bytes": 10, "card": {"process_bytes": 2**30}},
    }
    return values | fields


def boot(number: int, samples: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """One boot's values."""
    values = {
        "number": number,
        "load_seconds": 4.5,
        "facts": {"offloaded_layers": 2, "total_layers": 2},
        "effective": {"context_tokens": 4096, "slots": 1, "alias": "boot-1"},
        "props": {"model_alias": "boot-1"},
        "slots": [{"id": 0}],
        "measurements": samples,
        "started_at": AT,
        "command": ["<artifact>/llama-server", "--alias", "boot-1"],
        "environment": {"loaded": {"card": {"process_bytes": 2**30}}},
        "card_before": {"device_bytes": 0},
        "log": [],
    }
    return values | fields


def document(*, twin: bool = False, scenarios: Any = (SHORT,), **fields: Any) -> dict[str, Any]:
    """A whole file's value: one combination of one boot, three runs of each scenario."""
    file = gguf_files.small()
    header = read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)
    runs = [
        sample(one.key, run, validity="twin" if twin else "ok", speed=50.0 + run)
        for one in scenarios
        for run in range(4)
    ]
    asked = {
        "context_tokens": 65_536,
        "intent": {"kv": "f16", "batch": 2048, "ubatch": 512},
        "flags": [],
        "env": {},
        "boots": 1,
        "runs": 3,
        "threads": 8,
        "gpu_layers": 999,
        "scenarios": [{**asdict(one), "key": one.key} for one in scenarios],
    }
    values = {
        "format": exchange.FORMAT,
        "version": exchange.VERSION,
        "made_at": "2026-11-30T20:00:00Z",
        "sandbox": "uncaged",
        "caged": False,
        "machine": {"architecture": "x86_64", "cpu_model": "stub", "kernel": "6.1"},
        "card": {"uuid": "GPU-1", "name": "Stub 9000", "memory_bytes": 2**34},
        "family": "llama.cpp",
        "build": {
            "engine": "beellama",
            "commit": "6" * 40,
            "cuda_arch": "90",
            "artifact": "a" * 64,
            "size_bytes": 99,
            "facts": {},
        },
        "models": {
            "target": {
                "name": "small.gguf",
                "size_bytes": file.size_bytes,
                "sha256": ("e" if twin else "d") * 64,
                "twin_of": "real.gguf" if twin else None,
                "facts": asdict(facts_of(header)),
                "shape": None,
                "fault": "",
            }
        },
        "combinations": [{"asked": asked, "boots": [boot(1, runs)], "failure": None}],
    }
    return values | fields
