"""What the network holds of each repository, by ref; it asks nobody else, and refuses odd names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.git_names import is_readable
from jobs.git_process import ask

REMOTES, CANDIDATES = "refs/remotes/", "refs/candidates/"
"""Where what is watched lies, and what may be forgotten again."""
SEEN = "refs/forkscout/seen/"
"""Where what a watched repository left behind lies, under its number."""


@dataclass(frozen=True)
class Held:
    """Full ref name to object as fetched, and to the commit it stands for where it is one."""

    objects: Mapping[str, str]
    commits: Mapping[str, str]


NOTHING = Held({}, {})


def namespace(room: str, number: int) -> str:
    """Where the refs of a repository lie."""
    return f"{room}{int(number)}/"


def tips(network: Path, number: int, *, room: str = REMOTES) -> Mapping[str, str]:
    """Full ref name to commit of repository `number`, tags peeled; other objects are left out."""
    return held_of(network, number, room=room).commits


def held_of(network: Path, number: int, *, room: str = REMOTES) -> Held:
    """What is held of one repository."""
    return _held(network, room, namespace(room, number)).get(number, NOTHING)


def held_by(network: Path) -> dict[int, Held]:
    """What is held of each repository that is watched, by its number."""
    return _held(network, REMOTES, REMOTES) if (network / "HEAD").exists() else {}


def _held(network: Path, room: str, under: str) -> dict[int, Held]:
    form = "%(refname)%00%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)"
    output = ask(["for-each-ref", f"--format={form}", under], mirror=network, exact=True)
    found: dict[int, tuple[dict[str, str], dict[str, str]]] = {}
    for line in filter(None, output.split("\n")):
        name, kind, sha, peeled_kind, peeled = line.split("\0")
        number, _, rest = name.removeprefix(room).partition("/")
        objects, commits = found.setdefault(int(number), ({}, {}))
        ref = f"refs/{rest}"
        if is_readable(ref):
            objects[ref] = sha
            if "commit" in (kind, peeled_kind):
                commits[ref] = sha if kind == "commit" else peeled
    return {number: Held(*both) for number, both in found.items()}
