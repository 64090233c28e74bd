"""A bench of the stub engine in a folder of its own, which must be empty of it afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest
from support.stub_family import StubFamily

from jobs.control import Control
from jobs.errors import JobFailure
from jobs.model import Boot, Flags
from jobs.scenarios import Scenario
from workers.answers import Patience
from workers.bench import run_bench
from workers.plan import Place, Plan
from workers.sandbox import Limits, Mount
from workers.uncaged import Uncaged

SUPPORT = Path(__file__).parent
QUICK = Patience(
    stall_seconds=1.0,
    load_seconds=8.0,
    first_token_seconds=1.0,
    token_stall_seconds=1.0,
    request_seconds=15.0,
    grace_seconds=0.5,
    release_seconds=0.2,
)
PLAN = frozenset({"most_warm_ups", "intent", "gpu_layers", "more_scenarios", "extra_flags"})


def scenario(endpoint: str = "chat", tokens: int = 32, **fields: Any) -> Scenario:
    values = {"runs": 2, "boots": 1} | fields
    return Scenario("stub", 1, endpoint, "Say something.", tokens=tokens, **values)


class StubBench:
    """Runs a bench of a stub with the given behaviour; `kept` is what it kept on the way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runtime = folder / "run"
        self.runtime.mkdir(mode=0o700)
        self.kept: list[Boot] = []
        for name in ("model", "mmproj"):
            (folder / f"{name}.gguf").write_bytes(b"GGUF")

    def __call__(
        self,
        *,
        sandbox: Any = None,
        control: Control | None = None,
        runs: int = 2,
        boots: int = 1,
        patience: Patience = QUICK,
        cards: Any = None,
        card: Any = None,
        projector: bool = False,
        **behaviour: Any,
    ) -> list[Boot]:
        asked = behaviour.pop("scenario", scenario())
        further = {name: behaviour.pop(name) for name in PLAN & set(behaviour)}
        plan = Plan(
            engine=StubFamily(behaviour),
            scenario=asked,
            flags=Flags(frozenset()),
            artifact=Mount(SUPPORT, "/run/artifact"),
            model=Mount(self.folder / "model.gguf", "/run/model.gguf"),
            projector=Mount(self.folder / "mmproj.gguf", "/run/mmproj.gguf") if projector else None,
            context_tokens=2048,
            threads=1,
            runs=runs,
            boots=boots,
            **further,
        )
        place = Place(
            sandbox or Uncaged(),
            Limits(output_bytes=2**20),
            self.runtime,
            self.folder / "log",
            f"test-{self.folder.name}",
            card=card,
            card_memory=cards,
        )
        return run_bench(
            plan, place, control=control or Control(), patience=patience, keep=self.kept.append
        )

    def check_gone(self) -> None:
        """Neither a process nor a file of any boot is left."""
        assert living(str(self.runtime)) == []
        assert list(self.runtime.iterdir()) == []


def living(words: str) -> list[int]:
    """Processes whose command line holds `words`."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(words in word for word in process.info["cmdline"] or ()):
            found.append(process.pid)
    return found


def failure(bench: StubBench, **behaviour: Any) -> JobFailure:
    """The failure that such a bench ends with."""
    with pytest.raises(JobFailure) as caught:
        bench(**behaviour)
    return caught.value
