"""Builds that attack their cage, one program each; a word on standard output says that one won."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.place import Place

from jobs.dialect.build_failures import BUILDING
from jobs.engines.base import classify
from jobs.errors import JobFailure
from jobs.model import Step
from jobs.trees import remove
from workers import artifacts, programs
from workers.sandbox import Limits, Mount, Sandbox

WON = "the attack won"
TIGHT = Limits(
    memory_bytes=128 << 20,
    processes=60,
    file_bytes=256 << 20,
    output_bytes=4 << 20,
    disk_bytes=64 << 20,
)


@dataclass(frozen=True)
class Hostile:
    """One attack: what it does, what it must be called, and how long it may take."""

    name: str
    program: str
    classes: frozenset[str]
    limits: Limits = TIGHT
    timeout_seconds: float = 60.0
    silence_seconds: float = 60.0
    files: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()


@dataclass
class Outcome:
    """How an attack ended: its class, where it was stopped, and what a person is told."""

    failure_class: str = ""
    stopped_in: str = ""
    advice: str = ""
    seconds: float = 0.0
    log: str = ""
    left: list[str] = field(default_factory=list)


@contextmanager
def targets(folder: Path) -> Iterator[dict[str, object]]:
    """What the attacks aim at: a secret, listeners, a token in the environment, our processes."""
    hidden = folder / "hidden"
    hidden.mkdir()
    (hidden / "secret").write_text("hush")
    (folder / "outside").mkdir(mode=0o777)
    abstract = f"forkscout-{secrets.token_hex(8)}"
    token = secrets.token_hex(16)
    os.environ["GITHUB_TOKEN"] = token
    with ExitStack() as stack:
        stack.callback(os.environ.pop, "GITHUB_TOKEN", None)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        for address in (f"\0{abstract}", str(hidden / "s")):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        yield {
            "secret": str(hidden / "secret"),
            "outside": str(folder / "outside"),
            "token": token,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": abstract,
            "unix": str(hidden / "s"),
            "pid": os.getpid(),
            "parent": os.getppid(),
            "machine": os.uname().machine,
        }
        try:
            udp.recv(1)
        except BlockingIOError:
            return
        raise AssertionError("a datagram came out of the cage")


def meet(hostile: Hostile, sandbox: Sandbox, folder: Path) -> Outcome:
    """Run one attack as a build would: the step, then what is kept of it; all of it is cleared."""
    place = Place(sandbox, folder)
    source = folder / "source"
    source.mkdir()
    for name, text in hostile.files:
        (source / name).write_text(text)
    place.mounts = (*place.mounts, Mount(source, "/source"))
    outcome = Outcome()
    mounts_before = _mounts(folder)
    began = time.monotonic()
    with targets(folder) as aim:
        base = place.step(hostile.program)
        step = Step(
            name="build",
            argv=(*base.argv, json.dumps(aim)),
            timeout_seconds=hostile.timeout_seconds,
            silence_seconds=hostile.silence_seconds,
        )
        try:
            outcome.stopped_in = "the step"
            place.run_step(step, hostile.limits)
            outcome.stopped_in = "the artifact"
            programs.check(place.mount.host)
            artifacts.store(place.mount.host, folder / "store")
            outcome.stopped_in = "its end"
        except JobFailure as failure:
            outcome.failure_class, outcome.advice = failure.failure_class, failure.advice
    outcome.seconds = time.monotonic() - began
    outcome.log = place.log.read_text(errors="replace")
    if outcome.failure_class == "exit":
        found = classify(outcome.log, BUILDING)
        if found:
            outcome.failure_class, outcome.advice = found.rule.name, found.rule.advice
    remove(place.mount.host)
    outcome.left = [*_leftovers(place, str(aim["token"])), *(_mounts(folder) - mounts_before)]
    return outcome


def _leftovers(place: Place, token: str) -> Iterator[str]:
    """Whatever is still there of the step: processes, groups, files outside its folder."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if token.encode() in path.read_bytes():
                yield f"process {path.parent.name}"
    outside = place.log.parent / "outside"
    yield from (f"file {path}" for path in outside.iterdir())
    if place.mount.host.exists():
        yield "the folder of the build"
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory"):
        yield from (str(path) for path in Path(root).glob(f"forkscout.{os.getpid()}.*"))


def _mounts(folder: Path) -> set[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {f"mount {line.split()[4]}" for line in lines if str(folder) in line}
