"""Boots a server, proves it is ours, measures it and ends it; it keeps all and judges nothing."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.control import Control
from jobs.dialect import wire
from jobs.dialect.settings import Asked, shortfall
from jobs.engines.base import NOTHING, Launch, layout
from jobs.errors import JobFailure, Stopped
from jobs.model import Boot, Measurement, Validity
from workers import autopsy
from workers.answers import Patience, ask
from workers.client import EngineClient
from workers.plan import Place, Plan
from workers.readiness import Server, check_alive, prove_listener, wait_ready
from workers.sandbox import Mount
from workers.usage import Usage

SOCKET_FOLDER = "/run/engine"
SOCKET_NAME = "e.sock"
SOCKET_PATH_BYTES = 107

Keep = Callable[[Boot], None]


def _nothing(boot: Boot) -> None:
    del boot


def run_bench(
    plan: Plan,
    place: Place,
    *,
    control: Control,
    patience: Patience | None = None,
    keep: Keep = _nothing,
) -> list[Boot]:
    """All boots in order. `keep` hears of each as it ends, of a broken one with what it measured.

    Raises the JobFailure of the first boot that fails, and Stopped on a cancel; either way the
    server's whole tree is gone.
    """
    boots = []
    for number in range(1, plan.boots + 1):
        boot = run_boot(plan, place, number=number, control=control, patience=patience, keep=keep)
        boots.append(boot)
    return boots


def run_boot(
    plan: Plan,
    place: Place,
    *,
    number: int,
    control: Control,
    patience: Patience | None = None,
    keep: Keep = _nothing,
) -> Boot:
    """One start of the server, one warm-up and the plan's runs. Raises as `run_bench`."""
    patience = patience or Patience()
    with _socket_folder(place.runtime) as folder:
        socket_mount = Mount(folder, SOCKET_FOLDER, writable=True)
        alias = f"boot-{secrets.token_hex(8)}"
        launch = _launch(plan, place, socket_mount, alias)
        step = plan.engine.launch(launch, plan.flags)
        place.log.touch(mode=0o600)
        offset = place.log.stat().st_size
        started_at, clock = datetime.now(UTC), time.monotonic()
        running = place.sandbox.start(
            step,
            _mounts(plan, socket_mount),
            log=place.log,
            limits=place.limits,
            marker=place.marker,
        )
        usage = Usage(running.pid)
        client = EngineClient(folder / SOCKET_NAME)
        server = Server(running, client, usage, alias, offset)
        grace_seconds = 0.0
        try:
            usage.start()
            wait_ready(server, place, plan.engine, control=control, patience=patience)
            load_seconds = time.monotonic() - clock
            boot = Boot(
                number=number,
                load_seconds=load_seconds,
                listener_is_child=prove_listener(server),
                started_at=started_at,
                command=step.argv,
                layout=layout(launch),
                measurements=(),
                **_read_back(plan, place, server),
            )
            boot = _measured(plan, place, boot, server, control, patience, keep)
            grace_seconds = patience.grace_seconds
        finally:
            usage.stop()
            running.stop(grace_seconds)
            client.close()
    keep(boot)
    return boot


