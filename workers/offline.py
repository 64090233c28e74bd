"""The bench of a machine that reaches nothing: files in, a file out for each build; no queue."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from jobs import exchange
from jobs.control import Control
from jobs.engines.base import Engine
from jobs.errors import JobFailure
from jobs.exchange import placed
from jobs.model import Boot, Flags
from workers import autopsy
from workers.bench import run_boot
from workers.flags import ask_help, flags_in
from workers.gpu import Card
from workers.offline_files import BuildFiles, ModelFile
from workers.offline_record import (
    LONGEST_LINE,
    Combination,
    Wish,
    asked_of,
    failed,
    spoken,
    stored,
    write,
)
from workers.plan import ARMS, Place, Plan, interpreter_mounts, launcher_of
from workers.quiet import marked, wait_for_quiet
from workers.sandbox import Limits, Mount, Sandbox

ARTIFACT_PLACE, MODEL_PLACE = "/run/artifact", "/weights/target.gguf"
DRAFTER_PLACE, MMPROJ_PLACE = "/weights/drafter.gguf", "/weights/mmproj.gguf"

Say = Callable[[str], None]


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


def run_in_turns(arms: Sequence[Bench], *, control: Control, say: Say) -> list[dict[str, Any]]:
    """Measure every combination, boot by boot and of two builds in turns: A, B, A, B.

    Each build's file is written anew after each of its boots; a combination that fails says why
    and leaves its place to the next. Raises Stopped on a cancel and JobFailure where a build cannot
    be started at all; what was measured by then is in the files.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(_opened(bench, control)) for bench in arms]
        _pair(opened)
        wish = arms[0].wish
        for number, combination in enumerate(wanted := combinations(wish), start=1):
            say(f"combination {number} of {len(wanted)}: {_words(combination)}")
            for each in opened:
                each.begin(combination)
            for boot in range(1, wish.boots + 1):
                for each in opened:
                    _measure(each, combination, boot, control, say)
            for each in opened:
                write(each.bench.out, each.document)
    return [each.document for each in opened]


@dataclass
class _Opened:
    """One build with its flags, its place and the document that grows."""

    bench: Bench
    place: Place
    flags: Flags
    document: dict[str, Any]
    arm: str = ""
    entry: dict[str, Any] = field(default_factory=dict)

    def begin(self, combination: Combination) -> None:
        """A new entry for the next combination."""
        self.entry = {
            "asked": asked_of(self.bench.wish, combination, self.bench.places),
            "boots": [],
            "failure": None,
        }
        self.document["combinations"].append(self.entry)


@contextmanager
def _opened(bench: Bench, control: Control) -> Iterator[_Opened]:
    document = _document(bench)
    with _runtime() as runtime:
        place = _place(bench, runtime)
        tree = Mount(bench.build.folder, ARTIFACT_PLACE)
        extra = interpreter_mounts(bench.engine)
        text = ask_help(bench.engine, tree, place, control=control, mounts=extra)
        document["build"]["says"] = placed(text[:LONGEST_LINE], bench.places)
        yield _Opened(bench, place, flags_in(bench.engine, text), document)


def _pair(opened: Sequence[_Opened]) -> None:
    """Tell each of two files which arm it is, and what the other one measures."""
    if len(opened) < 2:
        return
    artifacts = [each.document["build"]["artifact"] for each in opened]
    identity = uuid.uuid4().hex
    for arm, each in zip(ARMS, opened, strict=True):
        each.arm = arm
        each.document["pairing"] = {
            "id": identity,
            "arm": arm,
            "artifacts": dict(zip(ARMS, artifacts, strict=True)),
            "order": "by boot number, A before B",
        }


def _measure(
    opened: _Opened, combination: Combination, number: int, control: Control, say: Say
) -> None:
    """One boot, unless an earlier one of this combination failed."""
    bench, place, entry = opened.bench, opened.place, opened.entry
    if entry["failure"]:
        return
    wait_for_quiet(control, limit_seconds=bench.wish.quiet_seconds, card=bench.card)
    before = bench.card.reading(()) if bench.card else None
    place.log.write_bytes(b"")
    if opened.arm:
        say(f"  arm {opened.arm}")

    def keep(boot: Boot) -> None:
        text = autopsy.read_log_text(place.log)
        entry["boots"].append(stored(marked(boot), before, text, bench.places))
        write(bench.out, opened.document)
        for line in spoken(boot):
            say(line)

    try:
        plan = _plan(bench, combination, opened.flags)
        run_boot(plan, place, number=number, control=control, keep=keep)
    except JobFailure as failure:
        entry["failure"] = failed(failure, place.log, bench.places)
        say(f"  {failure.failure_class}: {failure.message}")
    write(bench.out, opened.document)


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
        most_warm_ups=wish.most_warm_ups,
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


def _words(combination: Combination) -> str:
    return f"context {combination.context_tokens}, kv {combination.kv}, ubatch {combination.ubatch}"
