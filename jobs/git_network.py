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

from jobs.errors import Permanent, Transient
from jobs.git import checked_url, drop_stale_locks, locked
from jobs.git_held import CANDIDATES, REMOTES, Held, held_by, held_of, namespace, tips
from jobs.git_memory import TooMuch
from jobs.git_names import BRANCH, TAG, is_readable
from jobs.git_packs import FETCH_SECONDS, bounded, drop_partial_packs
from jobs.git_process import TooSlow, ask
from jobs.git_remote import default_branch, remote_refs

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

SEEN = "refs/forkscout/seen/"
PARTS = ("heads/", "tags/")
LEFT = "left/"
COMMITS_LIMIT = 100_000  # commits a single repository may bring; llama.cpp has 10,000 in all
LISTED_BYTES_LIMIT = 16 * 2**20  # 400,000 commits as they are counted
COMMITS_BYTES_LIMIT = 64 * 2**20  # all of llama.cpp's commit messages are 10 MB
PACK_ABOVE_REFS = 200
LEFT_LIMIT = 20  # old tips kept of a candidate
PACKS_LIMIT = 100  # every fetch leaves a pack, and git looks into each of them


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
    if held is not None and listed.refs == held.objects:
        return Tips(held.commits, refused=listed.refused)
    network.parent.mkdir(parents=True, exist_ok=True)
    with locked(network):
        _ensure(network)
        room = CANDIDATES if candidate else REMOTES
        here, refs = held_of(network, number, room=room), listed.refs
        old = here.objects
        if not heads and any(ref.startswith(BRANCH) for ref in old):
            raise Transient(f"{url} shows no branches", advice="It is tried again later.")
        moved = {ref for ref in old.keys() | refs.keys() if old.get(ref) != refs.get(ref)}
        if moved:
            left = [old[ref] for ref in moved if ref in old]
            name = namespace(room, number)
            specs = [f"+refs/{part}*:{name}{part}*" for part in PARTS]
            _fetch(network, url, name, left, specs, tick=tick, token=token)
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
        _ensure(network)
        room = namespace(REMOTES, number)
        old = tips(network, number)
        specs = [f"+{ref}:{room}{ref.removeprefix('refs/')}" for ref in pulls]
        left = [old[ref] for ref in pulls if ref in old]
        _fetch(network, url, room, left, specs, tick=tick, token=token)
        held = tips(network, number)
        now = {ref: held[ref] for ref in pulls if ref in held}
        return Tips(now, fetched=now != {ref: old.get(ref) for ref in pulls})


def drop(network: Path, number: int) -> None:
    """Forget all refs of a candidate, old tips included; what others hold too is not touched."""
    if not (network / "HEAD").exists():
        return
    with locked(network):
        drop_stale_locks(network)
        _delete_all(network, namespace(CANDIDATES, number))


def tidy(network: Path, *, tick: Callable[[], None] | None = None) -> bool:
    """Make one pack of many, once there are many; whether that was needed."""
    packs = len(list((network / "objects" / "pack").glob("*.pack")))
    if packs <= PACKS_LIMIT:
        return False
    with locked(network):
        ask(["repack", "-a", "-d", "--quiet"], mirror=network, online=True, tick=tick)
        ask(["pack-refs", "--all"], mirror=network)
    return True


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
    url: str,
    room: str,
    left: Sequence[str],
    specs: Sequence[str],
    *,
    tick: Callable[[], None] | None,
    token: SecretStr | None,
) -> None:
    drop_stale_locks(network)
    drop_partial_packs(network)
    is_candidate = room.startswith(CANDIDATES)
    kept = f"{room}{LEFT}" if is_candidate else SEEN
    _change_refs(network, [f"update {kept}{sha} {sha}" for sha in set(left)])
    ask(["config", "remote.origin.url", checked_url(url)], mirror=network)
    ask(
        [
            *("fetch", "--progress", "--prune", "--no-tags", "--no-auto-maintenance"),
            *("--no-recurse-submodules", "--no-write-fetch-head", "--filter=blob:none"),
            *("--end-of-options", "origin", *specs),
        ],
        mirror=network,
        url=url,
        seconds=FETCH_SECONDS,
        tick=bounded(network, tick),
        token=token,
    )
    _refuse_flood(network, url, room)
    _forget_reached(network, left, kept, (room,) if is_candidate else ())
    if is_candidate:
        _forget_oldest(network, kept)


def _refuse_flood(network: Path, url: str, room: str) -> None:
    """A repository with too much history of its own would slow every look at all the others."""
    others = ["--not", f"--exclude={room}*", "--glob=refs/"]
    words = ["rev-list", f"--glob={room}", *others]
    check = ["cat-file", "--batch-check=%(objectsize)"]
    try:
        own = ask(words, mirror=network, output_bytes=LISTED_BYTES_LIMIT)
        count = own.count("\n")
        sizes = ask(check, mirror=network, text=own).split() if count <= COMMITS_LIMIT else ()
        told = f"{count} commits"
        is_flood = count > COMMITS_LIMIT or sum(map(int, sizes)) > COMMITS_BYTES_LIMIT
    except (TooMuch, TooSlow):
        told, is_flood = "too many commits to count", True
    if is_flood:
        _delete_all(network, room)
        raise Permanent(
            f"{url} brings more history than an honest fork ({told})",
            advice="Nothing of it was taken. Look at the repository by hand.",
        )


def _forget_reached(network: Path, left: Sequence[str], kept: str, rooms: Sequence[str]) -> None:
    """Drop our own refs on old tips that a branch or tag of what is watched still reaches.

    A candidate's branches count for itself alone: they may be dropped at any time.
    """
    if not left:
        return
    globs = ["--glob=refs/remotes/", *(f"--glob={room}{part}" for room in rooms for part in PARTS)]
    words = ["rev-list", "--stdin", "--not", *globs]
    lost = set(ask(words, mirror=network, text="\n".join([*left, ""])).split())
    _change_refs(network, [f"delete {kept}{sha}" for sha in set(left) - lost])


def _forget_oldest(network: Path, kept: str) -> None:
    words = ["for-each-ref", "--sort=-committerdate", "--format=%(refname)", kept]
    refs = ask(words, mirror=network).split()
    _change_refs(network, [f"delete {ref}" for ref in refs[LEFT_LIMIT:]])


def _delete_all(network: Path, room: str) -> None:
    """Raises `Permanent` where a ref of the room would stay."""
    listing = ["for-each-ref", "--format=%(refname)", room]
    refs = filter(None, ask(listing, mirror=network, exact=True).split("\n"))
    _change_refs(network, [f"delete {ref}" for ref in refs])
    left = ask([*listing, "--count=1"], mirror=network).strip()
    if left:
        raise Permanent(
            f"refs under {room} cannot be deleted",
            advice="Delete them by hand, with git update-ref in the network's repository.",
        )


def _change_refs(network: Path, lines: Sequence[str]) -> None:
    if lines:
        text = "".join(f"{line}\n" for line in lines)
        ask(["update-ref", "--no-deref", "--stdin"], mirror=network, text=text)
