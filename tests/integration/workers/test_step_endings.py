"""Steps that will not end, in real sandboxes: nothing of them is left behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from support.place import DAEMON, EVERY, MARKER, Place
from support.waiting import wait_for

from jobs.errors import Stopped
from workers import processes
from workers.leftovers import end_leftovers_of
from workers.limited import groups_here
from workers.sandbox import Sandbox


@EVERY
def test_daemons_do_not_outlive_a_step_that_ended_well(place: Place) -> None:
    """A child that left session and parent and ignores TERM is gone when the step is over."""
    place.run(DAEMON)
    assert place.lines == ["daemon is up"]
    size = place.pulse()
    time.sleep(0.1)
    assert place.pulse() == size


@EVERY
def test_a_cancel_ends_the_whole_tree_before_it_is_heard(place: Place) -> None:
    """When `Stopped` comes out, daemons are dead already (case C40)."""

    def cancel() -> None:
        wait_for(lambda: place.log.exists() and "daemon is up" in place.log.read_text())
        place.control.ask("asked by hand")

    threading.Thread(target=cancel).start()
    with pytest.raises(Stopped, match="asked by hand"):
        place.run(DAEMON + "\ntime.sleep(60)")
    size = place.pulse()
    time.sleep(0.1)
    assert place.pulse() == size


@EVERY
def test_a_polite_stop_lets_the_server_say_goodbye(place: Place) -> None:
    """TERM comes first, and a process that heeds it ends by itself within the grace."""
    program = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'bye\\n'), sys.exit(0)))\n"
        "print('up', flush=True)\nwhile True: time.sleep(1)"
    )
    with place.start(program) as running:
        wait_for(lambda: place.log.read_text() == "up\n")
        started = time.monotonic()
        running.stop(grace_seconds=20)
        assert time.monotonic() - started < 10
    assert place.log.read_text() == "up\nbye\n"
    assert running.poll() == 0


@EVERY
def test_a_tree_knows_its_own(place: Place) -> None:
    """A daemon of the step belongs to the tree; this test's process and a stranger do not."""
    with place.start(DAEMON + "\ntime.sleep(60)") as running:
        wait_for(lambda: "daemon is up" in place.log.read_text())
        tree = running.members()
        assert len([p for p in tree if "pulse" in " ".join(p.cmdline())]) >= 2
        assert all(running.owns(p.pid) for p in tree)
        assert not running.owns(os.getpid())
        assert not running.owns(os.getppid())
        assert not running.owns(2**22 + 1)


@EVERY
def test_ending_one_step_spares_the_jobs_other_steps(place: Place) -> None:
    """A server keeps running while the same job runs and ends another step."""
    with place.start("import time; time.sleep(60)") as server:
        place.run("print('other')")
        assert server.poll() is None


@EVERY
def test_leftovers_of_an_earlier_life_are_found_by_their_marker(place: Place) -> None:
    """A worker that starts again ends what its predecessor's job left running, and only that."""
    with place.start(DAEMON + "\ntime.sleep(60)") as running:
        wait_for(lambda: place.log.exists() and "daemon is up" in place.log.read_text())
        assert processes.kill_marked(f"{MARKER}0") == 0
        assert processes.sweep_marker(f"test-{os.getpid()}/") >= 2
        assert running.members() == []
        size = place.pulse()
        time.sleep(0.1)
        assert place.pulse() == size


WORKER = """
import sys, time
from pathlib import Path
from jobs.model import Step
from workers.bubblewrap import Bubblewrap
from workers.docker import Docker
from workers.uncaged import Uncaged
from workers.sandbox import Limits
kinds = {"bubblewrap": Bubblewrap, "uncaged": Uncaged, "docker": lambda: Docker(sys.argv[4])}
sandbox = kinds[sys.argv[1]]()
step = Step(name="s", argv=("/bin/sleep", "61"))
sandbox.start(step, (), log=Path(sys.argv[2]), limits=Limits(), marker=sys.argv[3])
print("started", flush=True)
time.sleep(60)
"""


@EVERY
def test_a_killed_worker_takes_its_step_along(sandbox: Sandbox, tmp_path: Path) -> None:
    """After SIGKILL to the worker no step of it goes on, and its groups are swept by the next."""
    words = (sandbox.name, str(tmp_path / "log"), MARKER, os.environ.get("DOCKER_HOST", ""))
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, *words], stdout=subprocess.PIPE, cwd=root
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"started\n"
        try:
            wait_for(lambda: "sleep" in _marked())
            worker.kill()
            wait_for(lambda: _marked() == [])
            end_leftovers_of(MARKER, docker_host=os.environ.get("DOCKER_HOST", ""))
            assert _groups(worker.pid) == []
        finally:
            processes.kill_marked(MARKER)


def _groups(pid: int) -> list[Path]:
    groups = groups_here()
    return list(groups.pids.glob(f"forkscout.{pid}.*")) if groups else []


def _marked() -> list[str]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            if (processes.marker_of(process.pid) or "").startswith(f"{MARKER}/"):
                found.append(process.name())
    return found
