"""The one caller of git: hardened, bounded, and deaf to everything a repository would have it run.

The operator's own git configuration still applies, so that `url.<base>.insteadOf` can point the
production addresses at a mirror.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from jobs.errors import Permanent, UsageError
from jobs.git_packs import arriving
from jobs.git_process import LIST_SECONDS, ask
from jobs.git_refs import BRANCHES, FULL_SHA, KEPT, TAGS, Commit, holds, resolve, tips
from jobs.trees import escaping_links

__all__ = [
    "CheckedOut",
    "Commit",
    "check_out",
    "checked_url",
    "commit_count",
    "drop_stale_locks",
    "holds",
    "locked",
    "ls_remote",
    "repo_url",
    "resolve",
    "update_mirror",
]

HOST = "https://github.com/"
# Highest precedence of all attributes: no filter, no line-end change, no keyword expansion.
NO_ATTRIBUTES = "* -filter -text -ident !eol -working-tree-encoding -merge -diff\n"
_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,39}/(?![.-])[A-Za-z0-9._-]{1,100}", re.ASCII)


@dataclass(frozen=True)
class CheckedOut:
    """A plain tree; `submodules` names those the commit asks for and that were left empty."""

    path: Path
    submodules: tuple[str, ...] = ()


def repo_url(name: str) -> str:
    """The address of `owner/name`; no other form is taken, so no address can come from outside."""
    if not _NAME.fullmatch(name) or name.endswith(".git") or ".." in name:
        raise UsageError(
            f"{name[:80]!r} is not a repository", advice="Write owner/name as GitHub spells it."
        )
    return f"{HOST}{name}"


def ls_remote(url: str, *, token: SecretStr | None = None) -> dict[str, str]:
    """Ref to sha as the remote says now; one request that GitHub's API quota does not charge."""
    output = ask(
        ["ls-remote", "--quiet", "--end-of-options", checked_url(url)],
        url=url,
        seconds=LIST_SECONDS,
        token=token,
    )
    pairs = (line.split("\t", 1) for line in output.split("\n") if "\t" in line)
    return {ref: sha for sha, ref in pairs if FULL_SHA.fullmatch(sha)}


