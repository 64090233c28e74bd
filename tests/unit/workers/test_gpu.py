"""A card as the driver tells of it: its own devices, and no others."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from workers import gpu
from workers.gpu import Card, closing_card


class Driver:
    """NVML's answers for one card."""

    class NVMLError(Exception):
        """What the binding raises."""

    closed = 0

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetMinorNumber(self, _card: int) -> int:  # noqa: N802
        return 3

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.closed += 1


@pytest.fixture
def here(monkeypatch):
    """The device files of a machine with four cards."""
    there = {f"/dev/nvidia{n}" for n in range(4)} | {"/dev/nvidiactl", "/dev/nvidia-uvm"}
    monkeypatch.setattr(gpu, "Path", lambda path: SimpleNamespace(exists=lambda: path in there))


def test_a_card_shows_its_own_devices(here) -> None:
    """Its minor number names the file; what this machine lacks is left out."""
    assert Card(0, Driver()).devices() == ("/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")


def test_a_card_is_let_go_whatever_happens() -> None:
    """Also where the bench fails, and where there is none."""
    driver = Driver()
    with pytest.raises(ValueError, match="broke"), closing_card(Card(0, driver)):
        raise ValueError("broke")
    assert driver.closed == 1
    with closing_card(None):
        pass
