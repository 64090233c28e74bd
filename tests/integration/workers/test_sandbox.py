"""Hostile steps against real sandboxes: what the cage keeps, and what both promise."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from jobs.control import Control
from jobs.errors import JobFailure, Stopped
from jobs.model import Blame, Step
from workers import processes
from workers.bubblewrap import Bubblewrap
from workers.proof import base_python, prove, python_mounts
from workers.sandbox import Limits, Mount, Sandbox
from workers.steps import StepFailed, run_step
from workers.uncaged import Uncaged

CAGE = pytest.param(Bubblewrap(), id="bubblewrap", marks=pytest.mark.needs("bwrap"))
BOTH = pytest.mark.parametrize("sandbox", [CAGE, pytest.param(Uncaged(), id="uncaged")])
CAGED = pytest.mark.parametrize("sandbox", [CAGE])
MARKER = f"test-{os.getpid()}/job-1"

DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        while True:
            with open(sys.argv[1] + "/pulse", "ab") as pulse:
                pulse.write(b".")
            time.sleep(0.01)
    os._exit(0)
while not os.path.exists(sys.argv[1] + "/pulse"):
    time.sleep(0.01)
print("daemon is up", flush=True)
"""


class Place:
    """A sandbox with one writable folder, and short words for what the tests do in it."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.log = folder / "log"
        self.mount = Mount(folder / "work", "/job", writable=True)
        self.mount.host.mkdir()
        self.mounts = (*python_mounts(), self.mount)
        self.control = Control()
        self.lines: list[str] = []

    def step(self, program: str, **kwargs: object) -> Step:
        words = (base_python(), "-I", "-c", program, self.sandbox.path(self.mount))
        return Step(name="probe", argv=words, **kwargs)  # type: ignore[arg-type]

    def run(self, program: str, *, limits: Limits = Limits(), **kwargs: object) -> str:  # noqa: B008
        self.run_step(self.step(program, **kwargs), limits)
        return self.log.read_text(errors="replace")

    def run_step(self, step: Step, limits: Limits = Limits()) -> None:  # noqa: B008
        run_step(
            self.sandbox,
            step,
            self.mounts,
            log=self.log,
            limits=limits,
            control=self.control,
            marker=MARKER,
            on_line=self.lines.append,
        )

    def pulse(self) -> int:
        return (self.mount.host / "pulse").stat().st_size


@pytest.fixture
def place(sandbox: Sandbox, tmp_path: Path) -> Iterator[Place]:
    yield Place(sandbox, tmp_path)
    assert processes.kill_marked(MARKER) == 0, "a test left processes behind"


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@CAGED
def test_the_cage_proves_itself(sandbox: Sandbox) -> None:
    """Network, files, environment and processes of the machine are out of reach."""
    assert prove(sandbox) == []


def test_the_proof_sees_an_open_door() -> None:
    """The same probe without a cage finds its leaks, so its silence means something."""
    leaks = prove(Uncaged())
    assert "a secret file can be read" in leaks
    assert "this machine's loopback can be reached" in leaks
    assert "a process of this machine is visible" in leaks


@CAGED
def test_a_secret_file_is_not_there(place: Place, tmp_path: Path) -> None:
    """What is not mounted cannot be read, whatever its permissions."""
    secret = tmp_path / "secret"
    secret.write_text("hush")
    secret.chmod(0o644)
    paths = (str(secret), str(Path.home() / ".ssh"), "/etc/shadow", "/home", "/run")
    said = place.run(f"import os; print([p for p in {paths!r} if os.path.exists(p)])")
    assert said.strip() == "[]"


@BOTH
def test_our_environment_is_not_handed_down(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token of the worker is not in the step's environment (case C115)."""
    monkeypatch.setenv("GITHUB_TOKEN", "hush")
    said = place.run("import os; print(sorted(os.environ))", env={"CC": "gcc"})
    assert "GITHUB_TOKEN" not in said
    assert "'CC'" in said


