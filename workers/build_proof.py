"""What really runs: the server's program and loaded libraries, by digest; it judges nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_LIBRARIES = 64
MOST_BYTES = 2 * 2**30
MOST_MAP_BYTES = 8 * 2**20
CHUNK_BYTES = 2**20


def build_proof(pid: int | None, artifact: Path, inside: str) -> dict[str, Any]:
    """Program and libraries of a process, as paths inside the artifact; nothing of the machine.

    `inside` is where the process sees the artifact. What cannot be read is left out: the proof is
    then smaller, never wrong.
    """
    if pid is None:
        return {}
    process = Path("/proc") / str(pid)
    roots = (str(artifact), inside)
    program = _within(_target(process / "exe"), roots)
    proof: dict[str, Any] = {
        "program": program,
        "program_sha256": _digest(process / "exe"),
        "libraries": {},
    }
    left = MOST_BYTES
    for path in _mapped(process, roots)[:MOST_LIBRARIES]:
        name = _within(path, roots)
        file = artifact / str(name)
        try:
            left -= file.stat().st_size
        except OSError:
            continue
        if name != program and left >= 0:
            proof["libraries"][name] = _digest(file)
    return proof


def _mapped(process: Path, roots: tuple[str, ...]) -> list[str]:
    """Files of the artifact that the process has mapped."""
    try:
        with (process / "maps").open(errors="replace") as file:
            text = file.read(MOST_MAP_BYTES)
    except OSError:
        return []
    return sorted(set(_paths(text, roots)))


def _paths(maps: str, roots: tuple[str, ...]) -> Iterator[str]:
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and _within(fields[5], roots) is not None:
            yield fields[5]


def _within(path: str, roots: tuple[str, ...]) -> str | None:
    for root in roots:
        if path.startswith(root.rstrip("/") + "/"):
            return path.removeprefix(root.rstrip("/") + "/")
    return None


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _digest(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()
