"""Where a fetch runs so that its bench finds the file, and where weights stand; both databases."""

from __future__ import annotations

import pytest
from support.rows import NOON, Rows, digest

from jobs import db, planner
from jobs.errors import JobFailure
from jobs.model import Blame, Lane
from jobs.planner import Weights
from jobs.store import fetch_places, leases, weight_standings, work
from jobs.store.fetch_places import say_store
from jobs.store.weight_standings import ABSENT, Stands
from jobs.tables import StoredWeightRow

HERE, THERE = "1" * 32, "2" * 32


@pytest.fixture
def session(database):
    with db.writing(database) as session:
        yield session


def taken(session, queue):
    """The lease of the next job there, as a worker with a session of its own has it."""
    held = leases.lease(session, queue, "w", NOON)
    session.flush()
    session.expire_all()
    assert held is not None
    return held


@pytest.fixture
def model(session):
    """A model file that lies nowhere yet."""
    return Rows(session).model_file(name="tiny", sha256=digest("tiny"), stored_in=None)


def wanted(model, rig=""):
    weights = Weights(model.id, model.name, model.sha256)
    return planner.fetch_request(weights, lane=Lane.ON_DEMAND, reason="test", rig=rig)


def workers(session, **stores):
    """Workers of these queues look into these stores."""
    for queue, store in stores.items():
        name = queue.replace("_", ".")
        say_store(session, f"{name}@host", queue=name, store=store, now=NOON)


def queued(session, *requests):
    return [job for job in work.enqueue(session, requests, NOON).values() if job is not None]


def test_where_the_store_is_shared_the_build_worker_fetches(session, model):
    """The card works on while the next file comes; so it is where no store is known."""
    assert [job.queue for job in queued(session, wanted(model, "r1"))] == ["build"]
    workers(session, build=HERE, bench_r1=HERE)
    assert [job.queue for job in queued(session, wanted(model, "r1"))] == ["build"]


def test_a_rig_with_a_store_of_its_own_fetches_for_itself(session, model):
    """Its bench waits for that job, and for none of another store."""
    workers(session, build=HERE, bench_r1=THERE)
    fetch = wanted(model, "r1")
    bench = planner.JobRequest(
        kind=planner.Kind.BENCH, queue="bench.r1", lane=Lane.ON_DEMAND, identity="b" * 64,
        title="bench", payload={}, reason="test", needs=(fetch.identity,),
    )  # fmt: skip
    first, second = queued(session, fetch, bench)
    assert (first.queue, second.blocked_by) == ("bench.r1", f"job:{first.id}")
    held = taken(session, "bench.r1")
    assert held.job_id == first.id
    leases.start(session, held, NOON)
    leases.succeed(session, held, NOON)
    assert work.job(session, second.id).state == "queued"


def test_a_file_in_another_store_is_not_there(session, model):
    """It is done for a rig once it lies where that rig looks."""
    workers(session, build=HERE, bench_r1=THERE, bench_r2=HERE)
    session.add(StoredWeightRow(model_file_id=model.id, store=HERE, since=NOON))
    session.flush()
    assert queued(session, wanted(model)) == []
    assert queued(session, wanted(model, "r2")) == []
    assert [job.queue for job in queued(session, wanted(model, "r1"))] == ["bench.r1"]


def test_rigs_of_one_store_have_one_fetch(session, model):
    """Two of another store have another, and the same wish again has none of its own."""
    workers(session, build=HERE, bench_r1=HERE, bench_r2=HERE, bench_r3=THERE, bench_r4=THERE)
    asked = [wanted(model, f"r{number}") for number in (1, 2, 3, 4)]
    first = queued(session, *asked)
    assert [job.queue for job in first] == ["build", "build", "bench.r3", "bench.r3"]
    assert len({job.id for job in first}) == 2
    assert {job.id for job in queued(session, *asked)} == {job.id for job in first}


def test_a_worker_that_moved_its_store_is_believed(session):
    """The newest start counts, and stores are known by those who use them."""
    workers(session, bench_r1=HERE, build=HERE)
    workers(session, bench_r1=THERE)
    assert fetch_places.store_of_rig(session, "r1") == THERE
    assert fetch_places.store_of_rig(session, "nobody") is None
    assert fetch_places.users_of(session) == {HERE: ["build"], THERE: ["bench.r1"]}


def test_weights_are_absent_awaited_fetched_refused_or_present(session, model):
    """With the job, its progress, why and what to do, and by the rigs that look there."""
    assert weight_standings.standings(session).get(model.id, ABSENT).words == "in no store"
    [job] = queued(session, wanted(model))
    assert weight_standings.standings(session)[model.id].words == "awaited"
    held = taken(session, "build")
    leases.beat(session, held, NOON, {"done": 3, "total": 4})
    session.expire_all()
    stands = weight_standings.standings(session)[model.id]
    assert (stands.stands, stands.words) == (Stands.AWAITED, "being fetched, 75%")
    fault = JobFailure(
        "it is gated", failure_class="hub_gated", blame=Blame.CONFIGURATION, advice="accept them"
    )
    leases.fail(session, held, fault, NOON, limit=1)
    stands = weight_standings.standings(session)[model.id]
    assert (stands.stands, stands.job_id, stands.advice) == (Stands.REFUSED, job.id, "accept them")
    assert stands.words == "refused: it is gated"
    workers(session, build=HERE, bench_r1=HERE)
    for store in (HERE, "9" * 32):
        session.add(StoredWeightRow(model_file_id=model.id, store=store, since=NOON))
    session.flush()
    stands = weight_standings.standings(session)[model.id]
    assert stands.stands is Stands.PRESENT
    assert stands.words == "in the store of r1; store 99999999"
