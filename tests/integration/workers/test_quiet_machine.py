"""Waiting for a quiet machine sees real load, gives up in time and hears a cancel."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from jobs.control import Control
from jobs.errors import Stopped
from workers.quiet import wait_for_quiet


@pytest.fixture
def busy() -> Iterator[None]:
    """Every processor at work."""
    burn = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(burn) for _ in range(os.cpu_count() or 1)]
    yield
    for burner in burners:
        burner.kill()
        burner.wait()


@pytest.mark.usefixtures("busy")
def test_a_busy_machine_is_seen_and_the_wait_ends() -> None:
    """The bench goes on after the limit; its boots are marked by what they see themselves."""
    control = Control()
    assert not wait_for_quiet(control, limit_seconds=1.5)
    assert control.progress["phase"] == "wait for a quiet machine"


@pytest.mark.usefixtures("busy")
def test_a_cancel_ends_the_wait() -> None:
    """Nobody waits a minute for a job that is cancelled."""
    control = Control()
    threading.Timer(0.5, control.ask, ["cancelled"]).start()
    with pytest.raises(Stopped):
        wait_for_quiet(control, limit_seconds=60)
