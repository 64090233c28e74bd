"""What an offline bench says of the files it is given: digests and headers; it changes none."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobs.dialect import wire
from jobs.engines import llama_cpp, xllamacpp
from jobs.errors import Permanent, UsageError
from jobs.exchange import TWIN_KEY
from jobs.fit.joining import shape_from
from jobs.gguf.facts import ModelFacts
from jobs.gguf.header import Header
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of
from workers.artifacts import size_bytes, tree_digest

CHUNK_BYTES = 16 * 2**20
FACTS_BYTES = 2**20
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class BuildFiles:
    """A finished build: its folder, its family, and what is said of it."""

    folder: Path
    family: str
    told: dict[str, Any]


@dataclass(frozen=True)
class ModelFile:
    """A weight file: where it is and what is said of it."""

    path: Path
    is_twin: bool
    told: dict[str, Any]


def look_at_build(folder: Path, *, engine: str = "", commit: str = "") -> BuildFiles:
    """The build in `folder`; name and commit are its own `facts.json`'s where nobody gives them."""
    folder = folder.absolute()
    if (folder / "llama-server").is_file():
        family = llama_cpp.FAMILY
    elif (folder / "bin" / "python").is_file():
        family = xllamacpp.FAMILY
    else:
        raise UsageError(
            f"{folder} holds no build: neither llama-server nor bin/python is in it",
            advice="Name the folder that holds the built server.",
        )
    facts = _own_words(folder / "facts.json")
    commit = commit or wire.shown(facts.get("commit"), 64) or ""
    if not COMMIT.fullmatch(commit):
        raise UsageError(
            f"the build in {folder} does not say which source it is",
            advice="Add --commit with the full commit, or with the sha256 of its wheel.",
        )
    told = {
        "engine": engine or wire.shown(facts.get("engine"), 80) or family,
        "commit": commit,
        "cuda_arch": wire.shown(facts.get("cuda_arch"), 40),
        "artifact": tree_digest(folder),
        "size_bytes": size_bytes(folder),
        "facts": wire.storable(facts),
    }
    return BuildFiles(folder, family, told)


def _own_words(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(FACTS_BYTES + 1)
    except OSError:
        return {}
    return dict(wire.mapping(wire.parsed(text))) if len(text) <= FACTS_BYTES else {}


def look_at_model(
    path: Path, *, tell: Tell = lambda _done, _total: None, digests: Path | None = None
) -> ModelFile:
    """Digest and header of a weight file; `tell` hears how many bytes were read, and of how many.

    A digest that `digests` holds for exactly this file, untouched since, is not computed again.

    Raises UsageError where there is no such file, BadGguf where it is no GGUF.
    """
    path = path.absolute()
    try:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            header = read_header(
                lambda offset, length: os.pread(file.fileno(), length, offset),
                size_bytes=size,
                depth=Depth.FULL,
            )
    except OSError as fault:
        raise UsageError(
            f"{path} cannot be read: {fault.strerror}", advice="Name a GGUF file of this machine."
        ) from fault
    facts = facts_of(header, file_name=path.name)
    twin = header.keys.get(TWIN_KEY)
    told = {
        "name": wire.plain(path.name)[:200],
        "size_bytes": size,
        "sha256": _remembered(path, size, tell, digests),
        "twin_of": wire.shown(twin, 200) if twin is not None else None,
        "facts": plain_values(facts),
        **_shape(header, facts),
    }
    return ModelFile(path, twin is not None, told)


def _shape(header: Header, facts: ModelFacts) -> dict[str, Any]:
    """What memory depends on, or why that is not known."""
    try:
        return {"shape": plain_values(shape_from(header, facts)), "fault": ""}
    except Permanent as fault:
        return {"shape": None, "fault": wire.plain(fault.detail)[:300]}


def plain_values(value: Any) -> Any:
    """A dataclass as strict JSON."""
    return wire.storable(json.loads(json.dumps(asdict(value), default=str)))


def _remembered(path: Path, size: int, tell: Tell, digests: Path | None) -> str:
    if digests is None:
        return _digest(path, size, tell)
    facts = path.stat()
    key = f"{facts.st_dev}:{facts.st_ino}:{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ctime_ns}"
    held = _own_words(digests)
    found = held.get(key)
    if not isinstance(found, str) or not COMMIT.fullmatch(found):
        found = _digest(path, size, tell)
        digests.write_text(json.dumps({**held, key: found}))
    return found


def _digest(path: Path, size: int, tell: Tell) -> str:
    digest, done, marks = hashlib.sha256(), 0, 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            if done * 10 // max(size, 1) > marks:
                marks = done * 10 // max(size, 1)
                tell(done, size)
    return digest.hexdigest()
