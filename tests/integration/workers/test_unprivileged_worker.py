"""A worker that is no root and has no control group: its user's limits bound a caged step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.control import Control
from jobs.errors import JobFailure
from jobs.model import Step
from jobs.trees import remove
from workers.bubblewrap import Bubblewrap
from workers.limited import enforced_here, groups_here
from workers.sandbox import Limits, Mount
from workers.steps import run_step

pytestmark = pytest.mark.needs("bwrap")
NOBODY = 65534
BOMB = "f() { f | f & }; f; wait; sleep 60"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that nobody owns, in a place that nobody reaches."""
    path = Path(tempfile.mkdtemp(prefix="forkscout-nobody-"))
    (path / "work").mkdir()
    if os.getuid() == 0:
        for each in (path, path / "work"):
            os.chown(each, NOBODY, NOBODY)
    yield path
    remove(path)


def _as_nobody(act: Callable[[], str]) -> str:
    """What `act` says in a child process without rights; root itself has no such limits."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            groups_here.cache_clear()
            os.write(writer, act().encode()[:4000])
        except BaseException as error:
            os.write(writer, repr(error).encode()[:4000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        words = said.read().decode()
    os.waitpid(child, 0)
    return words


def _run(folder: Path, script: str, limits: Limits) -> str:
    step = Step("s", ("/bin/sh", "-c", script), timeout_seconds=20)
    mounts = (Mount(folder / "work", "/job", writable=True),)
    words = {"limits": limits, "control": Control(), "marker": f"test-{os.getpid()}/nobody"}
    try:
        run_step(Bubblewrap(), step, mounts, log=folder / "log", **words)  # type: ignore[arg-type]
    except JobFailure as failure:
        return failure.failure_class
    return (folder / "log").read_text()


def test_the_worker_says_what_bounds_its_steps() -> None:
    """Without a group it is the user's limits, which suffices, and a note says what is weaker."""

    def act() -> str:
        found = enforced_here()
        return f"{groups_here() is None} {found.faults} {found.by}"

    said = _as_nobody(act)
    if said.startswith("False"):
        pytest.skip("this user may make control groups here: nothing is left to show")
    assert said == "True () resource limits of an unprivileged user"


def test_a_fork_bomb_meets_the_limit_of_its_namespace(folder: Path) -> None:
    """It cannot grow past its number, and ends with the step (kernel 5.14 and later)."""
    said = _as_nobody(lambda: _run(folder, BOMB, Limits(processes=60)))
    assert said in ("process_limit", "timeout", "exit")


def test_memory_is_bounded_for_each_process(folder: Path) -> None:
    """A process that asks for more than the limit does not get it."""
    greedy = "x=x; while true; do x=$x$x; done"
    said = _as_nobody(lambda: _run(folder, greedy, Limits(memory_bytes=64 << 20)))
    assert said in ("exit", "memory_limit")