@CAGED
def test_no_process_in_the_cage_tells_of_the_machine(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither environments nor command lines under /proc name secrets or folders of ours."""
    monkeypatch.setenv("GITHUB_TOKEN", "hush-hush")
    program = """
import pathlib
for p in pathlib.Path('/proc').glob('[0-9]*'):
    print((p / 'cmdline').read_bytes(), (p / 'environ').read_bytes())
"""
    said = place.run(program)
    assert "bwrap" in said
    assert "hush-hush" not in said
    assert str(place.mount.host) not in said


@CAGED
def test_the_network_is_gone(place: Place) -> None:
    """TCP to a listener of this machine and UDP to anywhere fail at once (case C111)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = place.run(f"""
import socket
stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
for kind, host, port in ((stream, '127.0.0.1', {port}), (datagram, '192.0.2.1', 53)):
    try:
        socket.socket(socket.AF_INET, kind).connect((host, port))
        print('reached')
    except OSError:
        print('refused')
""")
    assert said.split() == ["refused", "refused"]


@CAGED
def test_only_writable_mounts_can_be_written(place: Place) -> None:
    """Root, system and read-only mounts refuse; the job's folder and /tmp accept."""
    place.mounts = (*place.mounts, Mount(place.mount.host, "/source"))
    said = place.run("""
places = '/ /usr /etc /dev /source /proc/sys/kernel /job /tmp /dev/shm'
for folder in places.split():
    try:
        open(folder + '/x', 'w').close()
        print(folder)
    except OSError:
        pass
""")
    assert said.split() == ["/job", "/tmp", "/dev/shm"]


@CAGED
def test_the_cage_has_no_rights_and_no_way_to_new_ones(place: Place) -> None:
    """No capability, no gain by setuid programs, nobody's ids, no nested user namespace."""
    said = place.run("""
import os, subprocess
status = open('/proc/self/status').read()
print(os.getuid(), os.getgid(), 'CapEff:\\t0000000000000000' in status, 'NoNewPrivs:\\t1' in status)
print(subprocess.run(['unshare', '--user', 'true'], stderr=subprocess.DEVNULL).returncode != 0)
""")
    assert said.split() == ["65534", "65534", "True", "True", "True"]


@CAGED
def test_the_memory_folder_is_bounded(place: Place) -> None:
    """/tmp cannot eat the machine's memory."""
    said = place.run(
        """
try:
    open('/tmp/x', 'wb').write(bytes(4 << 20))
    print('wrote')
except OSError as error:
    print(error.strerror)
""",
        limits=Limits(tmp_bytes=1 << 20),
    )
    assert said.strip() == "No space left on device"


@BOTH
def test_lines_arrive_as_printable_text(place: Place) -> None:
    """Every line, those ended by a carriage return and the last one too, reaches the caller."""
    place.run(r"import os; os.write(1, b'[1/2]\r[2/2]\n\x1b[31mred\x00 \xff')")
    assert place.lines == ["[1/2]", "[2/2]", "[31mred \ufffd"]


@BOTH
def test_a_bad_exit_says_code_and_log(place: Place) -> None:
    """The caller gets what it needs to find the cause: code, signal, log."""
    with pytest.raises(StepFailed) as caught:
        place.run("import sys; print('why'); sys.exit(3)")
    failure = caught.value
    assert (failure.failure_class, failure.blame) == ("exit", Blame.ENGINE)
    assert (failure.returned, failure.signal_number) == (3, None)
    assert failure.log.read_text() == "why\n"
    assert failure.phase == "probe"


@BOTH
def test_death_by_a_signal_is_told_apart(place: Place) -> None:
    """A process killed from outside, as for lack of memory, shows its signal (case C106)."""
    with pytest.raises(StepFailed) as caught:
        place.run("import os; os.kill(os.getpid(), 9)")
    assert (caught.value.returned, caught.value.signal_number) == (None, 9)


@BOTH
def test_a_program_that_is_not_there_fails_the_step(place: Place) -> None:
    """A missing compiler is a failed step, not a crash of the worker."""
    with pytest.raises(StepFailed) as caught:
        place.run_step(Step(name="x", argv=("/nonexistent/cmake",)))
    assert caught.value.failure_class == "exit"


@BOTH
def test_a_step_that_takes_too_long_is_ended(place: Place) -> None:
    """Past its time the whole tree ends, output or not."""
    with pytest.raises(StepFailed) as caught:
        place.run("while True: print('.', flush=True)", timeout_seconds=0.5)
    assert caught.value.failure_class == "timeout"


@BOTH
def test_a_silent_step_is_ended(place: Place) -> None:
    """A step that hangs without a word is ended long before its time."""
    with pytest.raises(StepFailed) as caught:
        place.run("import time; print('x', flush=True); time.sleep(60)", silence_seconds=0.5)
    assert caught.value.failure_class == "silent"


@BOTH
def test_a_flood_of_output_is_cut(place: Place) -> None:
    """Hundreds of megabytes against a limit of one leave one megabyte in the log."""
    with pytest.raises(JobFailure) as caught:
        place.run(
            "import os\nwhile True: os.write(1, b'x' * 65536)",
            limits=Limits(output_bytes=1 << 20),
        )
    assert caught.value.failure_class == "output_limit"
    assert place.log.stat().st_size == 1 << 20


@BOTH
def test_a_file_larger_than_allowed_ends_the_step(place: Place) -> None:
    """Filling the disk with one file stops at the limit for a file."""
    with pytest.raises(StepFailed) as caught:
        place.run(
            "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
            "with open(sys.argv[1] + '/big', 'wb') as f:\n    while True: f.write(bytes(1 << 16))",
            limits=Limits(file_bytes=1 << 20),
        )
    assert caught.value.failure_class == "file_limit"
    assert (place.mount.host / "big").stat().st_size <= 1 << 20


@BOTH
def test_a_disk_that_runs_low_blames_nobody(place: Place) -> None:
    """When the disk under a writable mount runs low the step ends as an infrastructure fault."""
    with pytest.raises(JobFailure) as caught:
        place.run("import time; time.sleep(60)", limits=Limits(min_free_bytes=1 << 60))
    assert (caught.value.failure_class, caught.value.blame) == ("disk_full", Blame.INFRASTRUCTURE)


@BOTH
def test_memory_is_counted_over_the_tree(place: Place) -> None:
    """Four children of 40 MiB each are over a limit of 100 MiB that none breaks alone."""
    with pytest.raises(StepFailed) as caught:
        place.run(
            "import os, time\nfor _ in range(4):\n    if os.fork() == 0: break\n"
            "held = b'x' * (40 << 20)\ntime.sleep(60)",
            limits=Limits(memory_bytes=100 << 20),
        )
    assert caught.value.failure_class == "memory_limit"


@BOTH
def test_too_many_processes_end_the_step(place: Place) -> None:
    """A step that multiplies is ended as a whole."""
    with pytest.raises(StepFailed) as caught:
        place.run(
            "import os, time\nfor _ in range(30):\n    if os.fork() == 0: break\ntime.sleep(60)",
            limits=Limits(processes=20),
        )
    assert caught.value.failure_class in ("process_limit", "exit")


@BOTH
def test_daemons_do_not_outlive_a_step_that_ended_well(place: Place) -> None:
    """A child that left session and parent and ignores TERM is gone when the step is over."""
    place.run(DAEMON)
    assert place.lines == ["daemon is up"]
    size = place.pulse()
    time.sleep(0.1)
    assert place.pulse() == size


@BOTH
def test_a_cancel_ends_the_whole_tree_before_it_is_heard(place: Place) -> None:
    """When `Stopped` comes out, daemons are dead already."""
    threading.Timer(0.5, place.control.ask, ("asked by hand",)).start()
    with pytest.raises(Stopped, match="asked by hand"):
        place.run(DAEMON + "\ntime.sleep(60)")
    size = place.pulse()
    time.sleep(0.1)
    assert place.pulse() == size


@BOTH
def test_a_polite_stop_lets_the_server_say_goodbye(place: Place) -> None:
    """TERM comes first, and a process that heeds it ends by itself within the grace."""
    program = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'bye\\n'), sys.exit(0)))\n"
        "print('up', flush=True)\nwhile True: time.sleep(1)"
    )
    with place.sandbox.start(
        place.step(program), place.mounts, log=place.log, limits=Limits(), marker=MARKER
    ) as running:
        _until(lambda: place.log.read_text() == "up\n")
        started = time.monotonic()
        running.stop(grace_seconds=20)
        assert time.monotonic() - started < 10
    assert place.log.read_text() == "up\nbye\n"
    assert running.poll() == 0


