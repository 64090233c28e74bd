"""A week of one GPU in simulated time over the real queue: what it waits for, and how long."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import text
from sqlmodel import Session, select
from support.work import NOW, request

from jobs import db
from jobs.model import Kind, Lane
from jobs.store import leases, work
from jobs.tables import BLOCKED, IN_LINE, JobRow

DAYS = 7
PER_DAY = {"upstream": 15.0, "buun": 2.0, "tq": 1.0, "bee": 1 / 14}
"""Commits or pushes in a day; upstream and bee as counted in 2026, the other two are guesses."""

MODELS_PER_DAY = 0.5
BUILD_MINUTES, FETCH_MINUTES = (6.0, 25.0), (3.0, 15.0)
BENCH_MINUTES = {"decode-800": (8.0, 14.0), "ladder": (20.0, 45.0)}
HANDOVER_SECONDS = 1.0
"""From the doorbell to the lease, at worst; see the goal for 100,000 rows."""

GPU, BUILDER = "bench.gpu", "build"


@dataclass(frozen=True)
class Shape:
    """What differs between weeks: builders, how long a build takes, benches that are never late."""

    says: str = "one builder"
    builders: int = 1
    build_minutes: tuple[float, float] = BUILD_MINUTES
    backfill: int = 0


SHAPES = (
    Shape(),
    Shape("two builders", builders=2),
    Shape("builds ten times shorter", build_minutes=(0.6, 2.5)),
    Shape("60 benches of backfill", backfill=60),
    Shape("backfill without end", backfill=400),
)
WORKED, DUE, NOTHING = "worked", "a bench was due", "nothing to do"
TOO_LATE, TOO_SOON = "its build came late", "no build could be ready"


@dataclass(frozen=True, order=True)
class Moment:
    """Something that happens: a wish comes in, or a worker ends what it holds."""

    at: datetime
    number: int
    what: str
    lease: leases.Lease | None = None


class Week:
    """Builders and one GPU, each with one worker; durations and arrivals come from dice.

    A build came late where the GPU idles and one that was started when its commit was known would
    be ready by now: only that is lost to building. Before, no order of builds could have helped.
    """

    def __init__(self, place: Path, *, dice: random.Random, shape: Shape = SHAPES[0]) -> None:
        db.migrate(f"sqlite:///{place}")
        self.engine = db.connect(f"sqlite:///{place}")
        self.dice = dice
        self.now = NOW
        self.shape = shape
        self.idle = {GPU: 1, BUILDER: shape.builders}
        self.seconds = dict.fromkeys((WORKED, DUE, TOO_LATE, TOO_SOON, NOTHING), 0.0)
        self.minutes: dict[int, float] = {}
        self.ready: dict[int, datetime] = {}
        self.coming: list[Moment] = []
        self.count = 0

    def _add(self, at: datetime, what: str, lease: leases.Lease | None = None) -> None:
        self.count += 1
        heapq.heappush(self.coming, Moment(at, self.count, what, lease))

    def _arrivals(self) -> None:
        for name, rate in {**PER_DAY, "model": MODELS_PER_DAY}.items():
            at = NOW
            while (at := at + timedelta(days=self.dice.expovariate(rate))) < self._end:
                self._add(at, name)

    @property
    def _end(self) -> datetime:
        return NOW + timedelta(days=DAYS)

    def run(self) -> Iterator[str]:
        """Live through the week; what became of each second of the GPU."""
        self._arrivals()
        with db.writing(self.engine) as session:
            self._backfill(session)
        while self.coming and self.coming[0].at < self._end:
            moment = heapq.heappop(self.coming)
            with db.writing(self.engine) as session:
                self._pass_time(session, moment.at)
                if moment.lease is not None:
                    leases.succeed(session, moment.lease, self.now)
                    self.ready.pop(moment.lease.job_id, None)
                    self.idle[moment.what] += 1
                elif moment.what == "pick up":
                    self._pick_up(session)
                else:
                    self._wish(session, moment.what)
            if moment.what != "pick up":
                self._add(self.now + timedelta(seconds=HANDOVER_SECONDS), "pick up")
        with db.reading(self.engine) as session:
            ended = session.execute(
                text("select queue, count(*) from job where state = 'succeeded' group by queue")
            )
            said = dict(tuple(row) for row in ended)
            fresh = _waits_of_fresh(session)
            yield f"one GPU, {self.shape.says}, {DAYS} simulated days, {said} jobs ended"
        total = sum(self.seconds.values())
        for says, seconds in self.seconds.items():
            yield f"  {says:<24}{seconds / 3600:8.2f} h {seconds / total:8.2%}"
        busy, waits, late = (self.seconds[each] for each in (WORKED, DUE, TOO_LATE))
        every = waits + late + self.seconds[TOO_SOON]
        yield f"  idle while a bench was due: {waits / (waits + busy):.2%} of that and of work"
        yield f"  lost to building: {late / (late + busy):.2%} of that and of work"
        yield f"  all that it waited for a build: {every / (every + busy):.2%}"
        yield f"  from a commit to its first bench: {fresh} minutes (median, 95 %)"
        self.engine.dispose()

    def _pass_time(self, session: Session, at: datetime) -> None:
        queue = f"queue = '{GPU}'"
        why = NOTHING
        if not self.idle[GPU]:
            why = WORKED
        elif _any(session, f"{queue} and {IN_LINE}"):
            why = DUE
        elif _any(session, f"{queue} and {BLOCKED}"):
            why = TOO_SOON
            late = min(max((at - min(self.ready.values())).total_seconds(), 0.0), self._until(at))
            self.seconds[TOO_LATE] += late
            self.seconds[TOO_SOON] -= late
        self.seconds[why] += self._until(at)
        self.now = at

    def _until(self, at: datetime) -> float:
        return (at - self.now).total_seconds()

    def _backfill(self, session: Session) -> None:
        """Benches whose builds are there, which give way to all others."""
        asked = [
            request(
                f"backfill {number}",
                queue=GPU,
                payload={"what": self.dice.choice(list(BENCH_MINUTES))},
                lane=Lane.BACKFILL,
            )
            for number in range(self.shape.backfill)
        ]
        work.enqueue(session, asked, self.now)

    def _wish(self, session: Session, what: str) -> None:
        name = f"{what} {self.count} {self.now:%d %H:%M:%S.%f}"
        kind = Kind.FETCH_MODEL if what == "model" else Kind.SMOKE
        first = request(f"prepare {name}", kind=Kind.SMOKE, payload={"what": kind.value})
        benches = [
            request(
                f"{scenario} of {name}",
                queue=GPU,
                payload={"what": scenario},
                needs=(first.identity,),
                lane=Lane.FRESH,
                source=f"engine:{what}",
            )
            for scenario in BENCH_MINUTES
        ]
        found = work.enqueue(session, [first, *benches], self.now)
        prepares = found[first.identity]
        assert prepares is not None
        number = prepares.id or 0
        minutes = FETCH_MINUTES if what == "model" else self.shape.build_minutes
        self.minutes[number] = self.dice.uniform(*minutes)
        self.ready[number] = self.now + timedelta(minutes=self.minutes[number])

    def _pick_up(self, session: Session) -> None:
        for queue in (GPU, *([BUILDER] * self.shape.builders)):
            name = f"{queue}-{self.idle[queue]}"
            held = leases.lease(session, queue, name, self.now) if self.idle[queue] else None
            if held is not None:
                leases.start(session, held, self.now)
                self.idle[queue] -= 1
                ends = self.now + timedelta(minutes=self._minutes(held))
                self._add(ends, queue, held)

    def _minutes(self, held: leases.Lease) -> float:
        what = str(held.payload["what"])
        if what in BENCH_MINUTES:
            return self.dice.uniform(*BENCH_MINUTES[what])
        return self.minutes[held.job_id]


def _waits_of_fresh(session: Session) -> str:
    query = select(JobRow).where(JobRow.queue == GPU, JobRow.lane == int(Lane.FRESH))
    rows = [row for row in session.exec(query) if row.started_at is not None]
    waits = sorted(
        (row.started_at - row.created_at).total_seconds() / 60
        for row in rows
        if row.started_at and row.payload["what"] == next(iter(BENCH_MINUTES))
    )
    return f"{waits[len(waits) // 2]:.0f}, {waits[len(waits) * 95 // 100]:.0f}"


def _any(session: Session, condition: str) -> bool:
    return session.exec(select(JobRow.id).where(text(condition)).limit(1)).first() is not None
