"""What the network holds of each repository, by ref; it asks nobody else.

It refuses ref names that nobody could read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.git_process import ask

BRANCH, TAG = "refs/heads/", "refs/tags/"
NAME_LENGTH = 200
_NAME = re.compile(r"refs/(heads|tags)/(?![-.])[^\s~^:?*\[\\]+")


@dataclass(frozen=True)
class Held:
    """Full ref name to object as fetched, and to the commit it stands for where it is one."""

    objects: Mapping[str, str]
    commits: Mapping[str, str]


NOTHING = Held({}, {})


def is_readable(ref: str) -> bool:
    """Whether a branch or tag has a name that can be shown, stored and typed."""
    return (
        len(ref) <= NAME_LENGTH
        and ref.isprintable()
        and _NAME.fullmatch(ref) is not None
        and not any(bad in ref for bad in ("..", "@{", "//", "/."))
        and not ref.endswith((".lock", "/", "."))
    )


def tips(network: Path, number: int) -> Mapping[str, str]:
    """Full ref name to commit of repository `number`, tags peeled; other objects are left out."""
    return held_of(network, number).commits


def held_of(network: Path, number: int) -> Held:
    """What is held of one repository."""
    return _held(network, namespace(number)).get(number, NOTHING)


def held_by(network: Path) -> dict[int, Held]:
    """What is held of each repository, by its number."""
    return _held(network, "refs/remotes/") if (network / "HEAD").exists() else {}


def _held(network: Path, under: str) -> dict[int, Held]:
    form = "%(refname)%00%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)"
    output = ask(["for-each-ref", f"--format={form}", under], mirror=network)
    found: dict[int, tuple[dict[str, str], dict[str, str]]] = {}
    for line in filter(None, output.split("\n")):
        name, kind, sha, peeled_kind, peeled = line.split("\0")
        number, _, rest = name.removeprefix("refs/remotes/").partition("/")
        objects, commits = found.setdefault(int(number), ({}, {}))
        ref = f"refs/{rest}"
        if is_readable(ref):
            objects[ref] = sha
            if "commit" in (kind, peeled_kind):
                commits[ref] = sha if kind == "commit" else peeled
    return {number: Held(*both) for number, both in found.items()}


def namespace(number: int) -> str:
    """Where the refs of a repository lie."""
    return f"refs/remotes/{int(number)}/"
