"""One bare repository without file contents for a whole network of forks.

It lists first and fetches only what moved, gives every fork a namespace of its own, and keeps what
a force push or a deletion left behind. It refuses ref names that nobody could read, and more refs,
commits or bytes than an honest fork has.
"""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from jobs.errors import Permanent, Transient, UsageError
from jobs.git import checked_url, drop_stale_locks, locked
from jobs.git_held import BRANCH, TAG, Held, held_by, held_of, is_readable, namespace, tips
from jobs.git_process import ask
from jobs.git_refs import FULL_SHA

__all__ = [
    "BRANCH",
    "SEEN",
    "TAG",
    "Held",
    "Tips",
    "default_branch",
    "file_ids",
    "held_by",
    "is_readable",
    "read_files",
    "remote_refs",
    "tips",
    "update",
]

SEEN = "refs/forkscout/seen/"
REFS_LIMIT = 20_000  # upstream has about 7,000 tags
COMMITS_LIMIT = 100_000  # commits a single repository may bring; llama.cpp has 10,000 in all
COMMITS_BYTES_LIMIT = 64 * 2**20  # all of llama.cpp's commit messages are 10 MB
FETCH_BYTES_LIMIT = 512 * 2**20  # a first fetch of llama.cpp without contents is 15 MB
FILE_BYTES_LIMIT = 4 * 2**20  # the largest source we read has 0.2 MB
PACK_ABOVE_REFS = 200
# Git may die of the pipe to the fetch that it was refused, before it can say what it lacks.
ABSENT = (1, 128, -signal.SIGPIPE)


@dataclass(frozen=True)
class Tips:
    """Commits by full ref name; `fetched` says whether a ref had moved, `refused` how many names
    were not taken."""

    commits: Mapping[str, str]
    fetched: bool = False
    refused: int = 0


def remote_refs(url: str, *, token: SecretStr | None = None) -> tuple[dict[str, str], int]:
    """Branches and tags as the remote says now, tags not peeled, and how many names were refused.

    The list is whole or there is none; GitHub charges it to no quota.
    """
    words = ["ls-remote", "--heads", "--tags", "--quiet", "--end-of-options", checked_url(url)]
    refs: dict[str, str] = {}
    refused = 0
    for line in ask(words, url=url, online=True, token=token).split("\n"):
        sha, _, ref = line.partition("\t")
        if not ref or ref.endswith("^{}"):
            continue
        if FULL_SHA.fullmatch(sha) and is_readable(ref):
            refs[ref] = sha
        else:
            refused += 1
        if len(refs) + refused > REFS_LIMIT:
            raise Permanent(
                f"{url} offers more than {REFS_LIMIT} branches and tags",
                advice="Nothing of it was taken. Look at the repository by hand.",
            )
    return refs, refused


def default_branch(url: str, *, token: SecretStr | None = None) -> str | None:
    """The branch the remote's HEAD stands for, where it says so in a readable name."""
    words = ["ls-remote", "--symref", "--quiet", "--end-of-options", checked_url(url), "HEAD"]
    for line in ask(words, url=url, online=True, token=token).split("\n"):
        found = re.fullmatch(r"ref: (refs/heads/[^\t]+)\tHEAD", line)
        if found and is_readable(found[1]):
            return found[1].removeprefix(BRANCH)
    return None


