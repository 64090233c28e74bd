"""What an offline bench was asked and what it keeps of a boot, in a file and in words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jobs.dialect import wire
from jobs.engines.base import DEFAULT_BATCH, DEFAULT_UBATCH
from jobs.errors import JobFailure
from jobs.exchange import placed
from jobs.model import Boot
from jobs.scenarios import Scenario
from workers import autopsy
from workers.plan import MOST_WARM_UPS

LOG_LINES = 160
LONGEST_LINE = 300
QUIET_SECONDS = 10.0


@dataclass(frozen=True)
class Wish:
    """What is to be measured: every context with every cache type and every ubatch.

    `further` are intents that all of them share, such as speculation.
    """

    scenarios: tuple[Scenario, ...]
    contexts: tuple[int, ...]
    kvs: tuple[str, ...] = ("f16",)
    ubatches: tuple[int, ...] = (DEFAULT_UBATCH,)
    batch: int = DEFAULT_BATCH
    further: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    boots: int = 1
    runs: int = 3
    threads: int = 1
    gpu_layers: int = 0
    quiet_seconds: float = QUIET_SECONDS
    most_warm_ups: int = MOST_WARM_UPS


@dataclass(frozen=True)
class Combination:
    """One combination of settings; all its scenarios are measured in each of its boots."""

    context_tokens: int
    kv: str
    ubatch: int
    batch: int
    further: Mapping[str, str] = field(default_factory=dict)

    @property
    def intent(self) -> dict[str, str | int]:
        """In the words that every engine shares."""
        return {"batch": self.batch, "ubatch": self.ubatch, "kv": self.kv, **self.further}


def asked_of(wish: Wish, combination: Combination, places: Mapping[str, str]) -> dict[str, Any]:
    """What one combination asks, without paths of this machine."""
    return {
        "context_tokens": combination.context_tokens,
        "intent": combination.intent,
        "flags": placed(list(wish.flags), places),
        "env": placed(dict(wish.env), places),
        "boots": wish.boots,
        "runs": wish.runs,
        "threads": wish.threads,
        "gpu_layers": wish.gpu_layers,
        "scenarios": [{**asdict(each), "key": each.key} for each in wish.scenarios],
    }


def stored(
    boot: Boot, before: dict[str, Any] | None, log_text: str, places: Mapping[str, str]
) -> dict[str, Any]:
    """One boot with what the card said before it, and the lines of its log that tell of memory."""
    return {
        **wire.storable(placed(asdict(boot), places)),
        "card_before": before,
        "log": [placed(line, places) for line in telling(log_text)],
    }


def failed(failure: JobFailure, log: Path, places: Mapping[str, str]) -> dict[str, Any]:
    """Why a combination has no more boots, with the end of its log."""
    lines = failure.lines or (
        autopsy.last_lines(autopsy.read_log_text(log)) if log.exists() else ()
    )
    return {
        "class": failure.failure_class,
        "blame": str(failure.blame),
        "phase": failure.phase,
        "ending": failure.ending,
        "detail": placed(failure.detail, places)[:2000],
        "advice": failure.advice,
        "log": [placed(line, places)[:LONGEST_LINE] for line in lines[-autopsy.KEPT_LINES :]],
    }


def telling(text: str) -> list[str]:
    """The log lines about memory and graphs, for who wants to read them again."""
    words = (" MiB", "graph splits", "offloaded ", "warning", "n_ctx")
    lines = (line[:LONGEST_LINE] for line in text.splitlines())
    return [line for line in lines if any(word in line for word in words)][:LOG_LINES]


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Replace the file in one step, so that whoever reads it reads a whole one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(document, indent=1, allow_nan=False, default=str) + "\n")
    fresh.replace(path)


def spoken(boot: Boot) -> Iterator[str]:
    """What a person wants to see of a boot while the next one starts."""
    yield f"  boot {boot.number}: ready after {boot.load_seconds:.1f} s"
    for m in boot.measurements:
        what = "warm-up" if m.warmup else f"run {m.run}"
        taken = wire.mapping(m.after.get("card")).get("process_bytes")
        card = f", card {taken / 2**20:,.0f} MiB" if isinstance(taken, int) else ""
        speeds = f"decode {_tps(m.decode_tps)}, prefill {_tps(m.prefill_tps)} of {m.prompt_n}"
        drafts = "" if m.draft_n is None else f", {m.draft_accepted_n} of {m.draft_n} drafts kept"
        yield f"    {m.scenario} {what}: {speeds}{drafts}{card}, {m.validity} {m.reason}".rstrip()


def _tps(speed: float | None) -> str:
    return "none" if speed is None else f"{speed:.2f} t/s"
