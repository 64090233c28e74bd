"""The cage of a container engine: no network, no rights, this machine's tools read-only.

The image is empty but for links; the engine bounds memory, processes and files. It never pulls.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.model import Step
from workers.bubblewrap import (
    CAGE_HOME,
    HARMLESS,
    MERGED_INTO_USR,
    NOBODY,
    SHARED_MEMORY_BYTES,
)
from workers.container_tree import ContainerTree
from workers.engine_client import EngineTool, engine_fault
from workers.limited import mortal
from workers.processes import MARKER_NAME
from workers.running import Running, unique_marker
from workers.sandbox import STEP_PATH, Enforced, Limits, Mount, step_environment, working_folder

MARKER_LABEL = "forkscout.marker"
IMAGE = "forkscout-cage"


class Docker:
    """Runs steps in containers. It fails where the engine does, it never falls back.

    Of the host's devices it shows `devices`, those of one card, and no other.
    """

    name = "docker"
    caged = True

    def __init__(self, host: str = "", devices: Sequence[str] = ()) -> None:
        self._host = host
        self._devices = tuple(devices)
        self._tool = EngineTool(host)

    def path(self, mount: Mount) -> str:
        return mount.inside

    def showing(self, devices: Sequence[str]) -> Docker:
        return Docker(self._host, devices)

    def enforced(self) -> Enforced:
        """The engine says itself which bounds its kernel gives it."""
        said = self._tool.ask("info", "--format", "{{.MemoryLimit}} {{.PidsLimit}} {{.SwapLimit}}")
        words = said.split()
        missing = [
            f"the container engine cannot bound {what}"
            for what, word in zip(("memory", "processes"), words, strict=False)
            if word != "true"
        ]
        notes = () if words[2:] == ["true"] else ("swap is not bounded",)
        return Enforced(by="the container engine", faults=tuple(missing), notes=notes)

    def start(
        self, step: Step, mounts: Sequence[Mount], *, log: Path, limits: Limits, marker: str
    ) -> Running:
        marker = unique_marker(marker)
        environment = step_environment(step, marker, home=CAGE_HOME)
        image = self._image()
        name = f"{IMAGE}-{secrets.token_hex(8)}"
        for mount in mounts:
            _hand_over(mount)
        words = [
            *("run", "--name", name, "--label", f"{MARKER_LABEL}={marker}"),
            *("--pull", "never", "--log-driver", "none", "--sig-proxy=false"),
            *("--network", "none", "--hostname", "cage", "--ipc", "private"),
            *("--user", _user(), "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--read-only", "--workdir", working_folder(step, mounts, self.path)),
            *_bounds(limits),
            *_bound(mounts),
            *(word for path in self._devices for word in ("--device", path)),
            *(word for pair in environment.items() for word in ("--env", "=".join(pair))),
            image,
            *_first_process(),
            *step.argv,
        ]
        return Running(
            mortal([*self._tool.command, *words]),
            env={**self._tool.environment, MARKER_NAME: marker},
            cwd="/",
            log=log,
            output_bytes=limits.output_bytes,
            caged=True,
            tree=lambda pid: ContainerTree(self._tool, name, pid),
        )

    def sweep(self, prefix: str) -> int:
        """Remove containers of earlier lives whose marker starts so; says how many."""
        words = ("ps", "--all", "--filter", f"label={MARKER_LABEL}", "--no-trunc")
        listed = self._tool.ask(*words, "--format", f'{{{{.ID}}}} {{{{.Label "{MARKER_LABEL}"}}}}')
        ours = [
            line.partition(" ")[0]
            for line in listed.splitlines()
            if line.partition(" ")[2].startswith(prefix)
        ]
        for container in ours:
            self._tool.ask("rm", "--force", "--volumes", container)
        return len(ours)

    def _image(self) -> str:
        archive = _root_archive()
        image = f"{IMAGE}:{hashlib.sha256(archive).hexdigest()[:12]}"
        if not self._tool.says("image", "inspect", image):
            self._tool.ask("import", "-", image, given=archive)
        return image


def _first_process() -> list[str]:
    """What reaps orphans in the container and passes signals on; the engine's own where it is."""
    found = shutil.which("docker-init", path=STEP_PATH)
    return [found, "--"] if found else ["/bin/sh", "-c", '"$@"; exit $?', "sh"]


def _user() -> str:
    """The worker's own user where it has no rights either, else nobody."""
    uid, gid = os.getuid(), os.getgid()
    return f"{uid}:{gid}" if uid else f"{NOBODY}:{NOBODY}"


def _hand_over(mount: Mount) -> None:
    """Give a folder that a step may write to the cage's user; root itself needs no rights there."""
    if os.getuid() == 0 and mount.writable and mount.host.is_dir():
        os.chown(mount.host, NOBODY, NOBODY)


def _bounds(limits: Limits) -> Iterator[str]:
    yield from ("--pids-limit", str(limits.processes))
    if limits.memory_bytes is not None:
        yield from ("--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes))
    numbers = {
        "core": 0,
        "fsize": limits.file_bytes,
        "nofile": limits.open_files,
        "cpu": limits.cpu_seconds,
    }
    for kind, number in numbers.items():
        if number is not None:
            yield from ("--ulimit", f"{kind}={number}:{number}")
    yield from ("--shm-size", str(SHARED_MEMORY_BYTES))
    options = f"rw,exec,nosuid,nodev,mode=1777,size={limits.tmp_bytes}"
    yield from ("--tmpfs", f"{CAGE_HOME}:{options}")


def _bound(mounts: Sequence[Mount]) -> Iterator[str]:
    system = [Path("/usr"), *(Path(path) for path in HARMLESS if not path.startswith("/sys/"))]
    system += [Path("/", name) for name in MERGED_INTO_USR if not Path("/", name).is_symlink()]
    for path in system:
        if path.exists():
            yield from _mounted(Mount(path.resolve(), str(path)))
    for mount in sorted(mounts, key=lambda m: m.inside):
        yield from _mounted(mount)


def _mounted(mount: Mount) -> Iterator[str]:
    if '"' in f"{mount.host}{mount.inside}" or "\n" in f"{mount.host}{mount.inside}":
        raise engine_fault(f"a mount of {str(mount.host)!r} cannot be told to the container engine")
    fields = ["type=bind", f"source={mount.host}", f"target={mount.inside}"]
    fields += [] if mount.writable else ["readonly"]
    yield from ("--mount", ",".join(f'"{field}"' for field in fields))


def _root_archive() -> bytes:
    """The image: the links into /usr that this machine has, the same bytes each time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("etc", *MERGED_INTO_USR):
            path = Path("/", name)
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            if path.is_symlink():
                entry.type, entry.linkname = tarfile.SYMTYPE, str(path.readlink())
            elif path.is_dir():
                entry.type = tarfile.DIRTYPE
            else:
                continue
            with contextlib.suppress(OSError):
                archive.addfile(entry)
    return buffer.getvalue()
