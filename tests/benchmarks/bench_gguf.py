"""A header with 248,320 words: our reader and `gguf.GGUFReader` on the same file, side by side.

Run from the top folder: `.venv/bin/python tests/benchmarks/bench_gguf.py`. Every figure comes from
a process of its own. Below the table stand the goals, and how 10,000 damaged headers were taken;
exit 1 where a goal is missed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

FASTER, SMALLER = 40, 20
FACTS_BYTES = 64 * 2**10
MUTANTS = 10_000


def peak_mib() -> float:
    """The most memory this process ever had, from its own start on."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def ours(place: str, word: str) -> dict[str, float]:
    """Our reader to one of its two depths, and the facts."""
    from jobs.gguf.reader import Depth, read_header
    from jobs.gguf.reading import facts_of

    handle = os.open(place, os.O_RDONLY)
    before, begun = peak_mib(), time.perf_counter()
    header = read_header(
        lambda offset, length: os.pread(handle, length, offset),
        size_bytes=os.fstat(handle).st_size,
        depth=Depth(word),
    )
    found = facts_of(header, file_name=Path(place).name)
    seconds = time.perf_counter() - begun
    if (found.tensor_count, found.vocabulary_size) != (851, 248_320):
        raise SystemExit(f"wrong facts: {found}")
    return {
        "seconds": seconds,
        "peak": peak_mib(),
        "grown": peak_mib() - before,
        "bytes": header.bytes_read,
        "requests": header.requests,
    }


def reference(place: str, _: str) -> dict[str, float]:
    """Upstream's reader, which maps the whole file."""
    import gguf

    before, begun = peak_mib(), time.perf_counter()
    found = gguf.GGUFReader(place)
    seconds = time.perf_counter() - begun
    if (len(found.tensors), len(found.fields["tokenizer.ggml.tokens"].data)) != (851, 248_320):
        raise SystemExit("the reference read something else")
    return {"seconds": seconds, "peak": peak_mib(), "grown": peak_mib() - before}


def damaged(place: str, word: str) -> dict[str, float]:
    """Damaged headers, counted; any other error than our own ends the run."""
    del place
    from support.gguf_mutants import Tally, mutants

    tally, begun = Tally(), time.perf_counter()
    before = peak_mib()
    for mutant in mutants(int(word), random.Random(2026)):
        tally.judge(mutant)
    return {
        "seconds": time.perf_counter() - begun,
        "read": tally.read,
        "refused": tally.refused,
        "slowest": tally.slowest_seconds,
        "reasons": len(tally.reasons),
        "peak": peak_mib(),
        "grown": peak_mib() - before,
    }


CONTENDERS = {"ours": ours, "reference": reference, "damaged": damaged}


def measured(name: str, place: Path, word: str) -> dict[str, float]:
    """One contender in a process of its own."""
    words = [sys.executable, __file__, name, str(place), word]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the table, the goals and the damaged headers; exit 1 where a goal is missed."""
    import typer
    from rich.console import Console
    from rich.table import Table
    from support import gguf_files as files

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "Qwen3.6-27B-Q4_K_M.gguf"
        file = files.qwen36()
        place.write_bytes(file.header)
        os.truncate(place, file.size_bytes)
        facts = measured("ours", place, "facts")
        full = measured("ours", place, "full")
        theirs = measured("reference", place, "")
    broken = measured("damaged", place, str(MUTANTS))
    table = Table(
        *("contender", "seconds", "peak memory", "grown by", "bytes fetched", "requests"),
        title=f"a header of {len(file.header):,} bytes, 851 tensors, 248,320 words",
        box=None,
    )
    for name, run in (("facts", facts), ("full header", full), ("gguf.GGUFReader", theirs)):
        table.add_row(
            name,
            f"{run['seconds']:.4f}",
            f"{run['peak']:.0f} MiB",
            f"{run['grown']:.0f} MiB",
            f"{run['bytes']:,}" if "bytes" in run else "maps the file",
            str(run.get("requests", "")),
        )
    Console(width=120).print(table)
    faster, smaller = theirs["seconds"] / full["seconds"], theirs["peak"] / full["peak"]
    goals = (
        (
            f"facts from {facts['bytes']:,} bytes in {facts['requests']} request, goal 65,536, 1",
            facts["bytes"] <= FACTS_BYTES and facts["requests"] == 1,
        ),
        (f"full header {faster:.0f} times faster, goal {FASTER}", faster >= FASTER),
        (f"in 1/{smaller:.0f} of the memory, goal 1/{SMALLER}", smaller >= SMALLER),
    )
    for sentence, is_met in goals:
        typer.echo(f"{'met' if is_met else 'MISSED'}: {sentence}")
    typer.echo(
        f"{MUTANTS:,} damaged headers: {broken['refused']:,} refused with our own error, "
        f"{broken['read']:,} read, none raised another; {broken['seconds']:.1f} s in all, slowest "
        f"{broken['slowest'] * 1000:.0f} ms, peak {broken['peak']:.0f} MiB "
        f"(grown by {broken['grown']:.0f})"
    )
    if not all(is_met for _, is_met in goals):
        raise SystemExit(1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(CONTENDERS[sys.argv[1]](*sys.argv[2:4])))  # noqa: T201
    else:
        main()
