"""A failed build step is told by the line of its own log that a rule of its phase knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.engines.registry import FAMILIES
from workers.build_causes import explained
from workers.steps import StepFailed

LIBRARY = "llama-server: error while loading shared libraries: libx.so.1: cannot open shared object"
NO_WHEEL = "ERROR: No matching distribution found for xllamacpp==9.9.9"
NO_MODULE = "ModuleNotFoundError: No module named 'xllamacpp'"


@pytest.mark.parametrize(
    ("family", "step", "line", "name"),
    [
        ("llama.cpp", "describe", LIBRARY, "libcuda_rt"),
        ("llama.cpp", "compile", LIBRARY, "exit"),
        ("xllamacpp", "install", NO_WHEEL, "wheel_missing"),
        ("xllamacpp", "tidy", NO_MODULE, "wheel_import"),
        ("xllamacpp", "describe", NO_MODULE, "wheel_import"),
    ],
)
def test_the_phase_decides_which_table_is_asked(
    tmp_path: Path, family: str, step: str, line: str, name: str
) -> None:
    """What a built binary says counts when it describes itself, and not while it is made."""
    log = tmp_path / "build.log"
    log.write_text(f"begins\n{line}\n")
    failure = StepFailed(
        "ended with exit code 1", failure_class="exit", step=step, log=log, advice="Read the log."
    )
    found = explained(failure, FAMILIES[family], offset=0)
    assert (found.failure_class, found.phase) == (name, step)
