"""Many processes change the same rows at once: nothing is done twice, nothing waits for ever."""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections import Counter
from typing import Any

from sqlalchemy import Engine
from sqlmodel import select
from support.rows import Rows
from support.work import request

from jobs import clock, db, resolving
from jobs.errors import ScoutError
from jobs.model import State
from jobs.store import leases, needs, work
from jobs.tables import JobRow, RevisionRow

QUEUES = ("build", "bench.cpu")


def _leased(engine: Engine, queue: str, worker: str) -> leases.Lease | None:
    with db.writing(engine) as session:
        held = leases.lease(session, queue, worker, clock.now())
        if held is not None:
            leases.start(session, held, clock.now())
    return held


def _chain(name: str) -> list[Any]:
    fetch, build = request(f"fetch {name}"), request(f"build {name}")
    needs = (fetch.identity, build.identity)
    return [fetch, build, request(f"bench {name}", queue="bench.cpu", needs=needs)]


def _submit(engine: Engine, times: int, _dice: random.Random) -> None:
    for number in range(times):
        with db.writing(engine) as session:
            work.enqueue(session, _chain(str(number % 4)), clock.now())


def _work(engine: Engine, times: int, dice: random.Random) -> None:
    for _ in range(times):
        held = _leased(engine, dice.choice(QUEUES), f"worker-{dice.random()}")
        if held is not None:
            try:
                with db.writing(engine) as session:
                    leases.check(session, held)
                    leases.succeed(session, held, clock.now())
            except ScoutError:
                continue


def _fiddle(engine: Engine, times: int, dice: random.Random) -> None:
    for _ in range(times):
        with db.reading(engine) as session:
            numbers = [job.id or 0 for job in work.jobs(session, limit=20)]
        if numbers:
            try:
                with db.writing(engine) as session:
                    dice.choice([work.cancel, work.retry])(
                        session, dice.choice(numbers), clock.now()
                    )
            except ScoutError:
                continue


def _hands(url: str, what: str, times: int, seed: int, faults: Any) -> None:
    engine = db.connect(url)
    try:
        {"submit": _submit, "work": _work, "fiddle": _fiddle}[what](
            engine, times, random.Random(seed)
        )
    except Exception as fault:
        faults.put(f"{what}: {fault!r}")


def test_a_storm_of_submits_cancels_retries_and_workers_breaks_nothing(
    database: Engine, database_url: str
) -> None:
    """No process fails, no question is live twice, no job waits for what has succeeded."""
    spawn = multiprocessing.get_context("spawn")
    faults = spawn.SimpleQueue()
    plan = [("submit", 20), ("submit", 20), ("work", 60), ("work", 60), ("fiddle", 30)]
    hands = [
        spawn.Process(target=_hands, args=(database_url, what, times, seed, faults))
        for seed, (what, times) in enumerate(plan)
    ]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join(120)
    assert faults.empty(), faults.get()
    assert [hand.exitcode for hand in hands] == [0] * len(hands)
    with db.reading(database) as session:
        rows = session.exec(select(JobRow)).all()
        live = Counter(row.identity for row in rows if row.state in work.LIVE)
        assert max(live.values(), default=0) <= 1
        for row in rows:
            if row.state == State.BLOCKED:
                states = {need.state for need in needs.needs_of(session, row.id or 0)}
                assert states != {State.SUCCEEDED}, f"job {row.id} waits for nothing"


def _in_a_thread(function: Any) -> threading.Thread:
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_two_needs_that_end_in_the_same_moment_free_what_waits_for_both(database: Engine) -> None:
    """The second to end sees the first as ended, whichever that is."""
    wanted = _chain("x")
    with db.writing(database) as session:
        bench = work.enqueue(session, wanted, clock.now())[wanted[2].identity]
    first, second = (_leased(database, "build", worker) for worker in ("one", "two"))
    assert first is not None
    assert second is not None

    def end_second() -> None:
        with db.writing(database) as session:
            leases.succeed(session, second, clock.now())

    with db.writing(database) as session:
        leases.succeed(session, first, clock.now())
        thread = _in_a_thread(end_second)
        thread.join(0.3)
    thread.join(30)
    with db.reading(database) as session:
        assert work.job(session, bench.id).state == State.QUEUED


def test_who_asks_while_the_need_ends_does_not_wait_for_ever(database: Engine) -> None:
    """A bench submitted while its build ends is either told to wait in time, or need not."""
    fetch, build, bench = _chain("x")
    with db.writing(database) as session:
        work.enqueue(session, [build], clock.now())
    held = _leased(database, "build", "one")
    assert held is not None

    def end() -> None:
        with db.writing(database) as session:
            leases.succeed(session, held, clock.now())

    with db.writing(database) as session:
        found = work.enqueue(session, [build, bench], clock.now())
        thread = _in_a_thread(end)
        thread.join(0.3)
    thread.join(30)
    with db.reading(database) as session:
        assert work.job(session, found[bench.identity].id).state == State.QUEUED
    assert fetch.identity not in found


def test_a_new_revision_asked_for_twice_at_once_is_stored_once(database: Engine) -> None:
    """Two people who ask for the same commit in the same moment get the same row."""
    with db.writing(database) as session:
        engine = Rows(session).engine()

    def revision() -> RevisionRow:
        now = clock.now()
        return RevisionRow(
            engine_id=engine.id, commit="a" * 40, label="main", order_key="1", first_seen_at=now
        )

    numbers = []

    def store() -> None:
        with db.writing(database) as session:
            numbers.append(resolving.stored(session, engine, revision()).id)

    with db.writing(database) as session:
        numbers.append(resolving.stored(session, engine, revision()).id)
        thread = _in_a_thread(store)
        thread.join(0.3)
    thread.join(30)
    assert len(numbers) == 2
    assert len(set(numbers)) == 1