@BOTH
def test_a_tree_knows_its_own(place: Place) -> None:
    """A daemon of the step belongs to the tree; this test's process and a stranger do not."""
    with place.sandbox.start(
        place.step(DAEMON + "\ntime.sleep(60)"),
        place.mounts,
        log=place.log,
        limits=Limits(),
        marker=MARKER,
    ) as running:
        _until(lambda: "daemon is up" in place.log.read_text())
        tree = running.members()
        assert len([p for p in tree if "pulse" in " ".join(p.cmdline())]) >= 2
        assert all(running.owns(p.pid) for p in tree)
        assert not running.owns(os.getpid())
        assert not running.owns(os.getppid())
        assert not running.owns(2**22 + 1)


@BOTH
def test_ending_one_step_spares_the_jobs_other_steps(place: Place) -> None:
    """A server keeps running while the same job runs and ends another step."""
    with place.sandbox.start(
        place.step("import time; time.sleep(60)"),
        place.mounts,
        log=place.log,
        limits=Limits(),
        marker=MARKER,
    ) as server:
        place.run("print('other')")
        assert server.poll() is None


@BOTH
def test_leftovers_of_an_earlier_life_are_found_by_their_marker(place: Place) -> None:
    """A worker that starts again ends what its predecessor's job left running, and only that."""
    with place.sandbox.start(
        place.step(DAEMON + "\ntime.sleep(60)"),
        place.mounts,
        log=place.log,
        limits=Limits(),
        marker=MARKER,
    ) as running:
        _until(lambda: place.log.exists() and "daemon is up" in place.log.read_text())
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
from workers.uncaged import Uncaged
from workers.sandbox import Limits
sandbox = {"bubblewrap": Bubblewrap, "uncaged": Uncaged}[sys.argv[1]]()
step = Step(name="s", argv=("/bin/sleep", "61"))
sandbox.start(step, (), log=Path(sys.argv[2]), limits=Limits(), marker=sys.argv[3])
print("started", flush=True)
time.sleep(60)
"""


@BOTH
def test_a_killed_worker_takes_its_step_along(sandbox: Sandbox, tmp_path: Path) -> None:
    """After SIGKILL to the worker no step of it goes on (the kernel sees to it)."""
    words = (sandbox.name, str(tmp_path / "log"), MARKER)
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, *words], stdout=subprocess.PIPE, cwd=root
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"started\n"
        try:
            _until(lambda: "sleep" in _marked())
            worker.kill()
            _until(lambda: _marked() == [])
        finally:
            processes.kill_marked(MARKER)


def _marked() -> list[str]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            if (processes.marker_of(process.pid) or "").startswith(f"{MARKER}/"):
                found.append(process.name())
    return found
