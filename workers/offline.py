"""The bench of a machine that reaches nothing: files in, one result file out; no queue, no rows."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from jobs import exchange
from jobs.control import Control
from jobs.dialect import wire
from jobs.engines.base import DEFAULT_BATCH, DEFAULT_UBATCH, Engine
from jobs.errors import JobFailure
from jobs.exchange import placed
from jobs.model import Boot, Flags
from jobs.scenarios import Scenario
from workers import autopsy
from workers.bench import run_boot
from workers.flags import ask_help, flags_in
from workers.gpu import Card
from workers.offline_files import BuildFiles, ModelFile
from workers.plan import Place, Plan, interpreter_mounts, launcher_of
from workers.quiet import marked, wait_for_quiet
from workers.sandbox import Limits, Mount, Sandbox

ARTIFACT_PLACE, MODEL_PLACE = "/run/artifact", "/weights/target.gguf"
DRAFTER_PLACE, MMPROJ_PLACE = "/weights/drafter.gguf", "/weights/mmproj.gguf"
LOG_LINES = 160
LOG_TAIL = 50
LONGEST_LINE = 300
QUIET_SECONDS = 10.0

Say = Callable[[str], None]


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


@dataclass(frozen=True)
class Bench:
    """Everything one offline bench works with."""

    wish: Wish
    engine: Engine
    build: BuildFiles
    models: Mapping[str, ModelFile]
    sandbox: Sandbox
    card: Card | None
    machine: Mapping[str, Any]
    out: Path

    @property
    def places(self) -> dict[str, str]:
        """The paths of this machine, and the names that stand for them in a result."""
        names = {"target": exchange.WEIGHTS, "drafter": exchange.DRAFTER, "mmproj": exchange.MMPROJ}
        files = {str(model.path): names[role] for role, model in self.models.items()}
        return {**files, str(self.build.folder): exchange.ARTIFACT}


def combinations(wish: Wish) -> list[Combination]:
    """Every combination once, in the order that was asked for."""
    combinations = product(wish.contexts, wish.kvs, wish.ubatches)
    return [
        Combination(context, kv, ubatch, wish.batch, wish.further)
        for context, kv, ubatch in combinations
    ]


def run_offline(bench: Bench, *, control: Control, say: Say) -> dict[str, Any]:
    """Measure every combination and write the file anew after each boot; one that fails says why.

    Raises Stopped on a cancel and JobFailure where no combination can be started at all; what was
    measured by then is in the file.
    """
    document = _document(bench)
    with _runtime() as runtime:
        place = _place(bench, runtime)
        tree = Mount(bench.build.folder, ARTIFACT_PLACE)
        extra = interpreter_mounts(bench.engine)
        text = ask_help(bench.engine, tree, place, control=control, mounts=extra)
        flags = flags_in(bench.engine, text)
        document["build"]["says"] = placed(text[:LONGEST_LINE], bench.places)
        for number, combination in enumerate(wanted := combinations(bench.wish), start=1):
            say(f"combination {number} of {len(wanted)}: {_words(combination)}")
            entry: dict[str, Any] = {
                "asked": _asked(bench, combination),
                "boots": [],
                "failure": None,
            }
            document["combinations"].append(entry)
            try:
                _measure(
                    bench, place, _plan(bench, combination, flags), entry, document, control, say
                )
            except JobFailure as failure:
                entry["failure"] = _failure(bench, place, failure)
                say(f"  {failure.failure_class}: {failure.message}")
            write(bench.out, document)
    return document


def _measure(
    bench: Bench,
    place: Place,
    plan: Plan,
    entry: dict[str, Any],
    document: dict[str, Any],
    control: Control,
    say: Say,
) -> None:
    for number in range(1, plan.boots + 1):
        wait_for_quiet(control, limit_seconds=bench.wish.quiet_seconds)
        before = bench.card.reading(()) if bench.card else None
        place.log.write_bytes(b"")

        def keep(boot: Boot, before: dict[str, Any] | None = before) -> None:
            stored = _stored(bench, place, marked(boot), before)
            entry["boots"].append(stored)
            write(bench.out, document)
            for line in spoken(boot):
                say(line)

        run_boot(plan, place, number=number, control=control, keep=keep)


def _plan(bench: Bench, combination: Combination, flags: Flags) -> Plan:
    wish, models = bench.wish, bench.models
    first, *others = wish.scenarios
    drafter, projector = models.get("drafter"), models.get("mmproj")
    return Plan(
        engine=bench.engine,
        scenario=first,
        more_scenarios=tuple(others),
        flags=flags,
        artifact=Mount(bench.build.folder, ARTIFACT_PLACE),
        model=Mount(models["target"].path, MODEL_PLACE),
        drafter=Mount(drafter.path, DRAFTER_PLACE) if drafter else None,
        projector=Mount(projector.path, MMPROJ_PLACE) if projector else None,
        is_twin=any(model.is_twin for model in models.values()),
        context_tokens=combination.context_tokens,
        threads=wish.threads,
        runs=wish.runs,
        boots=wish.boots,
        launcher=launcher_of(bench.engine),
        mounts=interpreter_mounts(bench.engine),
        gpu_layers=wish.gpu_layers,
        intent=combination.intent,
        extra_flags=wish.flags,
        env=wish.env,
    )


def _place(bench: Bench, runtime: Path) -> Place:
    return Place(
        sandbox=bench.sandbox,
        limits=Limits(),
        runtime=runtime,
        log=runtime / "log",
        marker=f"offline-{os.getpid()}",
        card=bench.card,
        card_memory=bench.card.held_by if bench.card else None,
    )


@contextmanager
def _runtime() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="forkscout-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _document(bench: Bench) -> dict[str, Any]:
    return {
        "format": exchange.FORMAT,
        "version": exchange.VERSION,
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "sandbox": bench.sandbox.name,
        "caged": bench.sandbox.caged,
        "machine": dict(bench.machine),
        "card": bench.card.facts() if bench.card else None,
        "family": bench.engine.FAMILY,
        "build": placed(bench.build.told, bench.places),
        "models": {role: model.told for role, model in bench.models.items()},
        "combinations": [],
    }


def _asked(bench: Bench, combination: Combination) -> dict[str, Any]:
    wish = bench.wish
    return {
        "context_tokens": combination.context_tokens,
        "intent": combination.intent,
        "flags": placed(list(wish.flags), bench.places),
        "env": placed(dict(wish.env), bench.places),
        "boots": wish.boots,
        "runs": wish.runs,
        "threads": wish.threads,
        "gpu_layers": wish.gpu_layers,
        "scenarios": [{**asdict(each), "key": each.key} for each in wish.scenarios],
    }


def _stored(
    bench: Bench, place: Place, boot: Boot, before: dict[str, Any] | None
) -> dict[str, Any]:
    text = autopsy.read_log_text(place.log)
    return {
        **wire.storable(placed(asdict(boot), bench.places)),
        "card_before": before,
        "log": [placed(line, bench.places) for line in telling(text)],
    }


def _failure(bench: Bench, place: Place, failure: JobFailure) -> dict[str, Any]:
    lines = autopsy.read_log_text(place.log).splitlines() if place.log.exists() else []
    return {
        "class": failure.failure_class,
        "blame": str(failure.blame),
        "phase": failure.phase,
        "detail": placed(failure.detail, bench.places)[:2000],
        "advice": failure.advice,
        "log": [placed(line[:LONGEST_LINE], bench.places) for line in lines[-LOG_TAIL:]],
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


def _words(combination: Combination) -> str:
    return f"context {combination.context_tokens}, kv {combination.kv}, ubatch {combination.ubatch}"
