"""Queries on where weights stand: in which stores, awaited by which job, or refused and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlmodel import Session, col, select

from jobs.model import Kind, State
from jobs.store import fetch_places
from jobs.store.work import HELD, LIVE
from jobs.tables import JobRow, StoredWeightRow

SHOWN_STORE = 8
"""Digits of a store's name that pages show where no worker says that it uses it."""
MOST_FETCHES = 2000
"""So many of the newest fetches are looked through."""
REFUSED = (State.FAILED.value, State.DEAD.value)


class Stands(StrEnum):
    """One word for the weights of a model."""

    PRESENT = "present"
    AWAITED = "awaited"
    REFUSED = "refused"
    ABSENT = "absent"


@dataclass(frozen=True)
class Place:
    """A store that holds the file, and the queues whose workers look into it."""

    store: str
    queues: tuple[str, ...]

    @property
    def words(self) -> str:
        """How people know it: by its rigs, else by who fetches there, else by its own name."""
        rigs = [each.removeprefix(fetch_places.BENCH) for each in self.queues if "." in each]
        others = [f"the {each} worker" for each in self.queues]
        return ", ".join(rigs or others) or f"store {self.store[:SHOWN_STORE]}"


@dataclass(frozen=True)
class Standing:
    """Where the weights of one model file lie, and the job that brings them or could not."""

    stands: Stands
    places: tuple[Place, ...] = ()
    job_id: int | None = None
    why: str = ""
    advice: str = ""

    @property
    def words(self) -> str:
        """One short line for a table."""
        here = "in the store of " + "; ".join(each.words for each in self.places)
        match self.stands:
            case Stands.PRESENT:
                return here
            case Stands.AWAITED:
                return f"{here}; {self.why}" if self.places else self.why
            case Stands.REFUSED:
                return f"refused: {self.why}"
        return "in no store"


ABSENT = Standing(Stands.ABSENT)


def standings(session: Session) -> Mapping[int, Standing]:
    """Each model file that lies somewhere, is on its way, or could not be brought; by its number.

    What a living job brings is awaited even where another store has it. A refusal counts until
    the file is there or asked for again.
    """
    users = fetch_places.users_of(session)
    places: dict[int, list[Place]] = {}
    stored = select(StoredWeightRow).order_by(StoredWeightRow.store)
    for row in session.exec(stored):
        place = Place(row.store, tuple(users.get(row.store, ())))
        places.setdefault(row.model_file_id, []).append(place)
    found = {number: Standing(Stands.PRESENT, tuple(here)) for number, here in places.items()}
    query = select(JobRow).where(JobRow.kind == Kind.FETCH_MODEL.value)
    looked: set[int] = set()
    for job in session.exec(query.order_by(col(JobRow.id).desc()).limit(MOST_FETCHES)):
        number = int(job.payload["model_file_id"])
        if number in looked:
            continue
        looked.add(number)
        here = tuple(places.get(number, ()))
        if job.state in LIVE:
            found[number] = Standing(Stands.AWAITED, here, job.id, _waits(job))
        elif job.state in REFUSED and not here:
            found[number] = Standing(Stands.REFUSED, (), job.id, job.message, job.advice or "")
    return found


def _waits(job: JobRow) -> str:
    if job.state not in HELD:
        return f"awaited: {job.message}" if job.message else "awaited"
    done, total = job.progress.get("done"), job.progress.get("total")
    if isinstance(done, int | float) and isinstance(total, int | float) and total > 0:
        return f"being fetched, {min(1.0, done / total):.0%}"
    return "being fetched"
