"""What planning knows, complete, so that a test names only what it is about."""

from __future__ import annotations

from typing import Any

from support.rows import NOON, digest
from support.shapes import dflash_drafter, qwen36

from jobs.fit.setup import Card
from jobs.known_engines import ANY_ENGINE, EngineState, state_named
from jobs.model import BuildTarget, Revision, Trust
from jobs.planner import Weights
from jobs.planning.world import Event, KnownEngine, KnownFile, KnownRevision, KnownStack, World

GIB = 2**30


def revision(number: int = 1, *, engine: str = "buun", state: EngineState = ANY_ENGINE) -> Any:
    """The numbered revision of an engine."""
    commit = digest(f"{engine} {number}")[:40]
    value = Revision(engine, "llama.cpp", commit, f"{engine}-{number}", "owner/name")
    return KnownRevision(number, value, state)


def file(name: str = "qwen:q3", **fields: Any) -> KnownFile:
    """A model file with the shape of a real one."""
    return KnownFile(
        **{
            "weights": Weights(len(name), name, digest(name)),
            "role": "target",
            "model_class": "qwen3.6-27b",
            "repo": "unsloth/Qwen3.6-27B-GGUF",
            "shape": qwen36(),
        }
        | fields
    )


def drafter(
    name: str = "spiritbuun/Qwen3.6-27B-DFlash-GGUF:dflash-q8_0.gguf", **fields: Any
) -> Any:
    """A drafter for it, in the form of early buun and beellama."""
    repo = name.partition(":")[0]
    return file(name, **{"role": "drafter", "shape": dflash_drafter(), "repo": repo} | fields)


def stack(name: str = "qwen-buun", **fields: Any) -> KnownStack:
    """What is benched of an engine."""
    return KnownStack(
        **{
            "name": name,
            "engine": "buun",
            "target": file(),
            "context_tokens": 8192,
            "scenarios": ("decode-128",),
        }
        | fields
    )


def engine(name: str = "buun", *, state: str = "buun@2026-04", **fields: Any) -> KnownEngine:
    """An engine that is built by itself for one rig."""
    read = state_named(state) if state else ANY_ENGINE
    return KnownEngine(
        **{
            "name": name,
            "family": "llama.cpp",
            "trust": Trust.AUTO,
            "targets": (BuildTarget("big", "cmake", "120"),),
            "newest": revision(9, engine=name, state=read),
        }
        | fields
    )


def world(*stacks: KnownStack, engines: Any = (), **fields: Any) -> World:
    """One engine, one stack, one card that holds it easily."""
    known = engines or (engine(),)
    return World(
        **{
            "now": NOON,
            "engines": {each.name: each for each in known},
            "stacks": stacks or (stack(),),
            "cards": {"big": Card(48 * GIB, reserve_bytes=0)},
        }
        | fields
    )


def pushed(**fields: Any) -> Event:
    """A push to a watched branch."""
    return Event(
        **{
            "id": 1,
            "kind": "fork_pushed",
            "title": "buun: master pushed",
            "engine": "buun",
            "revision": revision(9),
            "facts": {"files_hot": []},
        }
        | fields
    )


def told_of(published: KnownFile, kind: str = "drafter_published", **fields: Any) -> Event:
    """A model file that is new."""
    words = {"id": 2, "kind": kind, "title": f"{published.weights.name} is new"}
    return Event(**words | {"published": published} | fields)
