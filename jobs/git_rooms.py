"""The room of each repository in the network: what it may hold, and what it left behind.

It refuses more history than an honest repository has, whatever its branches are called and however
many pushes brought it: what was left behind counts, and the oldest of it goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from jobs.errors import Permanent
from jobs.git_held import CANDIDATES, REMOTES, SEEN, namespace
from jobs.git_memory import TooMuch
from jobs.git_process import TooSlow, ask
from jobs.git_refs import FULL_SHA

PARTS = ("heads/", "tags/")
LEFT = "left/"
COMMITS_LIMIT = 50_000  # commits a single repository may bring; llama.cpp has 10,000 in all
LISTED_BYTES_LIMIT = 16 * 2**20  # 400,000 commits as they are counted
COMMITS_BYTES_LIMIT = 64 * 2**20  # all of llama.cpp's commit messages are 10 MB
LEFT_LIMIT = 20  # old tips kept of a candidate
SEEN_LIMIT = 500  # old tips kept of what is watched: a forced push on each day of a year and more
UNOWNED = 0
"""The number under which old tips lie of which nobody knows any more whose they were."""
_log = structlog.get_logger(__name__)


class Flood(Permanent):
    """More history than an honest repository has; no ref of it is left"""


@dataclass(frozen=True)
class Room:
    """Where the refs of one repository lie, and the tips it left behind."""

    url: str
    space: str
    kept: str

    @property
    def is_candidate(self) -> bool:
        """Whether it may be forgotten at any time."""
        return self.space.startswith(CANDIDATES)


def room_of(url: str, number: int, *, room: str) -> Room:
    """The room of repository `number`."""
    space = namespace(room, number)
    return Room(url, space, f"{space}{LEFT}" if room == CANDIDATES else namespace(SEEN, number))


def keep_left(network: Path, room: Room, left: Sequence[str]) -> None:
    """Refs of our own on tips that are about to move or go."""
    change_refs(network, [f"update {room.kept}{sha} {sha}" for sha in set(left)])


def refuse_flood(network: Path, room: Room, left: Sequence[str]) -> None:
    """A repository with too much history of its own would slow every look at all the others.

    What it left behind gives way to what it has, and older to newer; `left` is newest of all.
    """
    tips = [] if room.is_candidate else _newest_first(network, room.kept, left)
    few = min(len(tips), SEEN_LIMIT)
    if _excess(network, room, tips[:few]):
        told = _excess(network, room)
        if told:
            delete_all(network, room.space)
            raise Flood(
                f"{room.url} brings more history than an honest fork ({told})",
                advice="Nothing of it was taken. Look at the repository by hand.",
            )
        while few and _excess(network, room, tips[:few]):
            few //= 2
    _drop(network, room, tips[few:])


def forget_reached(network: Path, room: Room, left: Sequence[str]) -> None:
    """Drop our own refs on old tips that a branch or tag of the repository still reaches.

    A candidate's may also be reached by what is watched, which is not dropped at any time.
    """
    if not left:
        return
    spaces = [f"{room.space}{part}" for part in PARTS] if room.is_candidate else [room.space]
    globs = [f"--glob={space}" for space in (*spaces, *([REMOTES] * room.is_candidate))]
    words = ["rev-list", "--stdin", "--not", *globs]
    lost = set(ask(words, mirror=network, text="\n".join([*left, ""])).split())
    change_refs(network, [f"delete {room.kept}{sha}" for sha in set(left) - lost])


def forget_oldest(network: Path, room: Room) -> None:
    """Of what a candidate left behind only the newest tips stay."""
    if room.is_candidate:
        tips = _newest_first(network, room.kept, ())
        change_refs(network, [f"delete {room.kept}{sha}" for sha in tips[LEFT_LIMIT:]])


def give_rooms(network: Path) -> None:
    """Old tips of all repositories once lay together: they stay readable, and within bounds."""
    words = ["for-each-ref", "--format=%(refname)", SEEN]
    old = [
        sha
        for ref in ask(words, mirror=network, exact=True).split("\n")
        if FULL_SHA.fullmatch(sha := ref.removeprefix(SEEN))
    ]
    room = Room("repositories of earlier days", namespace(SEEN, UNOWNED), namespace(SEEN, UNOWNED))
    keep_left(network, room, old)
    change_refs(network, [f"delete {SEEN}{sha}" for sha in old])
    tips = _newest_first(network, room.kept, ())
    few = min(len(tips), SEEN_LIMIT)
    while few and _excess(network, room, tips[:few], only_tips=True):
        few //= 2
    _drop(network, room, tips[few:])


def delete_all(network: Path, space: str) -> None:
    """Raises `Permanent` where a ref of the room would stay."""
    listing = ["for-each-ref", "--format=%(refname)", space]
    refs = filter(None, ask(listing, mirror=network, exact=True).split("\n"))
    change_refs(network, [f"delete {ref}" for ref in refs])
    left = ask([*listing, "--count=1"], mirror=network).strip()
    if left:
        raise Permanent(
            f"refs under {space} cannot be deleted",
            advice="Delete them by hand, with git update-ref in the network's repository.",
        )


def change_refs(network: Path, lines: Sequence[str]) -> None:
    """Changes of refs as `git update-ref --stdin` takes them."""
    if lines:
        text = "".join(f"{line}\n" for line in lines)
        ask(["update-ref", "--no-deref", "--stdin"], mirror=network, text=text)


def _excess(network: Path, room: Room, tips: Sequence[str] = (), *, only_tips: bool = False) -> str:
    """How much too much the room and these tips are beyond all others; empty where they are not."""
    own = [] if only_tips else [f"--glob={room.space}"]
    excluded = [f"--exclude={space}*" for space in (room.space, room.kept)]
    words = ["rev-list", *own, "--stdin", "--not", *excluded, "--glob=refs/"]
    check = ["cat-file", "--batch-check=%(objectsize)"]
    text = "".join(f"{sha}\n" for sha in tips)
    try:
        listed = ask(words, mirror=network, text=text, output_bytes=LISTED_BYTES_LIMIT)
        count = listed.count("\n")
        if count <= COMMITS_LIMIT:
            sizes = ask(check, mirror=network, text=listed).split()
            if sum(map(int, sizes)) <= COMMITS_BYTES_LIMIT:
                return ""
    except (TooMuch, TooSlow):
        return "too many commits to count"
    return f"{count} commits"


def _newest_first(network: Path, kept: str, left: Sequence[str]) -> list[str]:
    words = ["for-each-ref", "--sort=-committerdate", "--format=%(objectname)", kept]
    tips = ask(words, mirror=network).split()
    return sorted(tips, key=lambda sha: sha not in left)


def _drop(network: Path, room: Room, tips: Sequence[str]) -> None:
    if tips:
        change_refs(network, [f"delete {room.kept}{sha}" for sha in tips])
        _log.warning("old tips dropped", repository=room.url, count=len(tips))
