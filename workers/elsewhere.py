"""A server that somebody else started: which kind it is and how it is asked; it starts nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jobs.control import Control
from jobs.dialect import asking, measuring, openai, wire
from jobs.dialect.filling import filled
from jobs.dialect.settings import read_settings
from jobs.errors import Transient, UsageError
from jobs.model import Arrival, Effective, Measurement, Request
from jobs.scenarios import Scenario
from workers.client import EngineClient

POLL_SECONDS = 0.5
LONGEST_KEY = 4096


class Kind(StrEnum):
    """What answers at an address."""

    LLAMA = "llama-server"
    VLLM = "vllm"
    OPENAI = "openai"


@dataclass(frozen=True)
class Served:
    """What a server says of itself; `model` is the name it is asked by."""

    url: str
    kind: Kind
    model: str
    version: str = ""
    effective: Effective = field(default_factory=Effective)

    @property
    def told(self) -> dict[str, Any]:
        """As a result keeps it."""
        effective = self.effective
        return {
            "url": self.url,
            "kind": self.kind.value,
            "model": self.model,
            "version": self.version or effective.build_info,
            "context_tokens": effective.context_tokens,
            "slots": effective.slots,
            "speculative": effective.speculative,
        }

    def request(self, scenario: Scenario, run: int, filling: Sequence[int]) -> Request:
        """What is sent for one run."""
        if self.kind is Kind.LLAMA:
            return asking.request(scenario, run=run, alias=self.model, filling=filling)
        return openai.request(
            scenario,
            run=run,
            model=self.model,
            extended=self.kind is Kind.VLLM,
            filling=filling,
        )

    def measure(
        self,
        arrivals: Sequence[Arrival],
        *,
        scenario: Scenario,
        run: int,
        warmup: bool,
        wall_seconds: float,
        alias: str,
    ) -> Measurement:
        """The numbers of one run: the server's own where it states any, else our clock's."""
        has_timings = any("timings" in wire.mapping(each.event) for each in arrivals[-1:])
        is_own = self.kind is Kind.LLAMA or has_timings
        measure = measuring.measure if is_own else openai.measure
        return measure(
            arrivals,
            scenario=scenario,
            run=run,
            warmup=warmup,
            wall_seconds=wall_seconds,
            alias=alias,
        )

    def filling(self, client: EngineClient, scenario: Scenario, run: int) -> tuple[int, ...]:
        """The tokens a filled scenario begins with, in this server's own vocabulary."""
        if not scenario.filled_tokens:
            return ()

        def tokenise(text: str) -> Sequence[int] | None:
            body = (
                {"content": text}
                if self.kind is Kind.LLAMA
                else {"model": self.model, "prompt": text, "add_special_tokens": False}
            )
            return openai.tokens_in(client.ask_json("/tokenize", body))

        return filled(scenario.filled_tokens, scenario.salt(run), tokenise)


def address(text: str) -> str:
    """The address without what a person may have typed behind it. Raises UsageError."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.username is not None
        or parts.query
        or parts.fragment
        or re.search(r"[\x00-\x20\x7f\\]", text)
    ):
        raise UsageError(
            f"{text[:200]!r} is no address of a server",
            advice="write it as http://127.0.0.1:9931, without a name or password in it",
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = re.sub(r"/v1/?$", "", parts.path).rstrip("/")
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}"


def key_in(path: Path | None) -> str:
    """The key that a file holds on its first line; none without a file."""
    if path is None:
        return ""
    try:
        with path.open(encoding="utf-8") as file:
            key = file.read(LONGEST_KEY + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the key file {path} cannot be read", advice="check the path") from error
    if not re.fullmatch(r"[\x21-\x7e]{1,4096}", key):
        raise UsageError(f"{path} holds no key", advice="one line without spaces is a key")
    return key


def look(
    client: EngineClient, url: str, *, model: str, control: Control, wait_seconds: float
) -> Served:
    """What answers at that address; waits while it loads. Raises Transient where nothing does."""
    deadline = time.monotonic() + wait_seconds
    while True:
        control.check()
        control.report("look at the server", note=url)
        served = _looked(client, url, model)
        if served is not None:
            return served
        if time.monotonic() > deadline:
            raise Transient(
                f"nothing that can be benched answers at {url}",
                advice="start the server, or look at address and key; --wait gives it more time",
            )
        control.wait(POLL_SECONDS)


def _looked(client: EngineClient, url: str, model: str) -> Served | None:
    listed = list(openai.models_in(client.read_json("/v1/models")))
    if not listed:
        return None
    names = [wire.text(each.get("id")) for each in listed]
    if model and model not in names:
        shown = ", ".join(wire.plain(name[:80]) for name in names[:8])
        raise UsageError(f"the server has no model {model[:80]!r}", advice=f"it has {shown}")
    name = model or names[0]
    entry = listed[names.index(name)]
    props = wire.mapping(client.read_json("/props"))
    if "default_generation_settings" in props or "build_info" in props:
        slots = [wire.mapping(slot) for slot in wire.sequence(client.read_json("/slots"))]
        ready = client.healthy()
        return Served(url, Kind.LLAMA, name, "", read_settings(props, slots)) if ready else None
    version = wire.mapping(client.read_json("/version")).get("version")
    effective = Effective(context_tokens=wire.count(entry.get("max_model_len")))
    is_vllm = entry.get("owned_by") == "vllm" and isinstance(version, str)
    kind = Kind.VLLM if is_vllm else Kind.OPENAI
    return Served(url, kind, name, (wire.shown(version, 80) or "") if is_vllm else "", effective)