@contextmanager
def _socket_folder(runtime: Path) -> Iterator[Path]:
    """A fresh private folder whose path leaves room for a socket's name."""
    root = runtime
    if len(os.fsencode(runtime / "boot-xxxxxxxx" / SOCKET_NAME)) > SOCKET_PATH_BYTES:
        root = Path(tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix="boot-", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _launch(plan: Plan, place: Place, socket_mount: Mount, alias: str) -> Launch:
    path = place.sandbox.path
    return Launch(
        artifact=path(plan.artifact),
        model_path=path(plan.model),
        host=f"{path(socket_mount)}/{SOCKET_NAME}",
        alias=alias,
        context_tokens=plan.context_tokens,
        threads=plan.threads,
        launcher=path(plan.launcher) if plan.launcher else "",
        gpu_layers=plan.gpu_layers,
        intent=plan.intent,
        flags=plan.extra_flags,
        env=plan.env,
        drafter_path=path(plan.drafter) if plan.drafter else "",
        projector_path=path(plan.projector) if plan.projector else "",
    )


def _mounts(plan: Plan, socket_mount: Mount) -> tuple[Mount, ...]:
    own = (plan.launcher, plan.drafter, plan.projector)
    further = tuple(mount for mount in own if mount is not None)
    return (plan.artifact, plan.model, *further, *plan.mounts, socket_mount)


def _read_back(plan: Plan, place: Place, server: Server) -> dict[str, Any]:
    """What the running server admits to, ready to be stored."""
    props = wire.mapping(server.client.read_json("/props"))
    slots = [wire.mapping(slot) for slot in wire.sequence(server.client.read_json("/slots"))]
    text = autopsy.read_log_text(place.log, offset=server.offset)
    return {
        "facts": plan.engine.read_log(text),
        "memory": replace(plan.engine.read_memory(text), process=_on_cards(place, server)),
        "effective": plan.engine.read_settings(props, slots),
        "props": wire.storable(props),
        "slots": wire.storable(slots),
    }


def _on_cards(place: Place, server: Server) -> int | None:
    if place.card_memory is None:
        return None
    return place.card_memory({process.pid for process in server.running.members()})


def _measured(
    plan: Plan,
    place: Place,
    boot: Boot,
    server: Server,
    control: Control,
    patience: Patience,
    keep: Keep,
) -> Boot:
    """The boot with a warm-up and all runs; a broken boot's runs are kept before it raises."""
    short = shortfall(_asked(plan, place, server.alias), boot.effective, boot.facts)
    measurements: list[Measurement] = []

    def with_runs() -> Boot:
        return replace(
            boot,
            measurements=tuple(measurements),
            peak_memory_bytes=server.usage.peak_memory_bytes,
            environment=server.usage.facts(),
        )

    try:
        for run in range(plan.runs + 1):
            measurement = _one_run(
                plan,
                place,
                server,
                boot=boot.number,
                run=run,
                control=control,
                patience=patience,
            )
            measurements.append(_limited_by(short, measurement))
            if run == 0:
                server.usage.mark()
    except (JobFailure, Stopped):
        if measurements:
            keep(with_runs())
        if server.running.failure:
            raise server.running.failure from None
        raise
    return with_runs()


@dataclass(frozen=True)
class _Progress:
    """How far the whole bench is, in requests; a request half answered counts half."""

    plan: Plan
    control: Control
    boot: int
    run: int

    def tell(self, tokens: int) -> None:
        plan = self.plan
        requests = plan.runs + 1
        boots = max(plan.boots, self.boot)
        before = (self.boot - 1) * requests + self.run
        share = min(1.0, tokens / plan.scenario.tokens)
        what = f"run {self.run} of {plan.runs}" if self.run else "warm-up"
        self.control.report(
            "measure",
            done=round(before + share, 2),
            total=boots * requests,
            unit="requests",
            note=f"boot {self.boot} of {boots}, {what}",
        )


def _one_run(
    plan: Plan,
    place: Place,
    server: Server,
    *,
    boot: int,
    run: int,
    control: Control,
    patience: Patience,
) -> Measurement:
    phase = f"run {run} of {plan.runs}" if run else autopsy.FIRST_REQUEST
    progress = _Progress(plan, control, boot=boot, run=run)
    progress.tell(0)
    check_alive(server, place, plan.engine, phase=phase)
    answer = ask(
        server.client,
        plan.engine.request(plan.scenario, run=run, alias=server.alias),
        tokens=plan.scenario.tokens,
        phase=phase,
        process=server.running,
        log_text=lambda: autopsy.read_log_text(place.log, offset=server.offset),
        rules=plan.engine.FAILURES,
        patience=patience,
        control=control,
        on_tokens=progress.tell,
    )
    return plan.engine.measure(
        answer.arrivals,
        scenario=plan.scenario,
        run=run,
        warmup=run == 0,
        wall_seconds=answer.wall_seconds,
        alias=server.alias,
    )


def _asked(plan: Plan, place: Place, alias: str) -> Asked:
    return Asked(
        alias=alias,
        context_tokens=plan.context_tokens,
        model_path=place.sandbox.path(plan.model),
        gpu_layers=plan.gpu_layers,
        speculation=plan.drafter is not None
        or str(plan.intent.get("speculation", "none")) not in NOTHING,
    )


def _limited_by(short: tuple[Validity, str] | None, measurement: Measurement) -> Measurement:
    """A boot that does not run as asked has no `ok` request; the numbers stay."""
    if short is None:
        return measurement
    validity, reason = short
    if measurement.validity not in (Validity.OK, Validity.CACHED, Validity.TOO_SHORT):
        validity = measurement.validity
    reasons = (reason, measurement.reason)
    return replace(measurement, validity=validity, reason="; ".join(r for r in reasons if r))
