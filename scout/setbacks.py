"""A step of a round that failed, told beside what all other steps found; it hides no fault of ours.

A full disk fails every write: what was seen is shown all the same, and the round says why it ended
badly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import OperationalError

from jobs.errors import NO_ROOM, ScoutError
from scout.watch import Trouble

FREE_SPACE = "free space on the disk of FORKSCOUT_HOME, then look again"


@contextmanager
def going_on(troubles: list[Trouble], what: str) -> Iterator[None]:
    """Where the block fails for a reason outside of us, one trouble more and no exception."""
    try:
        yield
    except ScoutError as error:
        troubles.append(Trouble(what, error.message, error.advice))
    except OperationalError as error:
        says = " ".join(str(error.orig).split())
        troubles.append(Trouble(what, f"the database failed: {says}", FREE_SPACE))
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        troubles.append(Trouble(what, f"{error.strerror or error}", FREE_SPACE))
