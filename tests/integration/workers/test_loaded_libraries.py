"""Code that a running step really has in memory, seen from outside its cage."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.place import EVERY, Place
from support.stub_family import StubFamily
from support.waiting import wait_for

from jobs.errors import JobFailure
from jobs.model import Blame, Flags
from jobs.scenarios import Scenario
from workers import plan
from workers.loaded import prove_libraries
from workers.sandbox import Limits, Mount

BRINGS_ITS_OWN = """
import ctypes, glob, shutil, sys, time
shutil.copy(glob.glob('/usr/lib/*/libz.so.1')[0], sys.argv[1] + '/libz-brought.so')
ctypes.CDLL(sys.argv[1] + '/libz-brought.so')
print('up', flush=True)
time.sleep(60)
"""
HONEST = "import ctypes, zlib, time; print('up', flush=True); time.sleep(60)"


def _plan(place: Place, artifact: Path) -> plan.Plan:
    return plan.Plan(
        engine=StubFamily({}),
        scenario=Scenario("stub", 1, "chat", "x", tokens=1, runs=1, boots=1),
        flags=Flags(frozenset()),
        artifact=Mount(artifact, "/run/artifact"),
        model=Mount(artifact, "/run/model"),
        context_tokens=1,
        threads=1,
        runs=1,
    )


def _prove(place: Place, program: str, tmp_path: Path) -> None:
    where = plan.Place(place.sandbox, Limits(), tmp_path, place.log, "x")
    with place.start(program) as running:
        wait_for(lambda: place.log.exists() and "up" in place.log.read_text())
        prove_libraries(running, _plan(place, tmp_path / "artifact"), where)


@EVERY
def test_code_that_a_server_brought_is_found(place: Place, tmp_path: Path) -> None:
    """A library from a folder the server may write to is the engine's fault, by its path."""
    with pytest.raises(JobFailure, match=r"libz-brought\.so") as caught:
        _prove(place, BRINGS_ITS_OWN, tmp_path)
    assert (caught.value.failure_class, caught.value.blame) == ("foreign_library", Blame.ENGINE)


@EVERY
def test_code_of_the_system_is_no_stranger(place: Place, tmp_path: Path) -> None:
    """An interpreter with libraries of the machine passes."""
    _prove(place, HONEST, tmp_path)
