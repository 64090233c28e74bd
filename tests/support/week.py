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


@dataclass(frozen=True, order=True)
class Moment:
    """Something that happens: a wish comes in, or a worker ends what it holds."""

    at: datetime
    number: int
    what: str
    lease: leases.Lease | None = None


class Week:
    """One builder and one GPU, each with one worker; durations and arrivals come from dice."""

    def __init__(self, place: Path, *, dice: random.Random) -> None:
        db.migrate(f"sqlite:///{place}")
        self.engine = db.connect(f"sqlite:///{place}")
        self.dice = dice
        self.now = NOW
        self.idle = {GPU: True, BUILDER: True}
        self.seconds = {"worked": 0.0, "a bench was due": 0.0, "a build came first": 0.0}
        self.seconds["nothing to do"] = 0.0
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
        while self.coming and self.coming[0].at < self._end:
            moment = heapq.heappop(self.coming)
            with db.writing(self.engine) as session:
                self._pass_time(session, moment.at)
                if moment.lease is not None:
                    leases.succeed(session, moment.lease, self.now)
                    self.idle[moment.what] = True
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
            yield f"one GPU, {DAYS} simulated days, {dict(tuple(row) for row in ended)} jobs ended"
        total = sum(self.seconds.values())
        for says, seconds in self.seconds.items():
            yield f"  {says:<20}{seconds / 3600:8.2f} h {seconds / total:8.2%}"
        waits, built = self.seconds["a bench was due"], self.seconds["a build came first"]
        busy = self.seconds["worked"]
        yield f"  idle while a bench was due: {waits / (waits + busy):.2%} of that and of work"
        yield f"  the builds before it counted too: {(waits + built) / (waits + built + busy):.2%}"
        self.engine.dispose()

    def _pass_time(self, session: Session, at: datetime) -> None:
        queue = f"queue = '{GPU}'"
        if not self.idle[GPU]:
            why = "worked"
        elif _any(session, f"{queue} and {IN_LINE}"):
            why = "a bench was due"
        elif _any(session, f"{queue} and {BLOCKED}"):
            why = "a build came first"
        else:
            why = "nothing to do"
        self.seconds[why] += (at - self.now).total_seconds()
        self.now = at

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
        work.enqueue(session, [first, *benches], self.now)

    def _pick_up(self, session: Session) -> None:
        for queue in (GPU, BUILDER):
            held = leases.lease(session, queue, queue, self.now) if self.idle[queue] else None
            if held is not None:
                leases.start(session, held, self.now)
                self.idle[queue] = False
                ends = self.now + timedelta(minutes=self._minutes(held))
                self._add(ends, queue, held)

    def _minutes(self, held: leases.Lease) -> float:
        what = str(held.payload["what"])
        if what in BENCH_MINUTES:
            return self.dice.uniform(*BENCH_MINUTES[what])
        return self.dice.uniform(*(FETCH_MINUTES if what == Kind.FETCH_MODEL else BUILD_MINUTES))


def _any(session: Session, condition: str) -> bool:
    return session.exec(select(JobRow.id).where(text(condition)).limit(1)).first() is not None
