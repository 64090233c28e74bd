"""Finds and ends every process of a tree, daemonised ones too; it starts none."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from jobs.errors import JobFailure
from jobs.model import Blame

MARKER_NAME = "FORKSCOUT_JOB"
KILL_SECONDS = 20.0
RESCAN_SECONDS = 0.02


def marker_of(pid: int) -> str | None:
    """The marker this process was started with, None where there is none or none to see."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    prefix = f"{MARKER_NAME}=".encode()
    for entry in environment.split(b"\0"):
        if entry.startswith(prefix):
            return os.fsdecode(entry.removeprefix(prefix))
    return None


def members(root: int, marker: str) -> list[psutil.Process]:
    """Every living process below `root`, in its session, or carrying exactly this marker."""
    found = {p.pid: p for p in _living(lambda pid: _belongs(pid, root, marker))}
    try:
        for process in psutil.Process(root).children(recursive=True):
            found.setdefault(process.pid, process)
    except psutil.NoSuchProcess:
        pass
    return [p for p in found.values() if _alive(p)]


def owns(root: int, marker: str, pid: int) -> bool:
    """Whether `pid` is in the tree of `root`."""
    if _belongs(pid, root, marker):
        return True
    try:
        return any(parent.pid == root for parent in psutil.Process(pid).parents())
    except psutil.NoSuchProcess:
        return False


def living(pids: Iterable[int]) -> list[psutil.Process]:
    """Those of these processes that live."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return [p for p in found if _alive(p)]


def below(root: int) -> list[psutil.Process]:
    """This process and all its descendants that live."""
    try:
        process = psutil.Process(root)
        return [p for p in (process, *process.children(recursive=True)) if _alive(p)]
    except psutil.NoSuchProcess:
        return []


def kill_marked(marker: str) -> int:
    """End leftovers of one job by its marker; says how many processes there were."""
    return end_all(lambda: _living(lambda pid: _is_or_below(marker_of(pid), marker)))


def sweep_marker(prefix: str) -> int:
    """End leftovers of every job whose marker starts so; says how many processes there were."""
    if not prefix:
        raise ValueError("an empty prefix would end the jobs of every installation")
    return end_all(lambda: _living(lambda pid: (marker_of(pid) or "").startswith(prefix)))


def _is_or_below(found: str | None, marker: str) -> bool:
    return found is not None and (found == marker or found.startswith(f"{marker}/"))


def _belongs(pid: int, root: int, marker: str) -> bool:
    try:
        if pid == root or os.getsid(pid) == root:
            return True
    except OSError:
        return False
    return marker_of(pid) == marker


def _living(wanted: Callable[[int], bool]) -> list[psutil.Process]:
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for pid in psutil.pids():
        if pid in ours or not wanted(pid):
            continue
        try:
            process = psutil.Process(pid)
        except psutil.NoSuchProcess:
            continue
        if _alive(process):
            found.append(process)
    return found


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end_all(scan: Callable[[], list[psutil.Process]]) -> int:
    """Kill what `scan` finds until it finds nothing; says how many processes there were."""
    ended: set[int] = set()
    deadline = time.monotonic() + KILL_SECONDS
    while alive := scan():
        if time.monotonic() > deadline:
            raise JobFailure(
                f"processes {sorted(p.pid for p in alive)} do not end",
                failure_class="unkillable",
                blame=Blame.INFRASTRUCTURE,
                advice="Look at these processes on the worker; a driver call may hang. Reboot it.",
            )
        for process in alive:
            try:
                process.kill()
                ended.add(process.pid)
            except psutil.NoSuchProcess:
                continue
            except psutil.AccessDenied:
                continue
        time.sleep(RESCAN_SECONDS)
    return len(ended)
