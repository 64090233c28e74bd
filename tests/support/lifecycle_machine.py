"""What can happen to jobs, in any order, over the real queries; and what must hold after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import Engine
from sqlmodel import Session, col, select
from support.work import NOW, request

from jobs import db
from jobs.errors import JobFailure, Permanent, StaleLease, UsageError
from jobs.lifecycle import HELD, LIVE, MOVES, NO_SANDBOX
from jobs.line_tables import AttemptRow
from jobs.model import Blame, Kind, Lane, State
from jobs.planner import digest
from jobs.store import fleet, leases, needs, superseding, upkeep, work
from jobs.store.leases import Lease
from jobs.tables import JobNeedRow, JobRow, WorkerRow

LIMIT = 3
SILENCE = timedelta(seconds=45)
WORKERS = ("w1", "w2", "w3")
ENDED_WELL = (State.SUCCEEDED,)

titles = st.integers(0, 5)
picks = st.integers(0, 40)


class Jobs(RuleBasedStateMachine):
    """`engine` is set by the test; `now` is the only clock."""

    engine: Engine

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.held: list[Lease] = []
        self.fences: dict[int, int] = {}

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        with db.writing(self.engine) as session:
            yield session

    @initialize()
    def greet(self) -> None:
        with self._writing() as session:
            for name in WORKERS:
                row = WorkerRow(
                    name=name, queue="build", host="h", pid=1, started_at=NOW, beat_at=NOW
                )
                fleet.greet(session, row)

    @rule(seconds=st.sampled_from([1, 10, 44, 46, 3600, 90_000, -300]))
    def time_passes(self, seconds: int) -> None:
        """Also backwards: the database's clock can be set."""
        self.now += timedelta(seconds=seconds)

    @rule(
        number=titles,
        before=st.sets(titles, max_size=2),
        after=st.sets(titles, max_size=1),
        lane=st.sampled_from(list(Lane)),
        lasts=st.none() | st.integers(60, 7200),
    )
    def enqueue(
        self, number: int, before: set[int], after: set[int], lane: Lane, lasts: int | None
    ) -> None:
        first, stage = ({each for each in some if each < number} for some in (before, after))
        wishes = [self._wish(each, lane) for each in sorted(first | stage)]
        wishes.append(
            self._wish(
                number,
                lane,
                needs=tuple(digest(f"q{each}") for each in sorted(first)),
                after=tuple(digest(f"q{each}") for each in sorted(stage - first)),
                expires_at=None if lasts is None else self.now + timedelta(seconds=lasts),
            )
        )
        with self._writing() as session:
            work.enqueue(session, wishes, self.now)

    def _wish(self, number: int, lane: Lane, **fields: object):
        payload = {"revision_id": number % 3}
        return request(f"q{number}", kind=Kind.BENCH, payload=payload, lane=lane, **fields)

    @rule(worker=st.sampled_from(WORKERS))
    def lease(self, worker: str) -> None:
        with self._writing() as session:
            if fleet.is_draining(session, worker):
                return
            found = leases.lease(session, "build", worker, self.now)
            if found is None:
                return
            assert needs_succeeded(session, found.job_id)
            assert found.fence > self.fences.get(found.job_id, 0)
        self.held.append(found)

    @precondition(lambda self: self.held)
    @rule(pick=picks, how=st.sampled_from(["start", "beat", "succeed", "cancelled", "release"]))
    def write(self, pick: int, how: str) -> None:
        """A holder writes; what it writes counts exactly if its lease is the newest and alive."""
        held = self.held[pick % len(self.held)]
        act = {
            "start": lambda it: leases.start(it, held, self.now),
            "beat": lambda it: leases.beat(it, held, self.now, {}),
            "succeed": lambda it: leases.succeed(it, held, self.now),
            "cancelled": lambda it: leases.cancelled(it, held, self.now),
            "release": lambda it: leases.release(it, held, self.now, "given back"),
        }[how]
        self._guarded(held, act, unstarted_fails=how == "succeed")

    @precondition(lambda self: self.held)
    @rule(
        pick=picks,
        blame=st.sampled_from(list(Blame)),
        failure_class=st.sampled_from(["odd", NO_SANDBOX]),
    )
    def fail(self, pick: int, blame: Blame, failure_class: str) -> None:
        held = self.held[pick % len(self.held)]
        failure = JobFailure("broke", failure_class=failure_class, blame=blame)
        self._guarded(held, lambda it: leases.fail(it, held, failure, self.now, limit=LIMIT))

    def _guarded(self, held: Lease, act, *, unstarted_fails: bool = False) -> None:
        with db.reading(self.engine) as session:
            row = work.job(session, held.job_id)
        good = row.fence == held.fence and State(row.state) in HELD
        refused = StaleLease if not good else Permanent
        if good and not (unstarted_fails and row.state == State.LEASED):
            with self._writing() as session:
                act(session)
            return
        with pytest.raises(refused), self._writing() as session:
            act(session)
        with db.reading(self.engine) as session:
            assert work.job(session, held.job_id).model_dump() == row.model_dump()

    @rule(pick=picks, what=st.sampled_from([work.cancel, work.retry]))
    def people_change_their_minds(self, pick: int, what) -> None:
        with db.reading(self.engine) as session:
            numbers = list(session.exec(select(JobRow.id).order_by(col(JobRow.id))))
        if not numbers:
            return
        try:
            with self._writing() as session:
                what(session, numbers[pick % len(numbers)], self.now)
        except (UsageError, Permanent):
            return

    @rule(revision=st.integers(0, 2))
    def supersede(self, revision: int) -> None:
        with self._writing() as session:
            work.take_turn(session)
            ended = superseding.supersede(session, revision, self.now, message="newer")
            assert all(row.lane != Lane.ON_DEMAND for row in ended)

    @rule()
    def expire(self) -> None:
        with self._writing() as session:
            upkeep.expire(session, self.now)

    @rule()
    def age(self) -> None:
        with self._writing() as session:
            upkeep.age(session, self.now)

    @rule()
    def reap(self) -> None:
        with self._writing() as session:
            leases.reap(session, self.now, silence=SILENCE, limit=LIMIT)

    @rule(worker=st.sampled_from(WORKERS))
    def worker_is_born_again(self, worker: str) -> None:
        with self._writing() as session:
            leases.take_back(session, worker, self.now, limit=LIMIT)
            fleet.drain(session, worker, draining=False)

    @rule(worker=st.sampled_from(WORKERS))
    def drain(self, worker: str) -> None:
        with self._writing() as session:
            fleet.drain(session, worker)
        for held in self.held:
            with db.reading(self.engine) as session:
                row = work.job(session, held.job_id)
                orders = leases.orders(session, held, worker)
            if row.fence == held.fence and State(row.state) in HELD and row.leased_by == worker:
                assert orders.stop in ("draining", "cancelled")

    @rule()
    def cage_is_proven(self) -> None:
        with self._writing() as session:
            work.unblock(session, NO_SANDBOX, "build")

    @invariant()
    def what_must_hold(self) -> None:
        with db.reading(self.engine) as session:
            rows = list(session.exec(select(JobRow)))
            live = Counter(row.identity for row in rows if State(row.state) in LIVE)
            assert max(live.values(), default=0) <= 1, "a question is live twice"
            attempts = Counter(session.exec(select(AttemptRow.job_id)))
            for row in rows:
                check(session, row, attempts[row.id or 0])
                assert row.fence >= self.fences.get(row.id or 0, 0), "a fence fell"
                self.fences[row.id or 0] = row.fence

    def teardown(self) -> None:
        """Nothing is without an exit: with time, workers and people's retries, all comes to one."""
        for _ in range(60):
            if not self._push_on():
                return
        raise AssertionError("some job never ends")

    def _push_on(self) -> bool:
        self.now += timedelta(hours=2)
        with self._writing() as session:
            leases.reap(session, self.now, silence=SILENCE, limit=LIMIT)
            work.unblock(session, NO_SANDBOX, "build")
            upkeep.expire(session, self.now)
            while held := leases.lease(session, "build", "w9", self.now):
                leases.start(session, held, self.now)
                leases.succeed(session, held, self.now)
            left = session.exec(select(JobRow).where(col(JobRow.state).in_(sorted(LIVE)))).all()
            for row in left:
                if row.state == State.BLOCKED:
                    work.retry(session, row.id or 0, self.now)
            return bool(left)


