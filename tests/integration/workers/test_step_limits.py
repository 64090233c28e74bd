"""Steps against their limits in real sandboxes: what ends them, and what the caller is told."""

from __future__ import annotations

import pytest
from support.place import EVERY, Place

from jobs.errors import JobFailure
from jobs.model import Blame, Step
from workers.sandbox import Limits
from workers.steps import StepFailed


@EVERY
def test_lines_arrive_as_printable_text(place: Place) -> None:
    """Every line, those ended by a carriage return and the last one too, reaches the caller."""
    place.run(r"import os; os.write(1, b'[1/2]\r[2/2]\n\x1b[31mred\x00 \xff')")
    assert place.lines == ["[1/2]", "[2/2]", "[31mred \ufffd"]


@EVERY
def test_a_bad_exit_says_code_and_log(place: Place) -> None:
    """The caller gets what it needs to find the cause: code, signal, log."""
    with pytest.raises(StepFailed) as caught:
        place.run("import sys; print('why'); sys.exit(3)")
    failure = caught.value
    assert (failure.failure_class, failure.blame) == ("exit", Blame.ENGINE)
    assert (failure.returned, failure.signal_number) == (3, None)
    assert failure.log.read_text() == "why\n"
    assert failure.phase == "probe"


@EVERY
def test_death_by_a_signal_is_told_apart(place: Place) -> None:
    """A process killed from outside, as for lack of memory, shows its signal (case C106)."""
    with pytest.raises(StepFailed) as caught:
        place.run("import os; os.kill(os.getpid(), 9)")
    assert (caught.value.returned, caught.value.signal_number) == (None, 9)


@EVERY
def test_a_program_that_is_not_there_fails_the_step(place: Place) -> None:
    """A missing compiler is a failed step, not a crash of the worker."""
    with pytest.raises(StepFailed) as caught:
        place.run_step(Step(name="x", argv=("/nonexistent/cmake",)))
    assert caught.value.failure_class == "exit"


@EVERY
def test_a_step_that_takes_too_long_is_ended(place: Place) -> None:
    """Past its time the whole tree ends, output or not."""
    with pytest.raises(StepFailed) as caught:
        place.run("while True: print('.', flush=True)", timeout_seconds=0.5)
    assert caught.value.failure_class == "timeout"


@EVERY
def test_a_silent_step_is_ended(place: Place) -> None:
    """A step that hangs without a word is ended long before its time."""
    with pytest.raises(StepFailed) as caught:
        place.run("import time; print('x', flush=True); time.sleep(60)", silence_seconds=0.5)
    assert caught.value.failure_class == "silent"


@EVERY
def test_a_flood_of_output_is_cut(place: Place) -> None:
    """Hundreds of megabytes against a limit of one leave one megabyte in the log."""
    with pytest.raises(JobFailure) as caught:
        place.run(
            "import os\nwhile True: os.write(1, b'x' * 65536)",
            limits=Limits(output_bytes=1 << 20),
        )
    assert caught.value.failure_class == "output_limit"
    assert place.log.stat().st_size == 1 << 20


@EVERY
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


@EVERY
def test_a_disk_that_runs_low_blames_nobody(place: Place) -> None:
    """When the disk under a writable mount runs low the step ends as an infrastructure fault."""
    with pytest.raises(JobFailure) as caught:
        place.run("import time; time.sleep(60)", limits=Limits(min_free_bytes=1 << 60))
    assert (caught.value.failure_class, caught.value.blame) == ("disk_full", Blame.INFRASTRUCTURE)


@EVERY
def test_memory_is_counted_over_the_tree(place: Place) -> None:
    """Four children of 40 MiB each are over a limit of 100 MiB that none breaks alone."""
    with pytest.raises(StepFailed) as caught:
        place.run(
            "import os, time\nfor _ in range(4):\n    if os.fork() == 0: break\n"
            "held = b'x' * (40 << 20)\ntime.sleep(60)",
            limits=Limits(memory_bytes=100 << 20),
        )
    assert caught.value.failure_class == "memory_limit"


@EVERY
def test_too_many_processes_end_the_step(place: Place) -> None:
    """A step that multiplies is ended as a whole."""
    with pytest.raises(StepFailed) as caught:
        place.run(
            "import os, time\nfor _ in range(30):\n    if os.fork() == 0: break\ntime.sleep(60)",
            limits=Limits(processes=20),
        )
    assert caught.value.failure_class in ("process_limit", "exit")
