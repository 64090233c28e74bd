"""Names of files on the model hub and of the sets they come in; refuses what could mean a path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.errors import UsageError

MAIN = "main"
ENDING = ".gguf"
COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
LONGEST_FILE_NAME = 300
LONGEST_STEP_BYTES = 200
"""A name in a folder of ours, with room for what we put behind it."""
MOST_SHARDS = 512

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,99}", re.ASCII)
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.ASCII)
_FORM = "write OWNER/REPOSITORY/FILE.gguf@REVISION"


@dataclass(frozen=True)
class HubPlace:
    """One file of one repository at a commit, branch or tag."""

    repo: str
    file: str
    revision: str = MAIN


def checked_repo(text: str) -> str:
    """The name of a repository; raises `ValueError`."""
    if not _REPOSITORY.fullmatch(text) or ".." in text or "--" in text.partition("/")[0]:
        raise ValueError(f"{text[:80]!r} is not an owner/repository of the hub")
    return text


def checked_file(text: str) -> str:
    """The name of a weight file, folders included; raises `ValueError`."""
    why = next((word for step in text.split("/") if (word := _odd(step))), _odd_whole(text))
    if why:
        raise ValueError(f"{text[:80]!r} is not the name of a .gguf file of the hub: {why}")
    shard_files(text)
    return text


def _odd(step: str) -> str:
    """Why a folder or file cannot be called so on a disk, in an address and in an argument."""
    if step in ("", ".", ".."):
        return "it leads elsewhere"
    if not step.isprintable() or step != step.strip():
        return "it holds signs that nobody sees"
    if "\\" in step or step.startswith("-"):
        return "it could be taken for a path or an option"
    if len(step.encode("utf-8", "replace")) > LONGEST_STEP_BYTES:
        return f"a part of it has more than {LONGEST_STEP_BYTES} bytes"
    return ""


def _odd_whole(text: str) -> str:
    if len(text) > LONGEST_FILE_NAME:
        return f"it has more than {LONGEST_FILE_NAME} characters"
    own = text.rpartition("/")[2].lower()
    return "" if own.endswith(ENDING) and own != ENDING else f"it does not end on {ENDING}"


def is_below(path: str) -> bool:
    """Whether a path stays inside its repository when it becomes part of an address."""
    return all(step not in ("", ".", "..") for step in path.split("/"))


def checked_revision(text: str) -> str:
    """A commit, branch or tag; raises `ValueError`."""
    if not _REVISION.fullmatch(text) or ".." in text or "//" in text or text.endswith("/"):
        raise ValueError(f"{text[:80]!r} is not a commit, branch or tag of the hub")
    return text


def checked_commit(text: str) -> str:
    """A full commit; raises `ValueError`."""
    if not COMMIT.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is not a commit of 40 lower-case hex digits")
    return text


def read_place(text: str) -> HubPlace:
    """The place in `OWNER/REPOSITORY/FILE.gguf@REVISION`; without a revision it is `main`."""
    place, at, revision = _split(text.removeprefix("hf:"))
    owner, _, rest = place.partition("/")
    name, _, file = rest.partition("/")
    try:
        return HubPlace(
            checked_repo(f"{owner}/{name}"),
            checked_file(file),
            checked_revision(revision) if at else MAIN,
        )
    except ValueError as error:
        raise UsageError(str(error), advice=_FORM) from error


def _split(text: str) -> tuple[str, str, str]:
    """Place, `@` and revision; a file's own name may hold an `@`, what stands behind it not."""
    if text.lower().endswith(ENDING):
        return text, "", ""
    cut = text.lower().rfind(f"{ENDING}@") + len(ENDING)
    return (text[:cut], "@", text[cut + 1 :]) if cut >= len(ENDING) else text.partition("@")


def shard_files(file: str) -> tuple[str, ...]:
    """All files of the set that this one belongs to, in order; itself where it stands alone.

    Raises `ValueError` for a place that no set has.
    """
    found = _SHARD.fullmatch(file)
    if found is None:
        return (file,)
    number, count = int(found["number"]), int(found["count"])
    if not 1 <= number <= count <= MOST_SHARDS:
        raise ValueError(f"{file[-80:]!r} is a file of no possible set")
    return tuple(f"{found['stem']}-{at:05}-of-{count:05}.gguf" for at in range(1, count + 1))


def set_sha256(shards: Sequence[str]) -> str:
    """What identifies a set: the sha256 over its files' digests, one a line, in order."""
    return hashlib.sha256("".join(f"{sha}\n" for sha in shards).encode()).hexdigest()