def needs_succeeded(session: Session, job_id: int) -> bool:
    """Whether all that this job needs, and not only comes after, has succeeded."""
    query = select(JobRow.state).join(JobNeedRow, col(JobNeedRow.needs_id) == col(JobRow.id))
    mine = query.where(JobNeedRow.job_id == job_id, col(JobNeedRow.settled).is_(False))
    return all(state == State.SUCCEEDED for state in session.exec(mine))


def check(session: Session, row: JobRow, attempts: int) -> None:
    """What must hold of one row, whatever happened."""
    number, state = row.id or 0, State(row.state)
    assert (state in HELD) == (row.leased_by is not None) == (row.beat_at is not None)
    assert (state in LIVE) == (row.finished_at is None)
    assert row.attempts <= LIMIT, "tried too often"
    assert row.attempts <= row.fence
    assert row.fence == attempts + (state in HELD), "an attempt left no trace"
    assert not row.cancel_requested or state in HELD or state not in LIVE, "a cancel was forgotten"
    assert MOVES[state] or state is State.SUCCEEDED, "a state without an exit"
    if state is State.BLOCKED:
        by_job = (row.blocked_by or "").startswith("job:")
        assert by_job or row.blocked_by == NO_SANDBOX, "blocked by nothing"
        assert by_job == bool(needs.open_needs(session, number)), "waits for nothing"
    else:
        assert row.blocked_by is None
    if state in LIVE and state is not State.BLOCKED:
        assert needs_succeeded(session, number), "freed too early"
