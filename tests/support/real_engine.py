"""The real llama.cpp server from its wheel, built by our own recipe, once a session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jobs.control import Control
from jobs.engines import xllamacpp
from jobs.engines.base import BuildPlaces
from jobs.model import BuildTarget, Revision
from workers.sandbox import Limits, Mount
from workers.steps import run_step
from workers.uncaged import Uncaged

VERSION = "2026.10.11549"
REVISION = Revision("xllamacpp", "xllamacpp", "a" * 64, VERSION, "package")
TARGET = BuildTarget("cpu", "wheel")
LIMITS = Limits()


def fetch_wheel(folder: Path) -> Path:
    """A folder that holds the wheel, fetched through the machine's own pip settings."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
    command += ["--only-binary=:all:", "--dest", str(folder), f"xllamacpp=={VERSION}"]
    subprocess.run(command, check=True, timeout=600, stdin=subprocess.DEVNULL)
    return folder


def build(wheel_folder, root):
    """The recipe's own steps, run one after the other."""
    output = root / "output"
    places = BuildPlaces(
        source=str(wheel_folder), work=str(root), output=str(output), python=sys.executable
    )
    for step in xllamacpp.build(REVISION, TARGET, places):
        run_step(
            Uncaged(),
            step,
            (Mount(root, "/build", writable=True), Mount(wheel_folder, "/wheel")),
            log=root / "build.log",
            limits=LIMITS,
            control=Control(),
            marker=f"test-{root.name}",
        )
    return output
