"""Ids and texts of single files in the network of forks; it refuses what is no source."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import SecretStr

from jobs.errors import Permanent, UsageError
from jobs.git import checked_url, locked
from jobs.git_packs import FETCH_SECONDS, arriving, bounded
from jobs.git_process import ask
from jobs.git_refs import FULL_SHA

FILE_BYTES_LIMIT = 4 * 2**20  # the largest source we read has 0.2 MB
# Git may die of the pipe to the fetch that it was refused, before it can say what it lacks.
ABSENT = (1, 128, -signal.SIGPIPE)


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
            ask(["config", "remote.origin.url", checked_url(url)], mirror=network)
            words = [
                *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"),
                *("--no-write-fetch-head", "--no-auto-maintenance", "--filter=blob:none"),
                *("--no-recurse-submodules", "--end-of-options", "origin", *missing),
            ]
            with arriving(network):
                ask(
                    words,
                    mirror=network,
                    url=url,
                    seconds=FETCH_SECONDS,
                    tick=bounded(network, tick),
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


def _is_here(network: Path, sha: str) -> bool:
    """Asked without any transport, so that looking never fetches."""
    return bool(ask(["cat-file", "-t", sha], mirror=network, empty_codes=ABSENT).strip())
