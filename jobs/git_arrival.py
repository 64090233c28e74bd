"""A fetch into the network until it is judged; what was refused leaves neither refs nor packs.

It is noted on the disk before it begins, so that nothing stays which nobody judged: not what a
killed process fetched, and not what a fetch that failed had brought by then.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

from jobs.errors import NO_ROOM, ScoutError, disk_full
from jobs.git_packs import arriving, drop_packs_but, pack_names
from jobs.git_rooms import Flood, Room, forget_oldest, forget_reached, keep_left, refuse_flood

UNJUDGED = "forkscout-unjudged"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Arrival:
    """What arrives in a room: the tips it had before, and the packs that were there."""

    room: Room
    left: Sequence[str]
    packs: frozenset[str]

    def judge(self, network: Path) -> None:
        """Refuse a flood with all that it brought, else bound what was left behind."""
        try:
            refuse_flood(network, self.room, self.left)
        except Flood:
            drop_packs_but(network, self.packs)
            (network / UNJUDGED).unlink(missing_ok=True)
            raise
        forget_reached(network, self.room, self.left)
        forget_oldest(network, self.room)
        (network / UNJUDGED).unlink(missing_ok=True)


def bring(network: Path, room: Room, left: Sequence[str], fetch: Callable[[], object]) -> None:
    """Let `fetch` bring something into the room, and judge it; the network's lock is held."""
    with arriving(network):
        arrival = Arrival(room, left, frozenset(pack_names(network)))
        _note(network, arrival)
        keep_left(network, room, left)
        try:
            fetch()
        except BaseException:
            # A part of its branches may have moved. Where that cannot be judged now, it is later.
            with contextlib.suppress(ScoutError):
                arrival.judge(network)
            raise
        arrival.judge(network)


def is_unjudged(network: Path) -> bool:
    """Whether a fetch ended before it was judged."""
    return (network / UNJUDGED).exists()


def judge_what_is_left(network: Path) -> None:
    """Judge what a fetch brought that was killed; the network's lock is held."""
    if not is_unjudged(network):
        return
    try:
        note = json.loads((network / UNJUDGED).read_text())
        arrival = Arrival(Room(**note["room"]), note["left"], frozenset(note["packs"]))
    except (ValueError, KeyError, TypeError):
        # A machine that lost power left half a note, and the fetch did not begin.
        (network / UNJUDGED).unlink(missing_ok=True)
        return
    with arriving(network):
        try:
            arrival.judge(network)
        except ScoutError as error:
            _log.warning("an earlier fetch was refused", cause=error.message)


def _note(network: Path, arrival: Arrival) -> None:
    partial = network / f"{UNJUDGED}.new"
    try:
        partial.write_text(json.dumps({**asdict(arrival), "packs": sorted(arrival.packs)}))
        partial.rename(network / UNJUDGED)
    except OSError as fault:
        partial.unlink(missing_ok=True)
        if fault.errno in NO_ROOM:
            raise disk_full("there is no room for the history of forks") from fault
        raise
