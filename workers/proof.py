"""Proves that a sandbox holds and that its limits are enforced; it chooses none."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from jobs.control import Control
from jobs.errors import JobFailure
from jobs.model import Step
from workers import probe
from workers.sandbox import Limits, Mount, Sandbox
from workers.steps import run_step

PROOF_SECONDS = 30.0


def python_mounts() -> tuple[Mount, ...]:
    """What a cage needs to run this Python: nothing where it lies in /usr, else its own folder."""
    base = Path(sys.base_prefix)
    if base.is_relative_to("/usr"):
        return ()
    return (Mount(base, str(base)),)


def base_python() -> str:
    """This Python outside its virtual environment, as a cage with `python_mounts` finds it."""
    return os.path.realpath(sys.executable)


def prove(sandbox: Sandbox) -> list[str]:
    """What leaks out of this sandbox, in words; empty means it is proven. Ask once a process."""
    with tempfile.TemporaryDirectory(prefix="forkscout-proof-") as folder:
        try:
            return [*_probe(sandbox, Path(folder)), *sandbox.enforced().faults]
        except JobFailure as failure:
            return [_reason(failure, Path(folder) / "log")]


def _probe(sandbox: Sandbox, folder: Path) -> list[str]:
    hidden = folder / "hidden"
    hidden.mkdir(mode=0o700)
    secret = hidden / "secret"
    secret.write_text(secrets.token_hex())
    abstract = f"forkscout-{secrets.token_hex(8)}"
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (f"\0{abstract}", str(hidden / "s")):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        aim = {
            "namespaces": {
                name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in probe.NAMESPACES
            },
            "tcp_port": tcp.getsockname()[1],
            "abstract": abstract,
            "unix": str(hidden / "s"),
            "secret": str(secret),
            "pid": os.getpid(),
        }
        lines: list[str] = []
        program = Path(probe.__file__).read_text()
        step = Step(
            name="probe",
            argv=(base_python(), "-I", "-c", program, json.dumps(aim)),
            timeout_seconds=PROOF_SECONDS,
        )
        run_step(
            sandbox,
            step,
            python_mounts(),
            log=folder / "log",
            limits=Limits(),
            control=Control(),
            marker=f"proof/{os.getpid()}",
            on_line=lines.append,
        )
    if lines[-1:] != [probe.END]:
        return ["the probe did not come to its end"]
    return [line.removeprefix("leak: ") for line in lines[:-1]]


def _reason(failure: JobFailure, log: Path) -> str:
    said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return said[-1][:300] if said else failure.detail
