"""An engine family whose server is the stub; it reads and asks as the real families do."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.dialect import asking, build_failures, failures, logs, measuring, memory_log, settings
from jobs.dialect.options import Option
from jobs.model import Flags, Step


@dataclass(frozen=True)
class StubFamily:
    """Fits `jobs.engines.base.Engine`; `behaviour` goes to the stub as it is."""

    behaviour: dict[str, Any] = field(default_factory=dict)

    FAMILY = "stub"
    VIA = "wheel"
    RECIPE = 1
    FOREIGN_SOURCE = False
    LAUNCHER = None
    FAILURES = failures.FAILURES
    BUILD_FAILURES = build_failures.BUILDING
    SPARSE_PATTERNS = ()
    OPTION_SOURCES = ()

    read_log = staticmethod(logs.read_log)
    read_memory = staticmethod(memory_log.read_memory)
    read_settings = staticmethod(settings.read_settings)
    request = staticmethod(asking.request)
    measure = staticmethod(measuring.measure)

    def build(self, revision, target, places):
        return ()

    def describe(self, *, artifact, launcher=""):
        return Step("describe", (sys.executable, "-c", "print('--slots')"))

    def read_help(self, text):
        return Flags(frozenset(text.split()))

    def read_options(self, text):
        return tuple(Option((word,)) for word in text.split())

    def read_source(self, texts):
        return ()

    def launch(self, launch, flags):
        wanted = {
            "socket": launch.host,
            "model": launch.model_path,
            "alias": launch.alias,
            "context": launch.context_tokens,
            **self.behaviour,
        }
        program = str(Path(launch.artifact) / "stub_engine.py")
        return Step("serve", (sys.executable, "-I", program, json.dumps(wanted)))
