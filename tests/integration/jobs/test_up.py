"""The supervisor with real processes: it starts again what ends, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from structlog.testing import capture_logs
from support.system import free_port, short_folder
from support.waiting import wait_for

from jobs import up
from jobs.config import Settings
from jobs.errors import Permanent, UsageError
from jobs.trees import remove
from jobs.up import Program, Supervisor

NOTHING = "redis+socket:///nowhere/broker.sock"


@pytest.fixture
def folder():
    folder = short_folder()
    yield folder
    remove(folder)


@pytest.fixture
def make(folder):
    """Supervisors over settings of this test, stopped at its end."""
    made = []

    def supervisor(*programs, **fields):
        settings = Settings(home=folder / "v", **({"broker_url": NOTHING} | fields))
        settings.prepare()
        made.append(Supervisor(settings, programs))
        return made[-1]

    yield supervisor
    for each in made:
        each.stop()


def processes_of(settings):
    """What was started for this home; the broker writes its title over its environment."""
    home, socket = f"FORKSCOUT_HOME={settings.root}".encode(), bytes(settings.broker_socket)
    found = []
    for process in psutil.process_iter():
        place = Path(f"/proc/{process.pid}")
        try:
            carried = (place / "environ").read_bytes().split(b"\0")
            if home in carried or socket in (place / "cmdline").read_bytes():
                found.append(process)
        except OSError:
            continue
    return found


def restarts(logs):
    return [e["wait_seconds"] for e in logs if e["event"].startswith("program ended")]


def test_what_ends_by_itself_is_started_again_with_growing_patience(make):
    """A program that cannot start is tried again, each time after a longer wait."""
    supervisor = make(Program("broken", ("no-such-command",)))
    with capture_logs() as logs:
        supervisor.start()
        deadline = time.monotonic() + 60
        supervisor.watch(lambda: len(restarts(logs)) >= 3 or time.monotonic() > deadline)
    assert restarts(logs) == list(up.RESTART_SECONDS[:3])
    assert "no-such-command" in supervisor.log_path("broken").read_text()


def test_a_killed_program_comes_back(make):
    """A crash of one program costs half a second and touches no other."""
    supervisor = make(Program("beat", ("beat",)), Program("web", ("web",)), port=free_port())
    supervisor.start()
    first, other = wait_for(lambda: len(p := processes_of(supervisor.settings)) == 2 and p)
    first.kill()
    deadline = time.monotonic() + 30
    supervisor.watch(
        lambda: (
            (gone(first) and len(processes_of(supervisor.settings)) == 2)
            or time.monotonic() > deadline
        )
    )
    assert gone(first)
    assert other.is_running()
    assert len(processes_of(supervisor.settings)) == 2


def gone(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_stop_kills_what_does_not_listen(make):
    """A program that ignores the polite signal is killed after the drain time."""
    supervisor = make(Program("beat", ("beat",)), drain_seconds=1.0)
    supervisor.start()
    (process,) = wait_for(lambda: processes_of(supervisor.settings))
    wait_for(lambda: list(supervisor.settings.root.glob("beat-schedule*")), what="the clock")
    process.suspend()
    wait_for(lambda: process.status() == psutil.STATUS_STOPPED, what="a stopped process")
    began = time.monotonic()
    with capture_logs() as logs:
        supervisor.stop()
    assert time.monotonic() - began < 10
    assert [entry["event"] for entry in logs] == ["program killed, it did not stop"]
    assert processes_of(supervisor.settings) == []


def test_the_embedded_broker_is_private_and_leaves_nothing(make, folder):
    """It listens on a socket of its owner only; after the stop socket and process are gone."""
    supervisor = make(broker_url="")
    supervisor.start()
    place = supervisor.settings.broker_socket
    assert place.stat().st_mode & 0o777 == 0o700
    (broker,) = processes_of(supervisor.settings)
    assert not broker.net_connections("inet")
    supervisor.stop()
    assert not place.exists()
    assert processes_of(supervisor.settings) == []


def test_a_socket_left_by_a_crash_is_no_obstacle(make):
    """The next start takes the place of a broker that was killed."""
    supervisor = make(broker_url="")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(supervisor.settings.broker_socket))
    supervisor.start()
    assert len(processes_of(supervisor.settings)) == 1


def test_a_broker_that_does_not_start_is_one_clear_error(make, folder):
    """The error names its log, and nothing that was started goes on."""
    settings = Settings(home=folder / "v")
    settings.prepare()
    settings.runtime.rmdir()
    with pytest.raises(Permanent) as caught, up.running(settings):
        pass
    assert "broker" in caught.value.message
    assert caught.value.advice
    assert processes_of(settings) == []


def test_a_home_holds_one_system(make):
    """The second is refused with the process of the first; afterwards the home is free."""
    settings = make().settings
    with up.only_one(settings):
        with pytest.raises(UsageError) as caught, up.only_one(settings):
            pass
        assert str(os.getpid()) in caught.value.message
    with up.only_one(settings):
        pass


def test_a_taken_port_is_said_before_anything_starts(make):
    """The message names address and reason, the advice another port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = make(port=taken.getsockname()[1]).settings
        with pytest.raises(UsageError) as caught:
            up.check_port(settings)
    assert str(settings.port) in caught.value.message
    assert "FORKSCOUT_PORT" in caught.value.advice
    up.check_port(settings)


def test_every_program_is_a_command(make):
    """What `up` starts exists on the command line; a misspelt one would restart for ever."""
    for program in up.programs(make().settings):
        done = subprocess.run(
            [sys.executable, "-m", "jobs.cli", program.argv[0], "--help"],
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, program


def test_the_first_signal_asks_and_the_second_ctrl_c_insists():
    """Polite first: a drain; Ctrl-C again breaks off."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    assert threading.current_thread() is threading.main_thread()
    try:
        asked = up.stop_on_signals()
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked.wait(5)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
