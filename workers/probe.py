"""Tries to break out of its sandbox and says how it could; imports nothing of ours.

Started by `workers.proof` as `python -I -c <this text> <what to try, as JSON>`; every leak is one
line that begins with `leak: `, and the last line says that the probe came to its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

HARMLESS_NAMES = {"PATH", "HOME", "LANG", "LC_CTYPE", "PWD", "FORKSCOUT_JOB", "HOSTNAME"}
NAMESPACES = ("net", "pid", "mnt", "user", "ipc", "uts")
CONNECT_SECONDS = 1.0
END = "probe: end"


def leaks(aim: dict[str, object]) -> Iterator[str]:
    """Every way out of the cage that is open."""
    yield from _namespaces(dict(aim["namespaces"]))  # type: ignore[call-overload]
    yield from _network(int(str(aim["tcp_port"])), str(aim["abstract"]), str(aim["unix"]))
    yield from _files(Path(str(aim["secret"])))
    yield from _environment()
    if Path("/proc", str(aim["pid"]), "cwd").exists():
        yield "a process of this machine is visible"


def _namespaces(outside: dict[str, str]) -> Iterator[str]:
    for name in NAMESPACES:
        if name == "user" and _is_powerless():
            continue
        if str(Path(f"/proc/self/ns/{name}").readlink()) == outside[name]:
            yield f"the {name} namespace is the machine's own"


def _is_powerless() -> bool:
    """Whether this is a plain user of the machine who can never become another."""
    status = Path("/proc/self/status").read_text()
    given = ("Prm", "Eff", "Bnd", "Amb")
    bare = all(f"Cap{kind}:\t{0:016x}" in status for kind in given)
    return bare and os.getuid() != 0 and "NoNewPrivs:\t1" in status


def _network(tcp_port: int, abstract: str, unix: str) -> Iterator[str]:
    reach = (
        ("this machine's loopback", socket.AF_INET, ("127.0.0.1", tcp_port)),
        ("this machine's abstract sockets", socket.AF_UNIX, f"\0{abstract}"),
        ("this machine's unix sockets", socket.AF_UNIX, unix),
        ("the container engine", socket.AF_UNIX, "/var/run/docker.sock"),
        ("an outside address", socket.AF_INET, ("192.0.2.1", 80)),
    )
    for what, family, address in reach:
        with socket.socket(family, socket.SOCK_STREAM) as stream, contextlib.suppress(OSError):
            stream.settimeout(CONNECT_SECONDS)
            try:
                stream.connect(address)
            except TimeoutError:
                yield f"there is a route to {what}"
            else:
                yield f"{what} can be reached"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram, contextlib.suppress(OSError):
        datagram.sendto(b"probe", ("192.0.2.1", 53))
        yield "a datagram leaves the machine"


def _files(secret: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        secret.read_bytes()
        yield "a secret file can be read"
    with contextlib.suppress(OSError):
        (secret.parent / "written").write_bytes(b"")
        yield "a folder outside can be written"
    for folder in ("/", "/usr", "/etc", "/dev"):
        if os.access(folder, os.W_OK):
            yield f"{folder} can be written"


def _environment() -> Iterator[str]:
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            entries = (process / "environ").read_bytes().split(b"\0")
            names = {os.fsdecode(entry.partition(b"=")[0]) for entry in entries if entry}
            if not names <= HARMLESS_NAMES:
                yield "the environment of a process outside can be read"
                return


if __name__ == "__main__":
    for leak in leaks(json.loads(sys.argv[1])):
        sys.stdout.write(f"leak: {leak}\n")
    sys.stdout.write(f"{END}\n")
