"""What the compiler's cache saves: the next commit of one branch, and the next fork.

Run it as `python tests/benchmarks/bench_builds.py commits MIRROR --branch B --count N` or
`python tests/benchmarks/bench_builds.py forks BASE_MIRROR MIRROR`. It compiles `llama-server` for
the CPU by our own recipe in bubblewrap; CPU-seconds are those of the whole tree of a step.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.control import Control
from jobs.engines import llama_cpp
from jobs.engines.base import BuildPlaces
from jobs.model import BuildTarget, Revision, Step, Trust
from jobs.trees import scratch
from workers.bubblewrap import Bubblewrap
from workers.compiler_cache import counts, open_layer
from workers.sandbox import Limits, Mount
from workers.steps import run_step

TIMES = ".times-"
CACHE_BYTES = 8 * 2**30
USED = {"CMakeLists.txt", "LICENSE", "cmake", "common", "ggml", "include", "licenses"}
USED |= {"pocs", "scripts", "src", "tools", "vendor"}
ASSETS = (":(exclude)tools/server/public", ":(exclude)tools/server/webui", ":(exclude)tools/ui")
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "base directory": {"CCACHE_BASEDIR": "/build"},
    "sloppy times": {
        "CCACHE_SLOPPINESS": "include_file_mtime,include_file_ctime,time_macros,locale"
    },
    "preprocessed only": {"CCACHE_NODIRECT": "1"},
}
"""What could raise the hits of the next fork; each starts from the same base."""

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class Built:
    """One build and what it cost."""

    commit: str
    cpu_seconds: float
    wall_seconds: float
    hits: int
    misses: int
    base_hits: int
    uncacheable: int


WORK = "/build/work"
"""Where a build works, as its cage sees it."""


def git(mirror: Path, *words: str) -> bytes:
    """What git answers of a mirror."""
    done = subprocess.run(
        ["git", "--git-dir", str(mirror), *words], check=True, capture_output=True
    )
    return done.stdout


def first_parents(mirror: Path, branch: str, count: int) -> list[str]:
    """The last commits of a branch and the one they start from, oldest first."""
    words = ("rev-list", "--first-parent", f"--max-count={count + 1}", branch)
    return list(reversed(git(mirror, *words).decode().split()))


def write_source(mirror: Path, commit: str, into: Path) -> None:
    """What the recipe uses of a commit's tree; a partial mirror may lack the rest."""
    names = git(mirror, "ls-tree", "--name-only", commit).decode().splitlines()
    wanted = (*(name for name in names if name in USED), *ASSETS)
    archive = git(mirror, "archive", commit, "--", *wanted)
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(into, filter="data")


def build(
    mirror: Path,
    commit: str,
    cache: Path,
    *,
    engine: str,
    base: bool = False,
    env: Mapping[str, str] | None = None,
) -> Built:
    """One build as the worker makes it, in folders of its own, over this cache."""
    with scratch("bench-build-", Path(tempfile.gettempdir())) as folder:
        for name in ("source", "work", "output"):
            (folder / name).mkdir()
        write_source(mirror, commit, folder / "source")
        work = Mount(folder / "work", "/build/work", writable=True)
        output = Mount(folder / "output", "/build/output", writable=True)
        layer = open_layer(
            cache,
            Bubblewrap(),
            engine=engine,
            source=engine,
            trust=Trust.AUTO,
            work=work,
            size_bytes=CACHE_BYTES,
            writes_base=base,
        )
        places = BuildPlaces(
            "/build/source", "/build/work", "/build/output", jobs=os.cpu_count() or 1
        )
        revision = Revision(engine, llama_cpp.FAMILY, commit, commit[:9], engine)
        began = time.monotonic()
        for step in llama_cpp.build(revision, BuildTarget("cpu", "cmake"), places):
            run_step(
                Bubblewrap(),
                _timed(step, {**layer.env, **(env or {}), **step.env}),
                (Mount(folder / "source", "/build/source"), work, output, *layer.mounts),
                log=folder / "log",
                limits=Limits(memory_bytes=12 * 2**30),
                control=Control(),
                marker=f"bench-builds/{os.getpid()}",
            )
        said = counts(folder / "work").stored()
        return Built(
            commit,
            round(_cpu_seconds(folder / "work"), 1),
            round(time.monotonic() - began, 1),
            **said,
        )


def _timed(step: Step, env: Mapping[str, str]) -> Step:
    """The step behind a shell that writes down what it and all it waited for used."""
    script = f'"$@"; code=$?; times >{WORK}/{TIMES}{step.name}; exit $code'
    return replace(step, argv=("/bin/sh", "-c", script, "sh", *step.argv), env=env)


def _cpu_seconds(work: Path) -> float:
    """User and system time of all steps."""
    text = " ".join(path.read_text() for path in work.glob(f"{TIMES}*"))
    return sum(
        60 * int(minutes) + float(seconds)
        for minutes, seconds in re.findall(r"(\d+)m([0-9.]+)s", text)
    )


def say(built: Built, **more: str) -> None:
    """One line of raw figures."""
    sys.stdout.write(json.dumps({**asdict(built), **more}) + "\n")
    sys.stdout.flush()


@app.command()
def commits(
    mirror: Path,
    branch: Annotated[str, typer.Option(help="whose last commits are built")] = "HEAD",
    count: Annotated[int, typer.Option(help="how many commits after the cold one")] = 8,
) -> None:
    """Build a commit cold, then its successors one by one, each over what was compiled before."""
    first, *following = first_parents(mirror, branch, count)
    with scratch("bench-cache-", Path(tempfile.gettempdir())) as cache:
        cold = build(mirror, first, cache, engine=mirror.stem)
        say(cold, part="cold")
        warm = []
        for commit in following:
            warm.append(build(mirror, commit, cache, engine=mirror.stem))
            say(warm[-1], part="next commit")
    median = statistics.median(each.cpu_seconds for each in warm)
    sys.stdout.write(
        f"{mirror.stem}: cold {cold.cpu_seconds:.0f} CPU-seconds, next commit {median:.1f} "
        f"(median of {len(warm)}), {cold.cpu_seconds / max(median, 0.1):.1f} times less; goal 10\n"
    )


@app.command()
def forks(
    base_mirror: Path,
    mirror: Path,
    base_branch: Annotated[str, typer.Option(help="what fills the base")] = "HEAD",
    branch: Annotated[str, typer.Option(help="what is built over it")] = "HEAD",
    variant: Annotated[list[str] | None, typer.Option(help="only these; all when left out")] = None,
) -> None:
    """Fill the base with one engine, then build another over it, once for each variant."""
    [base_commit] = first_parents(base_mirror, base_branch, 0)
    [commit] = first_parents(mirror, branch, 0)
    for name in variant or VARIANTS:
        env = VARIANTS[name]
        with scratch("bench-cache-", Path(tempfile.gettempdir())) as cache:
            cold = build(
                base_mirror, base_commit, cache, engine=base_mirror.stem, base=True, env=env
            )
            say(cold, part="base", variant=name)
            over = build(mirror, commit, cache, engine=mirror.stem, env=env)
            say(over, part="next fork", variant=name)
        sys.stdout.write(
            f"{name}: {over.base_hits} of {over.hits + over.misses} compilations from the base, "
            f"{over.cpu_seconds:.0f} CPU-seconds\n"
        )


if __name__ == "__main__":
    app()
