"""The facts of the real machine are whole and private."""

from __future__ import annotations

import json
import platform

from workers.host import HARDWARE, fingerprint, machine_facts


def test_this_machine_is_described_without_its_name() -> None:
    """Every fact is filled in, and neither host, user nor a path is among them (case C145)."""
    facts = machine_facts()
    told = json.dumps(facts)
    assert all(facts[name] for name in HARDWARE if name != "physical_cores")
    assert platform.node() not in facts.values()
    assert "/" not in told.replace(str(facts["cpu_model"]), "")
    assert fingerprint(facts) == fingerprint(machine_facts())
