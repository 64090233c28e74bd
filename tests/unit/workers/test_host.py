"""Facts of the machine hold no names and survive a reboot."""

from __future__ import annotations

from workers.host import cpu_model, fingerprint, kernel_version

FACTS = {"architecture": "x86_64", "cpu_model": "A", "physical_cores": 2, "logical_cores": 4}


def test_the_fingerprint_knows_hardware_only() -> None:
    """Boot, load, kernel and governor may change; the processor may not."""
    same = fingerprint({**FACTS, "boot": "b", "kernel": "6.2", "load_average": [1.0]})
    assert same == fingerprint({**FACTS, "boot": "a", "kernel": "6.1", "load_average": [0.0]})
    assert same != fingerprint({**FACTS, "cpu_model": "B"})


def test_the_processor_is_read_from_cpuinfo() -> None:
    """The first processor's name counts, with single spaces; an unknown layout says so."""
    text = "processor\t: 0\nmodel name\t: Ryzen  9   9955HX\nmodel name\t: other\n"
    assert cpu_model(text) == "Ryzen 9 9955HX"
    assert cpu_model("") == "unknown"


def test_a_kernel_built_by_somebody_does_not_tell_who() -> None:
    """Only the numbers of the release are published (case C145)."""
    assert kernel_version("6.1.0-18-alice-laptop") == "6.1.0"
    assert kernel_version("custom") == "unknown"
