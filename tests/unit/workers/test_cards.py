"""What the driver says of the cards themselves, through a stand-in for its binding."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from workers.cards import card_facts, self_test
from workers.host import environment_of, fingerprint

GIB = 2**30


class Fault(Exception):
    """As the binding raises it."""


class Driver(SimpleNamespace):
    """One card; `fault` is what the driver says instead of starting (case C114)."""

    NVMLError = Fault
    fault = ""
    power = 175_000

    def nvmlInit(self) -> None:  # noqa: N802 - the binding's names
        if self.fault:
            raise Fault(self.fault)

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"570.86.10"

    def nvmlDeviceGetName(self, _card: int) -> str:  # noqa: N802
        return "RTX 5090 Laptop"

    def nvmlDeviceGetUUID(self, _card: int) -> str:  # noqa: N802
        return "GPU-0c1d"

    def nvmlDeviceGetEnforcedPowerLimit(self, _card: int) -> int:  # noqa: N802
        return self.power

    def nvmlDeviceGetMemoryInfo(self, _card: int) -> Any:  # noqa: N802
        return SimpleNamespace(used=GIB, total=24 * GIB)


def test_a_driver_that_does_not_start_is_told_in_its_own_words() -> None:
    """A library and a kernel module of two versions: no facts, one sentence, no exception."""
    broken = Driver(fault="Driver/library version\nmismatch")
    assert self_test(broken) == ("Driver/library version mismatch", ())
    assert card_facts(broken) == {}


def test_a_card_is_named_without_its_secret() -> None:
    """Name, driver and power limit go public; of the UUID only a digest."""
    facts = card_facts(Driver())
    assert (facts["driver"], facts["power_limits_w"]) == ("570.86.10", [175])
    assert facts["cards"][0].startswith("RTX 5090 Laptop ")
    assert "GPU-0c1d" not in str(facts)
    fault, (memory,) = self_test(Driver())
    assert (fault, memory.used_bytes, memory.total_bytes) == ("", GIB, 24 * GIB)


def test_a_power_limit_is_environment_and_not_hardware() -> None:
    """Another limit or driver is the same rig elsewhere; without a card nothing new is hashed."""
    plain = {"architecture": "x86_64", "cpu_model": "Example"}
    usual = plain | card_facts(Driver()) | {"kernel": "6.8"}
    less = plain | card_facts(Driver(power=100_000)) | {"kernel": "6.8"}
    assert fingerprint(usual) == fingerprint(less) != fingerprint(plain)
    assert environment_of(usual) != environment_of(less)
    assert environment_of(plain) == {"hardware": fingerprint(plain)}
