"""Boots a server, proves it is ours, measures it and ends it; it keeps all and judges nothing."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.control import Control
from jobs.dialect import boots, wire
from jobs.dialect.settings import Asked
from jobs.engines.base import Launch, layout, unsupported
from jobs.errors import JobFailure, Stopped
from jobs.model import Boot, Measurement
from workers import autopsy
from workers.answers import Patience
from workers.build_proof import build_proof
from workers.client import EngineClient
from workers.gpu import CardWatch
from workers.loaded import prove_libraries
from workers.one_run import At, Started, meant, one_run, schedule
from workers.plan import Place, Plan
from workers.quiet import wait_released
from workers.readiness import Server, prove_listener, wait_ready
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
    done = []
    for number in range(1, plan.boots + 1):
        boot = run_boot(plan, place, number=number, control=control, patience=patience, keep=keep)
        done.append(boot)
    return done


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
        held_before = place.card.reading(())["device_bytes"] if place.card else None
        running = place.sandbox.start(
            step,
            _mounts(plan, socket_mount),
            log=place.log,
            limits=place.limits,
            marker=place.marker,
        )
        usage = Usage(running.first)
        watch = CardWatch(place.card, usage.pids) if place.card else None
        client = EngineClient(folder / SOCKET_NAME)
        server = Server(running, client, usage, alias, offset)
        grace_seconds = 0.0
        try:
            usage.start()
            if watch:
                watch.start()
            wait_ready(server, place, plan.engine, control=control, patience=patience)
            load_seconds = time.monotonic() - clock
            prove_libraries(running, plan, place)
            is_child = prove_listener(server)
            where = place.sandbox.path(plan.artifact)
            proof = build_proof(client.listener_pid(), plan.artifact.host, where)
            boot = Boot(
                number=number,
                load_seconds=load_seconds,
                listener_is_child=is_child,
                environment={"proof": proof},
                started_at=started_at,
                command=step.argv,
                layout=layout(launch),
                measurements=(),
                **_read_back(plan, place, server),
            )
            bench = Started(plan, place, server, watch, control, patience)
            boot = _measured(bench, boot, keep)
            grace_seconds = patience.grace_seconds
        finally:
            if watch:
                watch.stop()
            usage.stop()
            running.stop(grace_seconds)
            client.close()
    keep(boot)
    if place.card:
        wait_released(place.card, held_before, control, limit_seconds=patience.release_seconds)
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
    if plan.projector is None and any(scenario.picture for scenario in plan.scenarios):
        raise unsupported(
            f"scenario {plan.scenario.name} shows a picture and there is no projector",
            advice="Name the mmproj file of the model, or measure another scenario.",
        )
    return Launch(
        artifact=path(plan.artifact),
        model_path=path(plan.model),
        host=f"{path(socket_mount)}/{SOCKET_NAME}",
        alias=alias,
        context_tokens=plan.context_tokens,
        threads=plan.threads,
        launcher=path(plan.launcher) if plan.launcher else "",
        drafter_path=path(plan.drafter) if plan.drafter else "",
        projector_path=path(plan.projector) if plan.projector else "",
        gpu_layers=plan.gpu_layers,
        intent=plan.intent,
        flags=plan.extra_flags,
        env=plan.env,
        thinking=any(scenario.thinking for scenario in plan.scenarios),
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


def _measured(bench: Started, boot: Boot, keep: Keep) -> Boot:
    """The boot with a warm-up and all runs; a broken boot's runs are kept before it raises."""
    plan, place, server = bench.plan, bench.place, bench.server
    measurements: list[Measurement] = []
    loaded = bench.now()

    def with_runs() -> Boot:
        facts = plan.engine.read_log(autopsy.read_log_text(place.log, offset=server.offset))
        runs = boots.judged(
            measurements,
            asked=_asked(plan, place, server.alias),
            effective=boot.effective,
            facts=facts,
            held_bytes=boot.memory.process if boot.memory else None,
        )
        return replace(
            boot,
            facts=facts,
            measurements=tuple(meant(plan, run) for run in runs),
            peak_memory_bytes=server.usage.peak_memory_bytes,
            environment={
                **boot.environment,
                **server.usage.facts(),
                "loaded": loaded,
                **({"card_peak_bytes": bench.watch.peak_bytes} if bench.watch else {}),
            },
        )

    try:
        for position, (scenario, run) in enumerate(schedule(plan)):
            at = At(boot.number, position, scenario, run, plan.runs)
            for again in range(1 if run else plan.most_warm_ups):
                found, is_steady = one_run(bench, replace(at, again=again))
                measurements.append(replace(found, after=bench.now()))
                if is_steady:
                    break
            if position == 0:
                server.usage.mark()
    except (JobFailure, Stopped):
        if measurements:
            keep(with_runs())
        if server.running.failure:
            raise server.running.failure from None
        raise
    return with_runs()


def _asked(plan: Plan, place: Place, alias: str) -> Asked:
    return Asked(
        alias=alias,
        context_tokens=plan.context_tokens,
        model_path=place.sandbox.path(plan.model),
        gpu_layers=plan.gpu_layers,
        kind=plan.speculation,
    )