def update(
    network: Path,
    url: str,
    number: int,
    *,
    held: Held | None = None,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> Tips:
    """Bring the namespace of repository `number` up to date; fetches only when a ref moved.

    `held` is what `held_by` said of it: where the remote says the same, nothing else is read.
    Raises `Transient` where the remote forgot all its branches: that is doubt, not a deletion.
    """
    listed, refused = remote_refs(url, token=token)
    if held is not None and listed == held.objects:
        return Tips(held.commits, refused=refused)
    network.parent.mkdir(parents=True, exist_ok=True)
    with locked(network):
        _ensure(network)
        here = held_of(network, number)
        if any(ref.startswith(BRANCH) for ref in here.objects) and not any(
            ref.startswith(BRANCH) for ref in listed
        ):
            raise Transient(f"{url} shows no branches", advice="It is tried again later.")
        old = here.objects
        moved = {ref for ref in old.keys() | listed.keys() if old.get(ref) != listed.get(ref)}
        if moved:
            left = [old[ref] for ref in moved if ref in old]
            _fetch(network, url, number, left, tick=tick, token=token)
            if len(moved) > PACK_ABOVE_REFS:
                ask(["pack-refs", "--all"], mirror=network)
        now = tips(network, number) if moved else here.commits
        return Tips(now, fetched=bool(moved), refused=refused)


def read_files(
    network: Path,
    url: str,
    wanted: Iterable[tuple[str, str]],
    *,
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
            ask(["config", "remote.origin.url", checked_url(url)], mirror=network)
            ask(
                [
                    *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"),
                    *("--no-write-fetch-head", "--no-auto-maintenance", "--filter=blob:none"),
                    *("--no-recurse-submodules", "--end-of-options", "origin", *missing),
                ],
                mirror=network,
                url=url,
                online=True,
                tick=_bounded(network, None),
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
    number: int,
    left: Sequence[str],
    *,
    tick: Callable[[], None] | None,
    token: SecretStr | None,
) -> None:
    drop_stale_locks(network)
    _change_refs(network, [f"update {SEEN}{sha} {sha}" for sha in set(left)])
    ask(["config", "remote.origin.url", checked_url(url)], mirror=network)
    room = namespace(number)
    ask(
        [
            *("fetch", "--progress", "--prune", "--no-tags", "--no-auto-maintenance"),
            *("--no-recurse-submodules", "--no-write-fetch-head", "--filter=blob:none"),
            *("--end-of-options", "origin"),
            *(f"+refs/heads/*:{room}heads/*", f"+refs/tags/*:{room}tags/*"),
        ],
        mirror=network,
        url=url,
        online=True,
        tick=_bounded(network, tick),
        token=token,
    )
    _refuse_flood(network, url, room)
    _forget_reached(network, left)


def _refuse_flood(network: Path, url: str, room: str) -> None:
    """A repository with too much history of its own would slow every look at all the others."""
    others = ["--not", f"--exclude={room}*", "--glob=refs/"]
    own = ask(["rev-list", f"--glob={room}", *others], mirror=network)
    count = own.count("\n")
    check = ["cat-file", "--batch-check=%(objectsize)"]
    sizes = ask(check, mirror=network, text=own).split() if count <= COMMITS_LIMIT else ()
    if count > COMMITS_LIMIT or sum(map(int, sizes)) > COMMITS_BYTES_LIMIT:
        refs = ask(["for-each-ref", "--format=%(refname)", room], mirror=network).splitlines()
        _change_refs(network, [f"delete {ref}" for ref in refs])
        raise Permanent(
            f"{url} brings more history than an honest fork ({count} commits)",
            advice="Nothing of it was taken. Look at the repository by hand.",
        )


def _forget_reached(network: Path, left: Sequence[str]) -> None:
    """Drop our own refs on old tips that a branch or tag of any fork still reaches."""
    if not left:
        return
    words = ["rev-list", "--stdin", "--not", "--glob=refs/remotes/"]
    lost = set(ask(words, mirror=network, text="\n".join([*left, ""])).split())
    _change_refs(network, [f"delete {SEEN}{sha}" for sha in set(left) - lost])


def _change_refs(network: Path, lines: Sequence[str]) -> None:
    if lines:
        text = "".join(f"{line}\n" for line in lines)
        ask(["update-ref", "--no-deref", "--stdin"], mirror=network, text=text)


def _is_here(network: Path, sha: str) -> bool:
    """Asked without any transport, so that looking never fetches."""
    return bool(ask(["cat-file", "-t", sha], mirror=network, empty_codes=ABSENT).strip())


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
