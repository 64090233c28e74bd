"""How long a look with very many events is planned, and how long another writer waits meanwhile.

Run it as `python tests/benchmarks/bench_planning.py --events 2000`. Twenty engines are pushed to in
turn: each push replaces the one before it, or with `--apart` none does.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path

import typer
from sqlalchemy import Engine

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.rows import NOON, Rows  # noqa: E402  the two folders above are not installed

from jobs import db, planner  # noqa: E402
from jobs.model import Lane  # noqa: E402
from jobs.planning_round import planning  # noqa: E402
from jobs.store import work  # noqa: E402
from jobs.tables import EventRow, StackRow  # noqa: E402

ENGINES = 20
SCENARIO = "decode-128"


class OtherWriter(threading.Thread):
    """Queues something five times a second; remembers its longest wait, and what failed."""

    def __init__(self, database: Engine) -> None:
        super().__init__(daemon=True)
        self._database, self._over = database, threading.Event()
        self.turns, self.longest_seconds, self.failed = 0, 0.0, 0

    def run(self) -> None:
        asked = planner.publish_request(lane=Lane.FRESH, reason="another writer")
        while not self._over.wait(0.2):
            start = time.monotonic()
            try:
                with db.writing(self._database) as session:
                    work.enqueue(session, [asked], db.database_now(session))
            except Exception:
                self.failed += 1
            self.turns += 1
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - start)

    def end(self) -> None:
        self._over.set()
        self.join()


def fill(database: Engine, count: int, *, apart: bool) -> None:
    """Engines with a stack each, and pushes that nobody planned."""
    with db.writing(database) as session:
        rows = Rows(session)
        rows.rig(name="cpu")
        rows.model_file(name="m:q4")
        targets = [{"rig": "cpu", "via": "cmake"}]
        engines = [rows.engine(name=f"fork-{n}", targets=targets) for n in range(ENGINES)]
        for engine in engines:
            session.add(
                StackRow(
                    name=f"stack-{engine.name}",
                    engine_id=engine.id or 0,
                    target="m:q4",
                    intent={"context": 2048},
                    scenarios=[SCENARIO],
                    created_at=NOON,
                )
            )
        heads: dict[int | None, str] = {}
        for number in range(count):
            engine = engines[number % ENGINES]
            revision = rows.revision(engine)
            before = None if apart else heads.get(engine.id)
            session.add(
                EventRow(
                    key=f"push:{number}",
                    kind="fork_pushed",
                    engine_id=engine.id,
                    revision_id=revision.id,
                    title=f"push {number}",
                    payload={"replaces": before},
                    seen_at=NOON + timedelta(seconds=number),
                )
            )
            heads[engine.id] = revision.commit


def main(
    events: int = typer.Option(2000, help="how many pushes one look sees"),
    apart: bool = typer.Option(False, "--apart", help="no push replaces another"),
) -> None:
    """Plan a look with very many events beside another writer (SQLite). Example: --events 500"""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'look.sqlite'}"
        db.migrate(url)
        database = db.connect(url)
        fill(database, events, apart=apart)
        other = OtherWriter(database)
        other.start()
        start, cpu = time.monotonic(), time.process_time()
        found = list(planning(database))
        wall, cpu = time.monotonic() - start, time.process_time() - cpu
        other.end()
        database.dispose()
    jobs = sum(len(each.jobs) for each in found)
    typer.echo(f"{events} events: {len(found)} planned, {jobs} jobs, {wall:.1f} s, CPU {cpu:.1f} s")
    told = f"{other.turns} turns, longest {other.longest_seconds:.2f} s, {other.failed} failed"
    typer.echo(f"another writer: {told}")


if __name__ == "__main__":
    typer.run(main)
