"""Reads commits and the paths they touch from a bare repository; refuses every file content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jobs.git_held import CANDIDATES, REMOTES, SEEN
from jobs.git_memory import TooMuch
from jobs.git_process import TooSlow, ask, fields
from jobs.git_refs import FULL_SHA
from jobs.git_rooms import UNOWNED

AUTHOR_LENGTH = 80
SUBJECT_LENGTH = 240
CHANGED_COMMITS_LIMIT = 2000
PATHS_BYTES_LIMIT = 8 * 2**20  # 100,000 names of 80 letters
_FIELDS = f"%H%x00%P%x00%at%x00%ct%x00%<({AUTHOR_LENGTH},trunc)%an%x00%<({SUBJECT_LENGTH},trunc)%s"
_FIELD_COUNT = 6
ROOMS = (REMOTES, CANDIDATES, SEEN)
HISTORY_COMMITS_LIMIT = 75_000  # what is read at once is held in memory, 1 KB a commit at most
HISTORY_BYTES_LIMIT = 64 * 2**20  # as git writes them; llama.cpp's 10,000 are 4 MB


class CommitFacts(NamedTuple):
    """A commit without its contents; times are Unix seconds, texts are a stranger's."""

    sha: str
    parents: tuple[str, ...]
    authored_at: int
    committed_at: int
    author: str
    subject: str


def commits(network: Path, numbers: Sequence[int]) -> Iterator[CommitFacts]:
    """Commits that these repositories have or left behind; children first.

    Raises `TooMuch` where they are more than we hold.
    """
    words = ["log", "--topo-order", "--no-show-signature", "-z", f"--format=tformat:{_FIELDS}"]
    globs = [glob for number in (*numbers, UNOWNED) for glob in _globs(number)]
    read = fields([*words, *globs], mirror=network, output_bytes=HISTORY_BYTES_LIMIT)
    facts = zip(*[read] * _FIELD_COUNT, strict=False)
    for count, (sha, parents, authored, committed, author, subject) in enumerate(facts):
        if count == HISTORY_COMMITS_LIMIT:
            raise TooMuch(
                f"more than {HISTORY_COMMITS_LIMIT} commits to be read at once",
                advice="Look at the repositories by hand.",
            )
        yield CommitFacts(
            sha,
            tuple(parents.split()),
            _seconds(authored),
            _seconds(committed),
            printable(author[:AUTHOR_LENGTH]),
            printable(subject[:SUBJECT_LENGTH]),
        )


def commit_counts(network: Path, numbers: Sequence[int]) -> dict[int, int]:
    """How many commits each of these repositories has, with what it left behind."""
    words = ["rev-list", "--count"]
    return {each: int(ask([*words, *_globs(each)], mirror=network)) for each in numbers}


def _globs(number: int) -> list[str]:
    return [f"--glob={room}{int(number)}/" for room in ROOMS]


def changed_paths(network: Path, shas: Sequence[str]) -> set[str] | None:
    """Paths that these commits touch against their parents, by trees alone; merges touch none.

    None where they are too many.
    """
    files = changed_files(network, shas)
    return None if files is None else set().union(*files.values())


def paths_between(network: Path, before: str, after: str) -> set[str] | None:
    """Paths in which two commits differ, by trees alone.

    None where they are too many, or where one is no text that can be shown as it is.
    """
    if not (FULL_SHA.fullmatch(before) and FULL_SHA.fullmatch(after)):
        return None
    words = ["diff-tree", "-r", "--no-renames", "-z", "--name-only", "--end-of-options"]
    try:
        output = ask([*words, before, after], mirror=network, output_bytes=PATHS_BYTES_LIMIT)
    except (TooMuch, TooSlow):
        return None
    found = set(filter(None, output.split("\0")))
    return found if all(printable(path) == path for path in found) else None


def changed_files(network: Path, shas: Sequence[str]) -> dict[str, set[str]] | None:
    """By commit the paths it touches, of a bounded number of commits; one that touches none is not
    in it. None where the paths are too many: a dozen objects can stand for more than any machine
    holds."""
    asked = [sha for sha in shas[:CHANGED_COMMITS_LIMIT] if FULL_SHA.fullmatch(sha)]
    if not asked:
        return {}
    words = ["diff-tree", "--stdin", "-r", "--root", "--no-renames", "-z", "--name-only"]
    text = "".join(f"{sha}\n" for sha in asked)
    try:
        output = ask(words, mirror=network, text=text, output_bytes=PATHS_BYTES_LIMIT)
    except (TooMuch, TooSlow):
        return None
    found: dict[str, set[str]] = {}
    waiting = dict.fromkeys(asked)
    paths: set[str] = set()
    for field in filter(None, output.split("\0")):
        if field in waiting:
            del waiting[field]
            paths = found.setdefault(field, set())
        else:
            paths.add(printable(field))
    return found


def printable(text: str) -> str:
    """A stranger's text as one line that no terminal or page takes for more than text."""
    text = text.strip()
    return text if text.isprintable() else "".join(c for c in text if c.isprintable()).strip()


def _seconds(text: str) -> int:
    try:
        return min(max(int(text), 0), 2**33)
    except ValueError:
        return 0
