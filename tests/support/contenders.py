"""Runs contenders of a benchmark as processes of their own: how long, how much memory, what output.

nvchecker comes from the package index into an environment of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TICK_SECONDS = 0.02


def measured(words: list[str], folder: Path, **how: Any) -> tuple[float, float, str]:
    """Seconds, peak MiB of the process itself, and what it said."""
    peak, said = 0, folder / "said.txt"
    with said.open("w") as output:
        begun = time.perf_counter()
        child = subprocess.Popen(words, stdout=output, **how)
        while child.poll() is None:
            peak = max(peak, _peak_kib(child.pid))
            time.sleep(TICK_SECONDS)
        seconds = time.perf_counter() - begun
    if child.returncode != 0:
        raise SystemExit(f"{words[:3]} ended with {child.returncode}: {said.read_text()[-500:]}")
    return seconds, peak / 1024, said.read_text()


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

    def look(self, entries: list[str], **environment: str) -> tuple[float, float]:
        """Seconds and peak MiB of one look at all of them; one that fails ends the benchmark."""
        head = f'[__config__]\noldver = "{self.folder}/old.json"\n'
        head += f'newver = "{self.folder}/new.json"\n'
        tables = [f"[f{number}]\n{entry}" for number, entry in enumerate(entries)]
        config = self.folder / "nvchecker.toml"
        config.write_text("\n".join([head, *tables]))
        words = [str(self._bin / "nvchecker"), "-c", str(config), "--logger", "json"]
        alone = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        seconds, memory, said = measured(words, self.folder, env={**alone, **environment})
        failed = [line for line in said.splitlines() if '"level": "error"' in line]
        if failed:
            raise SystemExit(f"nvchecker failed {len(failed)} times: {failed[0][:300]}")
        return seconds, memory