def update_mirror(
    mirror: Path,
    url: str,
    on_line: Callable[[str], None] | None = None,
    *,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> None:
    """Bring the bare mirror up to date without file contents; a new one appears only when whole.

    Branches lie under `refs/remotes/origin/`, tags under `refs/tags/origin/`. A commit that a
    force-push or a deletion left behind stays reachable. `tick` is called several times a second;
    what it raises ends git and comes out here.
    """
    mirror.parent.mkdir(parents=True, exist_ok=True)
    with locked(mirror):
        if (mirror / "HEAD").exists():
            with arriving(mirror):
                _fetch(mirror, url, on_line, tick, token)
            return
        with tempfile.TemporaryDirectory(prefix=".new-", dir=mirror.parent) as folder:
            fresh = Path(folder) / "mirror"
            _create(fresh, url)
            _fetch(fresh, url, on_line, tick, token)
            fresh.rename(mirror)


def commit_count(mirror: Path, sha: str) -> int:
    """How many commits this one stands on, itself included."""
    return int(ask(["rev-list", "--count", "--end-of-options", _checked_sha(sha)], mirror=mirror))


def check_out(
    mirror: Path,
    sha: str,
    into: Path,
    sparse_patterns: Sequence[str],
    *,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> CheckedOut:
    """Write the tree of `sha` to the new folder `into`: no `.git`, no hooks, filters, submodules.

    Only files that the patterns choose are fetched. Refuses links that lead out of the tree.
    """
    if into.exists():
        raise Permanent(f"{into.name} exists already", advice="Check out into a fresh folder.")
    submodules = _submodules(mirror, _checked_sha(sha), token)
    with locked(mirror), arriving(mirror):
        ask(["worktree", "prune", "--expire=now"], mirror=mirror)
        (mirror / "info").mkdir(exist_ok=True)
        (mirror / "info" / "attributes").write_text(NO_ATTRIBUTES)
        try:
            _populate(mirror, sha, into, sparse_patterns, tick, token)
            links = escaping_links(into)
            if links:
                raise Permanent(
                    f"{sha[:12]} holds a link that leads out of its tree: {links[0]!r}",
                    advice="This commit is not built. Look at it by hand.",
                )
        except BaseException:
            shutil.rmtree(into, ignore_errors=True)
            raise
        finally:
            ask(["worktree", "prune", "--expire=now"], mirror=mirror)
    return CheckedOut(into, submodules)


def _populate(
    mirror: Path,
    sha: str,
    into: Path,
    patterns: Sequence[str],
    tick: Callable[[], None] | None,
    token: SecretStr | None,
) -> None:
    add = ["worktree", "add", "--quiet", "--no-checkout", "--detach", "--end-of-options"]
    ask([*add, str(into), sha], mirror=mirror)
    for_tree = ["--git-dir", str(into / ".git"), "--work-tree", str(into)]
    if patterns:
        ask(
            [*for_tree, "sparse-checkout", "set", "--no-cone", "--stdin"],
            cwd=into,
            text="".join(f"{pattern}\n" for pattern in patterns),
        )
    ask(
        [*for_tree, "checkout", "--quiet", "--detach"],
        url=_remote_url(mirror),
        online=True,
        cwd=into,
        tick=tick,
        token=token,
    )
    (into / ".git").unlink()


def _create(mirror: Path, url: str) -> None:
    ask(["init", "--quiet", "--bare", "--template=", "--end-of-options", str(mirror)])
    for name, value in (
        ("remote.origin.url", checked_url(url)),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialCloneFilter", "blob:none"),
        ("gc.auto", "0"),
    ):
        ask(["config", name, value], mirror=mirror)


def _fetch(
    mirror: Path,
    url: str,
    on_line: Callable[[str], None] | None,
    tick: Callable[[], None] | None,
    token: SecretStr | None,
) -> None:
    drop_stale_locks(mirror)
    before = mirror / "forkscout-before"
    if not before.exists():
        before.with_suffix(".new").write_text("\n".join(sorted(set(tips(mirror).values()))))
        before.with_suffix(".new").rename(before)
    ask(["config", "remote.origin.url", checked_url(url)], mirror=mirror)
    ask(
        [
            *("fetch", "--progress", "--prune", "--no-tags", "--no-auto-maintenance"),
            *("--no-recurse-submodules", "--filter=blob:none", "--end-of-options", "origin"),
            *(f"+refs/heads/*:{BRANCHES}*", f"+refs/tags/*:{TAGS}*"),
        ],
        mirror=mirror,
        url=url,
        online=True,
        on_line=on_line,
        tick=tick,
        token=token,
    )
    _keep(mirror, set(before.read_text().split()) - set(tips(mirror).values()))
    before.unlink()


def _keep(mirror: Path, left: set[str]) -> None:
    """Give every old tip that no branch or tag contains any more a ref of our own."""
    for sha in sorted(left):
        holders = ["for-each-ref", "--count=1", f"--contains={sha}", BRANCHES, TAGS]
        if not ask(holders, mirror=mirror).strip():
            ask(["update-ref", "--end-of-options", f"{KEPT}{sha}", sha], mirror=mirror)


def _submodules(mirror: Path, sha: str, token: SecretStr | None) -> tuple[str, ...]:
    listed = ask(["ls-tree", "--name-only", "--end-of-options", sha, ".gitmodules"], mirror=mirror)
    if not listed.strip():
        return ()
    form = ["config", "--no-includes", "-z", "--blob", f"{sha}:.gitmodules"]
    output = ask(
        [*form, "--get-regexp", r"^submodule\..*\.(path|url)$"],
        mirror=mirror,
        url=_remote_url(mirror),
        online=True,
        empty_codes=(1,),
        token=token,
    )
    found = []
    for entry in filter(None, output.split("\0")):
        key, _, value = entry.partition("\n")
        if key.endswith(".path"):
            found.append(value)
        elif not re.fullmatch(r"(https://|git@|\.{1,2}/)[!-~]*", value) or "::" in value:
            raise Permanent(
                f"{sha[:12]} names a submodule at {value!r}",
                advice="Only https addresses are taken. This commit is not built.",
            )
    return tuple(found)


def checked_url(url: str) -> str:
    """The address, if it is one that `repo_url` gives."""
    return repo_url(url.removeprefix(HOST) if url.startswith(HOST) else url)


def _checked_sha(sha: str) -> str:
    if not FULL_SHA.fullmatch(sha):
        raise UsageError(f"{sha!r} is not a full sha", advice="Resolve the ref first.")
    return sha


def _remote_url(mirror: Path) -> str:
    return ask(["config", "--get", "remote.origin.url"], mirror=mirror).strip()


def drop_stale_locks(mirror: Path) -> None:
    """We hold the mirror's own lock, so git's lock files are left from a git that was killed."""
    for lock in (*mirror.glob("*.lock"), *(mirror / "refs").rglob("*.lock")):
        lock.unlink(missing_ok=True)


@contextmanager
def locked(mirror: Path) -> Iterator[None]:
    """Hold the repository: one process at a time fetches into it."""
    lock = os.open(mirror.with_name(f".{mirror.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
