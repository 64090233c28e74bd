"""Who stands where within a group; a pure rule that is told what can be told apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jobs import compare
from jobs.model import Validity
from jobs.store.shown import Entry, Group

TellsApart = Callable[[Entry, Entry], bool]


@dataclass(frozen=True)
class Ranked:
    """An entry with its rank, or none where it is not `ok`; `against_leader` is a fraction."""

    entry: Entry
    rank: int | None
    tied: bool = False
    against_leader: float | None = None

    @property
    def place(self) -> str:
        """`1`, `1=` for a shared rank, or nothing."""
        if self.rank is None:
            return ""
        return f"{self.rank}=" if self.tied else str(self.rank)


@dataclass(frozen=True)
class Board:
    """One group's lines: the ranked ones, fastest first, then those that rank nowhere."""

    group: Group
    lines: tuple[Ranked, ...]

    @property
    def ranked(self) -> tuple[Ranked, ...]:
        return tuple(line for line in self.lines if line.rank is not None)

    @property
    def unranked(self) -> tuple[Ranked, ...]:
        return tuple(line for line in self.lines if line.rank is None)

    @property
    def uncaged(self) -> bool:
        return any(line.entry.uncaged for line in self.lines)


def boots_apart(left: Entry, right: Entry) -> bool:
    """Whether the boots of two entries differ beyond the noise, by the rule of the verdicts."""
    if not left.boot_medians or not right.boot_medians:
        return False
    return compare.tells_apart(left.boot_medians, right.boot_medians)


def ranks(entries: Sequence[Entry], tells_apart: TellsApart) -> tuple[Ranked, ...]:
    """The entries of one group in order of speed.

    A rank belongs to its fastest entry, and whoever cannot be told apart from that one shares
    it: a chain of small steps never ties the first with the last. Only `ok` entries rank.
    """
    counted = sorted(filter(_counts, entries), key=lambda entry: -(entry.decode_tps or 0.0))
    ranked: list[Ranked] = []
    head: list[Entry] = []
    heads: list[list[Entry]] = []
    for entry in counted:
        if not head or tells_apart(head[0], entry):
            head = []
            heads.append(head)
        head.append(entry)
    place = 1
    for sharing in heads:
        for entry in sharing:
            ranked.append(
                Ranked(
                    entry,
                    rank=place,
                    tied=len(sharing) > 1,
                    against_leader=_change(entry, counted[0]),
                )
            )
        place += len(sharing)
    rest = [Ranked(entry, rank=None) for entry in entries if not _counts(entry)]
    return (*ranked, *rest)


def boards(entries: Iterable[Entry], tells_apart: TellsApart) -> tuple[Board, ...]:
    """One board for each group, in the order of the groups' names."""
    groups: dict[Group, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.group].append(entry)
    ordered = sorted(groups, key=lambda group: group.order)
    return tuple(Board(group, ranks(groups[group], tells_apart)) for group in ordered)


def _counts(entry: Entry) -> bool:
    return entry.validity is Validity.OK and bool(entry.decode_tps)


def _change(entry: Entry, leader: Entry) -> float | None:
    if not entry.decode_tps or not leader.decode_tps or entry is leader:
        return None
    return entry.decode_tps / leader.decode_tps - 1
