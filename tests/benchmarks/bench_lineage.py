"""How long lineage takes from a warm network: four engines, then a hundred forks.

Run it as `python tests/benchmarks/bench_lineage.py`. Beside each figure stands the yardstick of the
same run: git alone counting ahead and behind once for each fork.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import typer

sys.path.insert(0, str(Path(__file__).parents[2]))

from jobs import git_network
from scout.history import GitHistory
from scout.lineage import Member, lineage

UPSTREAM_COMMITS = 10_000
FORK_COMMITS = 300
SYNC_EVERY = 100
START = 1_700_000_000
GOALS = {4: 1.0, 101: 15.0}  # seconds by engines, upstream among them


def stream(forks: int) -> Iterator[str]:
    """A history for `git fast-import`: each fork stands on upstream or on another fork."""
    for n in range(UPSTREAM_COMMITS):
        yield commit(
            "refs/remotes/1/heads/main", n + 1, n, f"change (#{10_000 + n})", f"up {n % 300}"
        )
    mark = UPSTREAM_COMMITS
    tips: list[int] = []
    for fork in range(forks):
        on_fork = fork % 3 == 2
        parent = tips[-1] if on_fork else UPSTREAM_COMMITS - 900 + (fork * 7) % 300
        for n in range(FORK_COMMITS):
            mark += 1
            merge = 0
            if n and n % SYNC_EVERY == 0 and not on_fork:
                merge = UPSTREAM_COMMITS - 500 + n
            ref = f"refs/remotes/{fork + 2}/heads/main"
            yield commit(ref, mark, parent, f"patch {n} of {fork}", f"fork {fork}", merge)
            parent = mark
        tips.append(parent)


def commit(ref: str, mark: int, parent: int, subject: str, author: str, merge: int = 0) -> str:
    """One commit without a file."""
    who = f"{author} <a@example.org> {START + mark * 60} +0000"
    lines = [f"commit {ref}", f"mark :{mark}", f"author {who}", f"committer {who}"]
    lines += [f"data {len(subject)}", subject]
    lines += [f"from :{parent}"] if parent else []
    lines += [f"merge :{merge}"] if merge else []
    return "\n".join(lines) + "\n"


def measure(folder: Path, forks: int) -> tuple[float, float, int]:
    """Seconds of lineage, seconds of git alone, commits."""
    network = folder / f"{forks}.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(network)], check=True)
    fed = "".join(stream(forks))
    importing = ["git", "-C", str(network), "fast-import", "--quiet"]
    subprocess.run(importing, input=fed, text=True, check=True)
    history = GitHistory(network)
    numbers = list(range(1, forks + 2))
    lines = [git_network.tips(network, number) for number in numbers]
    start = time.perf_counter()
    graph = history.graph(numbers)
    members = [
        Member(f"engine {number}", "main", refs["refs/heads/main"], tuple(refs.values()))
        for number, refs in zip(numbers, lines, strict=True)
    ]
    found = lineage(graph, members, upstream="engine 1", now=datetime.now(UTC))
    ours = time.perf_counter() - start
    start = time.perf_counter()
    for member, descent in zip(members[1:], found[1:], strict=True):
        words = ["rev-list", "--left-right", "--count", f"{members[0].head}...{member.head}"]
        counted = subprocess.run(
            ["git", "-C", str(network), *words], check=True, capture_output=True, text=True
        ).stdout.split()
        away = descent.from_upstream
        if away is None or counted != [str(away.behind), str(away.ahead)]:
            raise SystemExit(f"git counts {counted} for {member.name}, we {away}")
    return ours, time.perf_counter() - start, len(graph)


def main() -> None:
    """Print the table; exit 1 where a goal is missed."""
    missed = False
    typer.echo(" engines  commits  lineage s  goal s  git counts s     MB")
    with tempfile.TemporaryDirectory() as folder:
        for engines, goal in GOALS.items():
            ours, alone, commits = measure(Path(folder), engines - 1)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            typer.echo(
                f"{engines:>8} {commits:>8} {ours:>10.2f} {goal:>7.0f} {alone:>13.2f} {peak:>6}"
            )
            missed = missed or ours > goal
    raise SystemExit(missed)


if __name__ == "__main__":
    main()
