"""Runs contenders of a benchmark as processes of their own: how long, how much memory, what output.

nvchecker comes from the package index into an environment of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TICK_SECONDS = 0.02


@dataclass(frozen=True)
class Measured:
    """One run of a program: CPU time with that of all it started, the peak of itself alone."""

    seconds: float
    cpu_seconds: float
    memory_mib: float
    said: str


def measured(words: list[str], folder: Path, **how: Any) -> Measured:
    """Run it to its end; one that fails ends the benchmark."""
    peak, said = 0, folder / "said.txt"
    with said.open("w") as output:
        begun = time.perf_counter()
        child = subprocess.Popen(words, stdout=output, **how)
        ended = 0
        while not ended:
            peak = max(peak, _peak_kib(child.pid))
            time.sleep(TICK_SECONDS)
            ended, status, used = os.wait4(child.pid, os.WNOHANG)
        seconds = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{words[:3]} ended with {child.returncode}: {said.read_text()[-500:]}")
    return Measured(seconds, used.ru_utime + used.ru_stime, peak / 1024, said.read_text())


def _peak_kib(pid: int) -> int:
    """The high-water mark since the program began; `ru_maxrss` would count its parent's too."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) if found else 0


class Nvchecker:
    """nvchecker with one entry for each repository, asked again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._bin = folder / "venv" / "bin"
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        install = [str(self._bin / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, "--disable-pip-version-check", "nvchecker"], check=True)

    def look(self, entries: list[str], **environment: str) -> Measured:
        """One look at all of them; one that fails ends the benchmark."""
        head = f'[__config__]\noldver = "{self.folder}/old.json"\n'
        head += f'newver = "{self.folder}/new.json"\n'
        tables = [f"[f{number}]\n{entry}" for number, entry in enumerate(entries)]
        config = self.folder / "nvchecker.toml"
        config.write_text("\n".join([head, *tables]))
        words = [str(self._bin / "nvchecker"), "-c", str(config), "--logger", "json"]
        alone = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        run = measured(words, self.folder, env={**alone, **environment})
        failed = [line for line in run.said.splitlines() if '"level": "error"' in line]
        if failed:
            raise SystemExit(f"nvchecker failed {len(failed)} times: {failed[0][:300]}")
        return run
