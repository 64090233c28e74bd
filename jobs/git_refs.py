"""What a ref means in one of our mirrors; refuses what no branch or tag of that mirror reaches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

from jobs.errors import UsageError
from jobs.git_names import is_pull
from jobs.git_process import ask

BRANCHES = "refs/remotes/origin/"
TAGS = "refs/tags/origin/"
KEPT = "refs/forkscout/kept/"
SHOWN_LENGTH = 200
FULL_SHA = re.compile(r"[0-9a-f]{40}")
_SHORT_SHA = re.compile(r"[0-9a-f]{7,40}")
_REF = re.compile(r"(?!-)[^\s~^:?*\[\\\x00-\x20\x7f]{1,200}")


@dataclass(frozen=True)
class Commit:
    """One commit that a ref of the mirror reaches; `label` is for people.

    `stands_at` is the latest date among it and all that it stands on: a commit is no older than
    its parents, whatever it claims.
    """

    sha: str
    label: str
    committed_at: datetime
    stands_at: datetime


def resolve(mirror: Path, ref: str) -> Commit:
    """The commit of a full sha, a short sha, a branch or a tag, if a ref of the mirror reaches it.

    Raises `UsageError` with close matches where there is none or more than one.
    """
    wanted = checked_ref(ref)
    names = _names(mirror)
    commits = _candidates(mirror, wanted, names)
    if len(commits) > 1:
        raise UsageError(
            f"{ref!r} means {len(commits)} commits: {', '.join(s[:12] for s in sorted(commits))}",
            advice="Write heads/NAME, tags/NAME or more letters of the sha.",
        )
    if not commits:
        near = get_close_matches(ref, [n.partition("/")[2] for n in names], n=3, cutoff=0.5)
        raise UsageError(
            f"no branch, tag or commit {ref!r}",
            advice=f"Did you mean {', '.join(near)}?" if near else "Check the spelling of the ref.",
        )
    [sha] = commits
    seconds = _seconds_of_line(mirror, sha)
    committed, latest = _moment(seconds[0]), max(map(_moment, seconds))
    return Commit(sha, _label(sha, ref, names), committed, latest)


def holds(mirror: Path, sha: str) -> bool:
    """Whether the mirror exists and a ref of it reaches this full sha."""
    if not FULL_SHA.fullmatch(sha) or not (mirror / "HEAD").exists():
        return False
    try:
        resolve(mirror, sha)
    except UsageError:
        return False
    return True


def is_merged(mirror: Path, sha: str) -> bool:
    """Whether a branch or a tag of the remote reaches this full sha, and not a pull request alone.

    A pull request is kept as a branch of the mirror: what bears such a name is never believed.
    """
    words = ["for-each-ref", "--contains", sha, "--format=%(refname)", BRANCHES, TAGS]
    names = (name.removeprefix(BRANCHES) for name in ask(words, mirror=mirror).split())
    return not all(map(is_pull, names))


def tips(mirror: Path) -> dict[str, str]:
    """Ref to commit, tags peeled; what is not a commit is left out."""
    form = "%(refname)%00%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)"
    output = ask(["for-each-ref", f"--format={form}", BRANCHES, TAGS, KEPT], mirror=mirror)
    tips = {}
    for line in filter(None, output.split("\n")):
        ref, kind, sha, peeled_kind, peeled = line.split("\0")
        if "commit" in (kind, peeled_kind):
            tips[ref] = sha if kind == "commit" else peeled
    return tips


def _names(mirror: Path) -> dict[str, str]:
    """`heads/NAME` and `tags/NAME` to commit."""
    names = {}
    for ref, sha in tips(mirror).items():
        if ref.startswith(BRANCHES):
            names[f"heads/{ref.removeprefix(BRANCHES)}"] = sha
        elif ref.startswith(TAGS):
            names[f"tags/{ref.removeprefix(TAGS)}"] = sha
    return names


def _candidates(mirror: Path, ref: str, names: Mapping[str, str]) -> set[str]:
    if not FULL_SHA.fullmatch(ref):
        exact = ref.removeprefix("refs/")
        spellings = (f"heads/{ref}", f"tags/{ref}", exact, f"heads/{ref.removeprefix('origin/')}")
        found = {names[name] for name in spellings if name in names}
        if found or not _SHORT_SHA.fullmatch(ref):
            return found
    # A list of what refs reach, and no look-up of the sha: that would fetch it from the remote.
    reachable = ask(["rev-list", "--all"], mirror=mirror).split()
    return {sha for sha in reachable if sha.startswith(ref)}


def _label(sha: str, ref: str, names: Mapping[str, str]) -> str:
    if sha.startswith(ref):
        tags = sorted(
            n.removeprefix("tags/") for n, s in names.items() if s == sha and "tags/" in n
        )
        return tags[0] if tags else sha[:9]
    return ref


def _seconds_of_line(mirror: Path, sha: str) -> list[str]:
    """Times of the commit and of all that it stands on, itself first."""
    words = ["log", "--topo-order", "--no-patch", "--format=%ct", "--end-of-options", sha]
    return ask(words, mirror=mirror).split()


def _moment(seconds: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(seconds), tz=UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, tz=UTC)


def checked_ref(ref: str) -> str:
    if not _REF.fullmatch(ref) or ".." in ref or "@{" in ref:
        raise UsageError(
            f"{ref[:SHOWN_LENGTH]!r} cannot be a ref", advice="Give a branch, a tag or a sha."
        )
    return ref
