"""Proves that a sandbox holds and chooses one by that proof; without proof no foreign code runs."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from jobs.control import Control
from jobs.errors import JobFailure, UsageError
from jobs.model import Blame, Step, Trust
from workers import probe
from workers.bubblewrap import INSTALL, Bubblewrap
from workers.sandbox import Limits, Mount, Sandbox
from workers.steps import run_step
from workers.uncaged import Uncaged

PROOF_SECONDS = 30.0
SETTINGS = ("auto", "bubblewrap", "none")


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
            return _probe(sandbox, Path(folder))
        except JobFailure as failure:
            return [_reason(failure, Path(folder) / "log")]


def choose(
    setting: str, trust: Trust, *, cage_faults: Sequence[str], devices: Sequence[str] = ()
) -> Sandbox:
    """The sandbox for code of this trust; `cage_faults` is what `prove(Bubblewrap())` said.

    `devices` are those of the card that the code may use.
    """
    if setting not in SETTINGS:
        raise UsageError(
            f"FORKSCOUT_SANDBOX is {setting!r}", advice=f"Use one of {', '.join(SETTINGS)}."
        )
    if trust is Trust.NEVER:
        raise JobFailure(
            "this engine is not trusted to run at all",
            failure_class="not_trusted",
            blame=Blame.CONFIGURATION,
            advice="Change its trust in the watch list to approve, if you mean to run it.",
        )
    if setting == "none" and trust is not Trust.PACKAGE:
        raise _no_sandbox(
            "FORKSCOUT_SANDBOX is none, and a fork's source runs in a cage only",
            advice=f"Set FORKSCOUT_SANDBOX=auto. {INSTALL}",
        )
    if setting != "none" and not cage_faults:
        return Bubblewrap(devices)
    if setting != "bubblewrap" and trust is Trust.PACKAGE:
        return Uncaged()
    raise _no_sandbox("; ".join(cage_faults), advice=f"{INSTALL}. Then start the worker again.")


def _no_sandbox(detail: str, *, advice: str) -> JobFailure:
    return JobFailure(
        f"no sandbox holds here: {detail}",
        failure_class="no_sandbox",
        blame=Blame.ENVIRONMENT,
        advice=advice,
    )


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
