"""A quiet day of 1,000 forks: what it costs us and nvchecker on the same stand-in, side by side.

Run from the top folder: `.venv/bin/python tests/benchmarks/bench_scouting.py`. The package index
must offer nvchecker; it goes into a virtual environment of its own that is removed at the end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import typer  # noqa: E402  the two folders above are not installed
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from support.github import GitHub  # noqa: E402

from jobs import db  # noqa: E402
from jobs.db import writing  # noqa: E402
from jobs.store import catalog  # noqa: E402
from scout.github.client import Client  # noqa: E402
from scout.github.desk import Desk  # noqa: E402
from scout.github.rounds import look_around  # noqa: E402

UPSTREAM = 612354784
START = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)
QUIET_DAYS = 3


@dataclass(frozen=True)
class Run:
    """One contender's quiet look."""

    name: str
    seconds: float
    asked: int
    charged: str
    memory_mib: float
    sees: str


def scout(url: str, folder: str) -> None:
    """Our side, in a process of its own: a first look, and then quiet days."""
    address = f"sqlite:///{Path(folder) / 'scout.sqlite'}"
    db.migrate(address)
    database, clock = db.connect(address), [START]
    with writing(database) as session:
        values = {"family": "llama.cpp", "repo": "ggml-org/llama.cpp", "trust": "approve"}
        catalog.upsert_engine(session, "upstream", now=START, values=values)
    client = Client(token="bench", base=url)  # noqa: S106  an invented token for the stand-in
    for _ in range(QUIET_DAYS + 2):
        begun = time.perf_counter()
        found = look_around(Desk(database, client, lambda: clock[0]))
        report = {"seconds": time.perf_counter() - begun, "requests": found.requests}
        typer.echo(json.dumps({**report, "events": len(found.new)}))
        clock[0] += timedelta(days=1, minutes=1)


class GitServer:
    """Answers `git ls-remote` for every repository with one branch and one tag."""

    def __init__(self) -> None:
        self.asked = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536

            def log_message(self, *_: object) -> None:
                """Silent."""

            def do_GET(self) -> None:
                server.asked += 1
                sha = "1" * 40
                head = f"{sha} HEAD\0symref=HEAD:refs/heads/master agent=bench\n"
                lines = [head, f"{sha} refs/heads/master\n", f"{sha} refs/tags/b9100\n"]
                body = _packet("# service=git-upload-pack\n") + b"0000"
                body += b"".join(map(_packet, lines)) + b"0000"
                self.send_response_only(200)
                self.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.request_queue_size = 128
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _packet(line: str) -> bytes:
    raw = line.encode()
    return f"{len(raw) + 4:04x}".encode() + raw


def measured(words: list[str], folder: Path, **how: Any) -> tuple[float, float, str]:
    """Seconds, peak MiB of the process itself, and what it said."""
    peak, said = 0, folder / "said.txt"
    with said.open("w") as output:
        begun = time.perf_counter()
        child = subprocess.Popen(words, stdout=output, **how)
        while child.poll() is None:
            peak = max(peak, _peak_kib(child.pid))
            time.sleep(0.02)
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


def run_scout(forks: int, folder: Path) -> list[Run]:
    """A quiet day of ours, and beside it the first look."""
    with GitHub() as github:
        github.public = github.url
        github.add(UPSTREAM, "ggml-org/llama.cpp")
        for number in range(forks):
            github.add(10_000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM)
        words = [sys.executable, __file__, "scout", github.url, str(folder)]
        _, memory, said = measured(words, folder, env={**os.environ, "NO_PROXY": "127.0.0.1"})
        first, second, *quiet = [
            json.loads(line) for line in said.splitlines() if line.startswith("{")
        ]
        asked = sum(each["requests"] for each in quiet)
        if any(each["events"] for each in quiet):
            raise SystemExit("a quiet day had events")
        charged = sum(each.charged for each in github.asked[-asked:])
        settling = sum(each.charged for each in github.asked[first["requests"] : -asked])
    best = min(quiet, key=lambda each: each["seconds"])
    sees = "new, renamed, archived, vanished forks; pushes as a hint"
    return [
        Run("forkscout, first look", first["seconds"], first["requests"], "all", memory, sees),
        Run(
            "forkscout, second day",
            second["seconds"],
            second["requests"],
            str(settling),
            memory,
            sees,
        ),
        Run(
            "forkscout, a quiet day",
            best["seconds"],
            best["requests"],
            f"{charged} in {QUIET_DAYS} days",
            memory,
            sees,
        ),
    ]


def run_nvchecker(forks: int, folder: Path) -> list[Run]:
    """The same forks one by one through nvchecker's `git` source, the second time."""
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    install = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, "--disable-pip-version-check", "nvchecker"], check=True)
    server = GitServer()
    parts = [f'[__config__]\noldver = "{folder}/old.json"\nnewver = "{folder}/new.json"\n']
    for number in range(forks):
        address = f"{server.url}/dev{number}/llama.cpp.git"
        parts.append(
            f'[f{number}]\nsource = "git"\ngit = "{address}"\nuse_commit = true\n'
            'branch = "master"\n'
        )
    config = folder / "nv.toml"
    config.write_text("\n".join(parts))
    words = [str(environment / "bin" / "nvchecker"), "-c", str(config), "--logger", "json"]
    alone = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    measured(words, folder, env=alone)
    server.asked = 0
    seconds, memory, _ = measured(words, folder, env=alone)
    asked = server.asked
    server.stop()
    if asked != forks:
        raise SystemExit(f"nvchecker asked {asked} times, not {forks}")
    return [Run("nvchecker git, second look", seconds, asked, "none (git)", memory, "one branch")]


def main(forks: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = [*run_scout(forks, Path(folder)), *run_nvchecker(forks, Path(folder))]
    names = ("contender", "wall", "requests", "charged", "peak memory", "sees")
    table = Table(*names, title=f"{forks} quiet forks on one stand-in, one run", box=None)
    for run in runs:
        table.add_row(
            run.name,
            f"{run.seconds:.2f} s",
            str(run.asked),
            run.charged,
            f"{run.memory_mib:.0f} MiB",
            run.sees,
        )
    Console(width=160).print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["scout"]:
        scout(*sys.argv[2:4])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
