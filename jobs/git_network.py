"""One bare repository without file contents for a whole network of forks.

It lists first and fetches only what moved, gives every fork a namespace of its own, and keeps what
a force push or a deletion left behind. It refuses ref names that nobody could read, and more refs,
commits or bytes than an honest fork has.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from jobs.errors import Permanent, Transient, UsageError
from jobs.git import checked_url, drop_stale_locks, locked
from jobs.git_held import CANDIDATES, REMOTES, Held, held_by, held_of, namespace, tips
from jobs.git_names import BRANCH, TAG, is_readable
from jobs.git_process import ask
from jobs.git_refs import FULL_SHA
from jobs.git_remote import default_branch, remote_refs

__all__ = [
    "BRANCH",
    "SEEN",
    "TAG",
    "Held",
    "Tips",
    "default_branch",
    "drop",
    "file_ids",
    "held_by",
    "is_readable",
    "read_files",
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
COMMITS_BYTES_LIMIT = 64 * 2**20  # all of llama.cpp's commit messages are 10 MB
FETCH_BYTES_LIMIT = 512 * 2**20  # a first fetch of llama.cpp without contents is 15 MB
FETCH_SECONDS = 300.0  # nobody else can fetch meanwhile
FILE_BYTES_LIMIT = 4 * 2**20  # the largest source we read has 0.2 MB
PACK_ABOVE_REFS = 200
# Git may die of the pipe to the fetch that it was refused, before it can say what it lacks.
ABSENT = (1, 128, -signal.SIGPIPE)
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
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> Tips:
    """Bring the namespace of repository `number` up to date; fetches only when a ref moved.

    Where all branches stand at `known` commits, or the list is what `held_by` said as `held`, the
    list is enough and nothing is fetched. Of a
    `candidate` only a few old tips stay, of others all. Raises `Transient` where the remote forgot
    all its branches: that is doubt, not a deletion.
    """
    listed = remote_refs(url, tick=tick, token=token)
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


def read_files(
    network: Path,
    url: str,
    wanted: Iterable[tuple[str, str]],
    *,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> dict[tuple[str, str], str]:
    """Texts by (commit, path); a path that is no plain file there is left out.

    Fetches only these contents. A file larger than `FILE_BYTES_LIMIT` is a `Permanent` fault.
    """
    named = file_ids(network, wanted)
    texts: dict[str, str] = {}
    with locked(network):
        missing = [blob for blob in sorted(set(named.values())) if not _is_here(network, blob)]
        if missing:
            _drop_partial_packs(network)
            ask(["config", "remote.origin.url", checked_url(url)], mirror=network)
            ask(
                [
                    *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"),
                    *("--no-write-fetch-head", "--no-auto-maintenance", "--filter=blob:none"),
                    *("--no-recurse-submodules", "--end-of-options", "origin", *missing),
                ],
                mirror=network,
                url=url,
                seconds=FETCH_SECONDS,
                tick=_bounded(network, tick),
                token=token,
            )
    for blob in set(named.values()):
        size = int(ask(["cat-file", "-s", blob], mirror=network))
        if size > FILE_BYTES_LIMIT:
            raise Permanent(
                f"{url}: a source of {size} bytes is not read",
                advice="Look at the repository by hand.",
            )
        texts[blob] = ask(["cat-file", "blob", blob], mirror=network)
    return {place: texts[blob] for place, blob in named.items()}


def file_ids(network: Path, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Content ids by (commit, path), read from trees alone: equal ids are equal files."""
    paths: dict[str, list[str]] = {}
    for sha, path in wanted:
        if not FULL_SHA.fullmatch(sha):
            raise UsageError(f"{sha!r} is not a full sha", advice="Resolve the ref first.")
        paths.setdefault(sha, []).append(path)
    found = {}
    for sha, names in paths.items():
        listed = ask(["ls-tree", "-z", "--full-tree", sha, "--", *names], mirror=network)
        for entry in filter(None, listed.split("\0")):
            about, _, path = entry.partition("\t")
            mode, kind, blob = about.split(" ")
            if kind == "blob" and mode.startswith("100"):
                found[sha, path] = blob
    return found


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
    _drop_partial_packs(network)
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
        tick=_bounded(network, tick),
        token=token,
    )
    _refuse_flood(network, url, room)
    _forget_reached(network, left, kept, (room,) if is_candidate else ())
    if is_candidate:
        _forget_oldest(network, kept)


def _refuse_flood(network: Path, url: str, room: str) -> None:
    """A repository with too much history of its own would slow every look at all the others."""
    others = ["--not", f"--exclude={room}*", "--glob=refs/"]
    own = ask(["rev-list", f"--glob={room}", *others], mirror=network)
    count = own.count("\n")
    check = ["cat-file", "--batch-check=%(objectsize)"]
    sizes = ask(check, mirror=network, text=own).split() if count <= COMMITS_LIMIT else ()
    if count > COMMITS_LIMIT or sum(map(int, sizes)) > COMMITS_BYTES_LIMIT:
        _delete_all(network, room)
        raise Permanent(
            f"{url} brings more history than an honest fork ({count} commits)",
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


def _is_here(network: Path, sha: str) -> bool:
    """Asked without any transport, so that looking never fetches."""
    return bool(ask(["cat-file", "-t", sha], mirror=network, empty_codes=ABSENT).strip())


def _drop_partial_packs(network: Path) -> None:
    """We hold the network's lock: what is still arriving belongs to a git that was stopped."""
    for path in (network / "objects" / "pack").glob("tmp_*"):
        path.unlink(missing_ok=True)


def _bounded(network: Path, tick: Callable[[], None] | None) -> Callable[[], None]:
    def watch() -> None:
        if tick is not None:
            tick()
        arriving = 0
        for path in (network / "objects" / "pack").glob("tmp_*"):
            arriving += path.stat().st_size if path.exists() else 0
        if arriving > FETCH_BYTES_LIMIT:
            raise Permanent(
                f"a repository sends more than {FETCH_BYTES_LIMIT} bytes of history",
                advice="Nothing of it was taken. Look at the repository by hand.",
            )

    return watch
