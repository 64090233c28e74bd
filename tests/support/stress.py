"""Six workers and a sweeper, what befalls them, and a count of what came of it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import select
from support.broker import Broker
from support.waiting import wait_for
from support.work import request

from jobs import db, queue
from jobs.config import Settings
from jobs.line_tables import AttemptRow
from jobs.model import State
from jobs.planner import JobRequest
from jobs.station import Station
from jobs.store import fleet, line, work
from jobs.tables import JobRow
from jobs.worker import worker_name
from workers.errands import marker_prefix
from workers.processes import marker_of

ROOT = Path(__file__).parents[2]
JOBS, WORKERS = 300, 6
SELF_KILLERS = 4
CLOCK_FAULTS = (0, -240, 180, -90, 300, -30)
"""Seconds by which each worker's clock is wrong; the sweeper's is wrong by SWEEPER_FAULT."""

SWEEPER_FAULT = 240
LEASE_SECONDS = 8.0
MOST_LOSSES = 3


@dataclass
class Hand:
    """One process that is started again when it dies, as a service manager does."""

    role: str
    settings: Settings
    fault_seconds: int
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    @property
    def name(self) -> str:
        return worker_name(self.settings, "build")

    def start(self) -> None:
        self.starts += 1
        self.settings.prepare()
        with (self.settings.logs / "out.log").open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.stress_hand", self.role, str(self.fault_seconds)],
                cwd=ROOT,
                env={**os.environ, **self._environment()},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def _environment(self) -> dict[str, str]:
        names = ("home", "database_url", "broker_url", "sandbox", "heartbeat_seconds")
        names += ("lease_seconds", "control_seconds", "sweep_seconds", "drain_seconds")
        values = {f"FORKSCOUT_{n.upper()}": str(getattr(self.settings, n)) for n in names}
        return {**values, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}

    def pool(self) -> list[psutil.Process]:
        """The pool processes that run jobs; steps of jobs are no Python of ours."""
        assert self.process is not None
        try:
            below = psutil.Process(self.process.pid).children()
            return [each for each in below if marker_of(each.pid) is None]
        except psutil.NoSuchProcess:
            return []


@dataclass
class Seen:
    """What was done to whom, as seen from outside."""

    killed: set[tuple[int, int]] = field(default_factory=set)
    stopped: set[tuple[int, int]] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)


class Storm:
    """All that goes wrong, in an order that a seed decides."""

    def __init__(self, database: Engine, broker: Broker, folder: Path, *, seed: int) -> None:
        self.database, self.broker, self.folder = database, broker, folder
        self.dice = random.Random(seed)
        self.seen = Seen()
        self.begun = folder / "begun"
        self.begun.mkdir()
        self.frozen: list[tuple[float, list[psutil.Process]]] = []
        self.hands = [self._hand("worker", n, fault) for n, fault in enumerate(CLOCK_FAULTS)]
        self.sweeper = self._hand("sweeper", WORKERS, SWEEPER_FAULT)
        self.app = queue.make_app(self.hands[0].settings)
        with db.writing(database) as session:
            session.execute(text("create table outcome (job integer, fence integer)"))

    def _hand(self, role: str, number: int, fault_seconds: int) -> Hand:
        settings = Settings(
            home=self.folder / f"h{number}",
            database_url=self.database.url.render_as_string(hide_password=False),
            broker_url=self.broker.url,
            sandbox="none",
            heartbeat_seconds=1.0,
            lease_seconds=LEASE_SECONDS,
            control_seconds=0.3,
            sweep_seconds=1.0,
            drain_seconds=20.0,
        )
        return Hand(role, settings, fault_seconds)

    def requests(self) -> Iterator[JobRequest]:
        """Single jobs, chains of two, and some that kill their worker each time they run."""
        before = ""
        for number in range(JOBS):
            payload = {
                "begun": str(self.begun),
                "kills": number % (JOBS // SELF_KILLERS) == 8,
                "seconds": round(self.dice.uniform(0.1, 0.9), 2),
            }
            follows = number % 5 == 4
            wish = request(f"job {number}", payload=payload, needs=(before,) if follows else ())
            before = wish.identity
            yield wish

    def run(self, *, seconds: float) -> None:
        """Queue everything bit by bit, let the storm go on for `seconds`, then wait it out."""
        for hand in (*self.hands, self.sweeper):
            hand.start()
        wait_for(self._all_greeted, seconds=120, what="six workers")
        wishes = list(self.requests())
        storm_ends = time.monotonic() + seconds
        blows = (self.kill_worker, self.kill_pool, self.kill_pool, self.freeze, self.flush)
        blows += (self.restart_broker, self.cut_database, self.ring_too_often, self.ring_late)
        while time.monotonic() < storm_ends or wishes:
            batch, wishes = wishes[:20], wishes[20:]
            if batch:
                self._put(batch)
            blow = self.dice.choice(blows)
            blow()
            self.seen.done[blow.__name__] += 1
            self._thaw()
            self._start_the_dead()
            time.sleep(self.dice.uniform(0.1, 0.5))
        self._thaw(everything=True)

    def _all_greeted(self) -> bool:
        with db.reading(self.database) as session:
            return len(fleet.workers(session)) == WORKERS

    def _put(self, batch: list[JobRequest]) -> None:
        with db.writing(self.database) as session:
            work.enqueue(session, batch, db.database_now(session))

    def _start_the_dead(self) -> None:
        for hand in (*self.hands, self.sweeper):
            if hand.process is not None and hand.process.poll() is not None:
                hand.start()

    def _held_by(self, hand: Hand) -> set[tuple[int, int]]:
        with db.reading(self.database) as session:
            query = select(JobRow.id, JobRow.fence).where(
                line_held(), JobRow.leased_by == hand.name
            )
            return {(number or 0, fence) for number, fence in session.exec(query)}

    def _victim(self) -> Hand:
        """Somebody who works, where somebody does."""
        busy = [hand for hand in self.hands if self._held_by(hand)]
        return self.dice.choice(busy or self.hands)

    def kill_worker(self) -> None:
        """SIGKILL for a whole worker; the kernel ends its pool."""
        hand = self._victim()
        assert hand.process is not None
        pool = hand.pool()
        hand.process.kill()
        hand.process.wait()
        psutil.wait_procs(pool, timeout=10)
        self.seen.killed |= self._held_by(hand)

    def kill_pool(self) -> None:
        """SIGKILL for the process that runs the job; its worker lives on."""
        hand = self._victim()
        pool = hand.pool()
        for process in pool:
            process.kill()
        psutil.wait_procs(pool, timeout=0.2)
        if pool:
            self.seen.stopped |= self._held_by(hand)

    def freeze(self) -> None:
        """A worker stands still for longer than its lease, then goes on as if nothing was."""
        hand = self._victim()
        pool = hand.pool()
        for process in pool:
            process.suspend()
        self.seen.stopped |= self._held_by(hand)
        if not self._can_write():
            self._resume(pool)
            self.seen.stopped |= {held for each in self.hands for held in self._held_by(each)}
            return
        thaws_at = time.monotonic() + self.dice.choice([0.5, LEASE_SECONDS + 2])
        self.frozen.append((thaws_at, pool))

    def _thaw(self, *, everything: bool = False) -> None:
        for frozen in list(self.frozen):
            if everything or frozen[0] < time.monotonic():
                self._resume(frozen[1])
                self.frozen.remove(frozen)

    def _resume(self, pool: list[psutil.Process]) -> None:
        for process in pool:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def _can_write(self) -> bool:
        """Whether nobody was stopped with the database in hand, which stops all the others."""
        tried = threading.Thread(target=self._write, daemon=True)
        tried.start()
        tried.join(1.0)
        return not tried.is_alive()

    def _write(self) -> None:
        with contextlib.suppress(DBAPIError), db.writing(self.database) as session:
            work.take_turn(session)

    def flush(self) -> None:
        """The broker forgets everything."""
        try:
            self.broker.flush()
        except RedisError:
            self.broker.start()

    def restart_broker(self) -> None:
        """The broker dies and comes back empty."""
        self.broker.kill()
        time.sleep(self.dice.uniform(0.1, 1.5))
        self.broker.start()

    def cut_database(self) -> None:
        """Every connection ends at once; or, where there are none, a writer holds the lock."""
        if self.database.dialect.name == "postgresql":
            with db.writing(self.database) as session:
                session.execute(
                    text(
                        "select pg_terminate_backend(pid) from pg_stat_activity "
                        "where datname = current_database() and pid <> pg_backend_pid()"
                    )
                )
            return
        with db.writing(self.database):
            time.sleep(self.dice.uniform(0.5, 3.0))

    def ring_too_often(self) -> None:
        """The same message ten times."""
        for _ in range(10):
            queue.ring(self.app, "build")

    def ring_late(self) -> None:
        """Messages that arrive long after what they told of."""
        for delay in (0.5, 2, 5):
            try:
                self.app.send_task(
                    "workers.look", args=("build",), queue="build", countdown=delay, retry=False
                )
            except (OperationalError, RedisError):
                return

    def wait_it_out(self, *, seconds: float) -> None:
        """The storm is over: what is left runs to its end."""
        deadline = time.monotonic() + seconds
        while self.live():
            assert time.monotonic() < deadline, f"not settled: {self.counts()}"
            self._start_the_dead()
            time.sleep(0.3)

    def live(self) -> int:
        """Jobs that can still move by themselves, or wait for one that can."""
        with db.reading(self.database) as session:
            states = work.count_by_state(session)
            waiting = line.due_in(session, "build", db.database_now(session), most=1)
        moving = (State.QUEUED, State.LEASED, State.RUNNING)
        return waiting + sum(states.get(state, 0) for state in moving)

    def counts(self) -> dict[State, int]:
        with db.reading(self.database) as session:
            return work.count_by_state(session)

    def stop(self) -> None:
        """Ask all to end, and end those that do not."""
        self._thaw(everything=True)
        hands = [h.process for h in (*self.hands, self.sweeper) if h.process is not None]
        for process in hands:
            process.send_signal(signal.SIGTERM)
        for process in hands:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.app.close()

    def survivors(self) -> int:
        """Processes of jobs that are still there."""
        begins = [self._prefix(hand) for hand in self.hands]
        markers = [marker_of(pid) or "" for pid in psutil.pids()]
        return sum(any(marker.startswith(each) for each in begins) for marker in markers)

    def _prefix(self, hand: Hand) -> str:
        return marker_prefix(Station(hand.settings, self.database, self.app, hand.name))


def line_held():
    return text("state in ('leased', 'running')")


def tally(storm: Storm) -> dict[str, int]:
    """What must be nought at the end, and how much happened on the way."""
    with db.reading(storm.database) as session:
        rows = {row.id or 0: row for row in session.exec(select(JobRow))}
        attempts = list(session.exec(select(AttemptRow)))
        outcomes = Counter(job for (job,) in session.execute(text("select job from outcome")))
        fences = list(session.execute(text("select job, fence from outcome")))
    begun = {tuple(int(n) for n in each.name.split(".")) for each in storm.begun.iterdir()}
    lost = {(a.job_id, a.fence) for a in attempts if a.failure_class == "worker_lost"}
    counted = Counter(a.job_id for a in attempts)
    explained = storm.seen.killed | storm.seen.stopped | self_killed(rows, begun)
    succeeded = {n for n, row in rows.items() if row.state == State.SUCCEEDED}
    return {
        "jobs": len(rows),
        "succeeded": len(succeeded),
        "dead letters": sum(row.state == State.DEAD for row in rows.values()),
        "waiting for a dead letter": sum(row.state == State.BLOCKED for row in rows.values()),
        "attempts": len(attempts),
        "attempts lost": len(lost),
        "attempts failed": sum(
            a.outcome != State.SUCCEEDED and (a.job_id, a.fence) not in lost for a in attempts
        ),
        "lost, no worker was touched, never begun": len(lost - explained - begun),
        "worker starts": sum(hand.starts for hand in storm.hands),
        **{f"storm: {name.replace('_', ' ')}": n for name, n in sorted(storm.seen.done.items())},
        "LOST JOBS": len(rows)
        - len(succeeded)
        - sum(row.state in (State.DEAD, State.BLOCKED) for row in rows.values()),
        "FINISHED TWICE": sum(n > 1 for n in outcomes.values()),
        "SUCCEEDED WITHOUT RESULT": sum(outcomes[n] != 1 for n in succeeded),
        "STALE RESULTS TAKEN": sum(
            rows[job].fence != fence or job not in succeeded for job, fence in fences
        ),
        "ATTEMPTS MISCOUNTED": sum(
            row.fence != counted[n] or row.attempts != counted[n] for n, row in rows.items()
        ),
        "KILLS WITHOUT TRACE": len(storm.seen.killed - {(a.job_id, a.fence) for a in attempts}),
        "LOST WITHOUT CAUSE": len((lost & begun) - explained),
        "DEAD TOO EARLY": sum(
            row.state == State.DEAD and row.attempts != MOST_LOSSES for row in rows.values()
        ),
        "SURVIVING PROCESSES": storm.survivors(),
    }


def self_killed(rows: dict[int, JobRow], begun: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {(job, fence) for job, fence in begun if rows[job].payload["kills"]}
