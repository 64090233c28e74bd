"""Prints how every hostile build ended in every cage of this machine, as a table for the evidence.

python tests/benchmarks/show_hostile_builds.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.hostile import WON, Hostile, meet  # noqa: E402
from support.hostile_table import TABLE  # noqa: E402

from jobs.trees import scratch  # noqa: E402
from workers.bubblewrap import Bubblewrap  # noqa: E402
from workers.docker import Docker  # noqa: E402
from workers.proof import prove  # noqa: E402
from workers.sandbox import Sandbox  # noqa: E402


def main() -> int:
    """Exit code 1 where any attack won, was not named, or left something."""
    cages = [c for c in (Bubblewrap(), Docker(os.environ.get("DOCKER_HOST", ""))) if not prove(c)]
    heads = "".join(f" {cage.name} | seconds |" for cage in cages)
    _say(f"| hostile build |{heads} advice |")
    _say("|---|" + "---|---:|" * len(cages) + "---|")
    bad = 0
    for hostile in TABLE:
        cells, advice = "", ""
        for cage in cages:
            words, seconds, advice, held = _one(hostile, cage)
            bad += not held
            cells += f" {words} | {seconds:.1f} |"
        _say(f"| {hostile.name} |{cells} {advice} |")
    _say(f"\n{len(TABLE)} builds, {len(cages)} cages, {bad} not contained")
    return 1 if bad or not cages else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _one(hostile: Hostile, cage: Sandbox) -> tuple[str, float, str, bool]:
    with scratch("hostile-", Path(tempfile.gettempdir())) as folder:
        outcome = meet(hostile, cage, folder)
    held = WON not in outcome.log and not outcome.left and outcome.failure_class in hostile.classes
    words = f"`{outcome.failure_class}` in {outcome.stopped_in}"
    if not outcome.failure_class:
        words = "ended with the step"
    return (words if held else f"**NOT CONTAINED** {words}"), outcome.seconds, outcome.advice, held


if __name__ == "__main__":
    sys.exit(main())
