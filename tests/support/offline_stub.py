"""An offline bench of the stub engine, and a card that says what it is told to say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from support.stub_family import StubFamily

from jobs.control import Control
from jobs.scenarios import Scenario
from workers.offline import Bench, run_in_turns
from workers.offline_files import BuildFiles, ModelFile
from workers.offline_record import Wish
from workers.uncaged import Uncaged

SUPPORT = Path(__file__).parent
PLAIN = Scenario("stub", 1, "chat", "Say something.", tokens=32, runs=1, boots=1)
DEEP = Scenario("ladder", 1, "filled", "", tokens=32, runs=1, boots=1, filled_tokens=900)


class SpokenCard:
    """Stands in for `workers.gpu.Card`."""

    def __init__(self) -> None:
        self.asked = 0

    def facts(self) -> dict[str, Any]:
        return {"uuid": "GPU-1", "name": "Stub 9000", "memory_bytes": 2**34}

    def reading(self, pids: Any) -> dict[str, Any]:
        self.asked += 1
        return {
            "process_bytes": 1000 + self.asked if pids else None,
            "foreign_processes": 0,
            "device_bytes": 5000,
            "sm_mhz": 1980,
            "memory_mhz": 3201,
            "celsius": 40,
            "power_mw": 300_000,
            "reasons": [],
        }

    def held_by(self, pids: Any) -> int | None:
        return 4321

    def close(self) -> None: ...


def bench(folder: Path, *, twin: bool = False, card: Any = None, **wanted: Any) -> dict[str, Any]:
    """The document that a bench of the stub leaves; `behaviour` goes to the stub."""
    behaviour = wanted.pop("behaviour", {})
    said: list[str] = []
    [document] = run_in_turns(
        [arm(folder, "result.json", behaviour, twin=twin, card=card, **wanted)],
        control=Control(),
        say=said.append,
    )
    document["said"] = said
    return document


def arm(
    folder: Path,
    out: str,
    behaviour: dict[str, Any],
    *,
    artifact: str = "a" * 64,
    twin: bool = False,
    card: Any = None,
    **wanted: Any,
) -> Bench:
    """One build of the stub, to be measured alone or in turns with another."""
    weights = folder / "secret-name" / "model.gguf"
    weights.parent.mkdir(exist_ok=True)
    weights.write_bytes(b"GGUF")
    wish = Wish(scenarios=(PLAIN,), contexts=(2048,), runs=1, quiet_seconds=0.0, most_warm_ups=1)
    told = {
        "name": "model.gguf",
        "size_bytes": 4,
        "sha256": "b" * 64,
        "twin_of": "real.gguf" if twin else None,
        "facts": {},
        "shape": None,
        "fault": "",
    }
    build = {
        "engine": "stub",
        "commit": "c" * 40,
        "cuda_arch": None,
        "artifact": artifact,
        "size_bytes": 9,
        "facts": {},
    }
    return Bench(
        wish=replace(wish, **wanted),
        engine=StubFamily(behaviour),
        build=BuildFiles(SUPPORT, "stub", build),
        models={"target": ModelFile(weights, twin, told)},
        sandbox=Uncaged(),
        card=card,
        machine={"architecture": "x86_64", "kernel": "6.1"},
        out=folder / out,
    )
