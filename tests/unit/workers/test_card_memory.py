"""What the driver says of processes, through a stand-in for its binding."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workers.card_memory import reader_of

MIB = 2**20


class Fault(Exception):
    """As the binding raises it."""


class Cards(SimpleNamespace):
    """Cards with the processes on each, as (pid, bytes); `drawing` are also in the other list."""

    NVMLError = Fault

    def nvmlInit(self) -> None:  # noqa: N802 - the binding's names
        if getattr(self, "is_absent", False):
            raise Fault("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        if getattr(self, "is_lost", False):
            raise Fault("GPU is lost")
        return len(self.computing)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetComputeRunningProcesses(self, card: int) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.computing[card]]

    def nvmlDeviceGetGraphicsRunningProcesses(self, card: int) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.drawing]


def read(cards: Cards, *pids: int) -> int | None:
    reader = reader_of(cards)
    assert reader is not None
    return reader(pids)


def test_only_our_processes_count_on_every_card() -> None:
    """Somebody else's memory is not ours; one that computes and draws is counted once a card."""
    cards = Cards(
        computing=[[(7, 18_126 * MIB), (99, 500 * MIB)], [(8, 2 * MIB)]],
        drawing=[(7, 18_126 * MIB)],
    )
    assert read(Cards(computing=cards.computing, drawing=[]), 7, 8) == 18_128 * MIB
    assert read(Cards(computing=cards.computing[:1], drawing=cards.drawing), 7) == 18_126 * MIB


@pytest.mark.parametrize(
    "cards",
    [
        Cards(computing=[[(99, MIB)]], drawing=[]),
        Cards(computing=[[(7, None)]], drawing=[]),
        Cards(computing=[], drawing=[]),
        Cards(computing=[[(7, MIB)]], drawing=[], is_lost=True),
    ],
    ids=["pids of another namespace", "not told", "no card", "lost"],
)
def test_what_nobody_can_say_is_not_zero(cards: Cards) -> None:
    """A driver that does not know or does not answer leaves the figure out."""
    assert read(cards, 7) is None


def test_a_machine_without_a_driver_has_no_reader() -> None:
    """Nothing is asked there."""
    assert reader_of(Cards(computing=[], drawing=[], is_absent=True)) is None
