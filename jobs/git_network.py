"""One bare repository without file contents for a whole network of forks.

It lists first and fetches only what moved, gives every fork a namespace of its own, and keeps what
a force push or a deletion left behind. It refuses ref names that nobody could read, and more refs,
commits or bytes than an honest fork has.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from jobs.errors import Transient
from jobs.git import checked_url, drop_stale_locks, locked
from jobs.git_arrival import bring, is_unjudged, judge_what_is_left
from jobs.git_held import CANDIDATES, REMOTES, SEEN, Held, held_by, held_of, namespace, tips
from jobs.git_names import BRANCH, TAG, is_readable
from jobs.git_packs import FETCH_SECONDS, arriving, bounded
from jobs.git_process import ask
from jobs.git_remote import default_branch, remote_refs
from jobs.git_rooms import PARTS, Room, delete_all, give_rooms, room_of

__all__ = [
    "BRANCH",
    "SEEN",
    "TAG",
    "Held",
    "Tips",
    "default_branch",
    "drop",
    "held_by",
    "is_readable",
    "remote_refs",
    "tidy",
    "tips",
    "update",
    "update_pulls",
]

PACK_ABOVE_REFS = 200
PACKS_LIMIT = 100  # every fetch leaves a pack, and git looks into each of them
ROOMS_GIVEN = "forkscout-rooms"
"""Marks a network in which old tips lie under the number of the repository that left them."""


@dataclass(frozen=True)
class Tips:
    """Commits by full ref name; `fetched` says whether a ref had moved, `refused` how many names
    were not taken."""

    commits: Mapping[str, str]
    fetched: bool = False
    refused: int = 0


def update(
    network: Path,
    url: str,
    number: int,
    *,
    known: Set[str] = frozenset(),
    held: Held | None = None,
    candidate: bool = False,
    is_fork: bool = False,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> Tips:
    """Bring the namespace of repository `number` up to date; fetches only when a ref moved.

    Where all branches stand at `known` commits, or the list is what `held_by` said as `held`, the
    list is enough and nothing is fetched. Where it `is_fork`, as a candidate always is, the list
    comes in one request. Of a `candidate` only a few old tips stay, of others all. Raises
    `Transient` where the remote forgot all its branches: that is doubt, not a deletion.
    """
    listed = remote_refs(url, in_one=is_fork or candidate, tick=tick, token=token)
    heads = {sha for ref, sha in listed.refs.items() if ref.startswith(BRANCH)}
    if heads and heads <= known:
        return Tips(listed.commits, refused=listed.refused)
    if held is not None and listed.refs == held.objects and not is_unjudged(network):
        return Tips(held.commits, refused=listed.refused)
    network.parent.mkdir(parents=True, exist_ok=True)
    with locked(network):
        _ready(network)
        room = CANDIDATES if candidate else REMOTES
        here, refs = held_of(network, number, room=room), listed.refs
        old = here.objects
        if not heads and any(ref.startswith(BRANCH) for ref in old):
            raise Transient(f"{url} shows no branches", advice="It is tried again later.")
        moved = {ref for ref in old.keys() | refs.keys() if old.get(ref) != refs.get(ref)}
        if moved:
            left = [old[ref] for ref in moved if ref in old]
            into = room_of(url, number, room=room)
            specs = [f"+refs/{part}*:{into.space}{part}*" for part in PARTS]
            _fetch(network, into, left, specs, tick=tick, token=token)
            if len(moved) > PACK_ABOVE_REFS:
                ask(["pack-refs", "--all"], mirror=network)
        now = tips(network, number, room=room) if moved else here.commits
        if candidate:
            # What a tag of a tag stands for is said by the list alone, at every look alike.
            now = {
                **{ref: sha for ref, sha in listed.commits.items() if ref.startswith(TAG)},
                **now,
            }
        return Tips(now, fetched=bool(moved), refused=listed.refused)


def update_pulls(
    network: Path,
    url: str,
    number: int,
    pulls: Sequence[str],
    *,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> Tips:
    """Bring the heads of these pull requests up to date, and nothing else of their repository.

    `pulls` are full ref names. One request where nothing moved: a list would name every pull
    request there ever was.
    """
    network.parent.mkdir(parents=True, exist_ok=True)
    with locked(network):
        _ready(network)
        into = room_of(url, number, room=REMOTES)
        old = tips(network, number)
        specs = [f"+{ref}:{into.space}{ref.removeprefix('refs/')}" for ref in pulls]
        left = [old[ref] for ref in pulls if ref in old]
        _fetch(network, into, left, specs, tick=tick, token=token)
        held = tips(network, number)
        now = {ref: held[ref] for ref in pulls if ref in held}
        return Tips(now, fetched=now != {ref: old.get(ref) for ref in pulls})


def drop(network: Path, number: int) -> None:
    """Forget all refs of a candidate, old tips included; what others hold too is not touched."""
    if not (network / "HEAD").exists():
        return
    with locked(network):
        drop_stale_locks(network)
        delete_all(network, namespace(CANDIDATES, number))


def tidy(network: Path, *, tick: Callable[[], None] | None = None) -> bool:
    """Make one pack of many, once there are many; whether that was needed."""
    packs = len(list((network / "objects" / "pack").glob("*.pack")))
    if packs <= PACKS_LIMIT:
        return False
    with locked(network), arriving(network):
        ask(["repack", "-a", "-d", "--quiet"], mirror=network, online=True, tick=tick)
        ask(["pack-refs", "--all"], mirror=network)
    return True


def _ready(network: Path) -> None:
    """Make the network where there is none, and put in order what is left of earlier looks."""
    _ensure(network)
    drop_stale_locks(network)
    judge_what_is_left(network)
    if not (network / ROOMS_GIVEN).exists():
        give_rooms(network)
        (network / ROOMS_GIVEN).touch()


def _ensure(network: Path) -> None:
    if (network / "HEAD").exists():
        return
    with tempfile.TemporaryDirectory(prefix=".new-", dir=network.parent) as folder:
        fresh = Path(folder) / "network"
        ask(["init", "--quiet", "--bare", "--template=", "--end-of-options", str(fresh)])
        for name, value in (
            # One promisor whose address is set for each fetch: with one for every fork, git would
            # ask them all in turn for a content that it lacks.
            ("remote.origin.url", "none"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialCloneFilter", "blob:none"),
            ("gc.auto", "0"),
        ):
            ask(["config", name, value], mirror=fresh)
        fresh.rename(network)


def _fetch(
    network: Path,
    room: Room,
    left: Sequence[str],
    specs: Sequence[str],
    *,
    tick: Callable[[], None] | None,
    token: SecretStr | None,
) -> None:
    ask(["config", "remote.origin.url", checked_url(room.url)], mirror=network)
    words = [
        *("fetch", "--progress", "--prune", "--no-tags", "--no-auto-maintenance"),
        *("--no-recurse-submodules", "--no-write-fetch-head", "--filter=blob:none"),
        *("--end-of-options", "origin", *specs),
    ]

    def fetch() -> None:
        ask(
            words,
            mirror=network,
            url=room.url,
            seconds=FETCH_SECONDS,
            tick=bounded(network, tick),
            token=token,
        )

    bring(network, room, left, fetch)
