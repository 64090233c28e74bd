"""Brings a mirror one commit that its remote's branches and tags do not reach; refuses the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import SecretStr

from jobs.errors import UsageError
from jobs.git import checked_url, drop_stale_locks, locked
from jobs.git_names import full_name
from jobs.git_packs import arriving
from jobs.git_process import ask
from jobs.git_refs import BRANCHES, FULL_SHA, KEPT


def fetch_commit(
    mirror: Path,
    url: str,
    sha: str,
    *,
    tick: Callable[[], None] | None = None,
    token: SecretStr | None = None,
) -> None:
    """Fetch one commit that no branch or tag of the remote reaches, and keep it."""
    if not FULL_SHA.fullmatch(sha):
        raise UsageError(f"{sha!r} is not a full sha", advice="Resolve the ref first.")
    _fetch_into(mirror, url, f"{sha}:{KEPT}{sha}", tick, token)


def fetch_pull(mirror: Path, url: str, branch: str, *, token: SecretStr | None = None) -> None:
    """Fetch the head of a pull request, written `pull/123`, as a branch of the mirror."""
    _fetch_into(mirror, url, f"+{full_name(branch)}:{BRANCHES}{branch}", None, token)


def _fetch_into(
    mirror: Path,
    url: str,
    refspec: str,
    tick: Callable[[], None] | None,
    token: SecretStr | None,
) -> None:
    with locked(mirror), arriving(mirror):
        drop_stale_locks(mirror)
        ask(["config", "remote.origin.url", checked_url(url)], mirror=mirror)
        ask(
            [
                *("fetch", "--quiet", "--no-tags", "--no-auto-maintenance", "--filter=blob:none"),
                *("--no-recurse-submodules", "--no-write-fetch-head"),
                *("--end-of-options", "origin", refspec),
            ],
            mirror=mirror,
            url=url,
            online=True,
            tick=tick,
            token=token,
        )
