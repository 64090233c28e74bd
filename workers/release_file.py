"""Brings one file of a release, known by its sha256, and unpacks it; it takes no other bytes.

The tag must still mean the commit that is built: a release that was moved is another engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx

from jobs import git
from jobs.errors import JobFailure, Transient, UsageError
from jobs.model import Blame, BuildTarget
from workers.unpacking import unpack

CHUNK_BYTES = 2**20
MOST_BYTES = 4 * 2**30
MOST_REDIRECTS = 3
"""GitHub sends each download on once."""

TIMEOUT = httpx.Timeout(60.0, connect=20.0)
AGAIN = "look at the network of the worker; the job is tried again by itself"


def bring_release_file(
    repo: str,
    target: BuildTarget,
    into: Path,
    *,
    mirror: Path,
    commit: str,
    check: Callable[[], None],
    on_progress: Callable[[int, int | None], None] = lambda _done, _total: None,
    transport: httpx.BaseTransport | None = None,
) -> None:
    """Fill the new folder `into` with what the release file of this target holds.

    Raises `JobFailure` where tag, sha256 or content are not what they should be.
    """
    asset, tag, sha256 = (target.pin(name) for name in ("asset", "tag", "sha256"))
    if not (asset and tag and sha256):
        raise _wrong("a release file needs asset, tag and sha256", "unsupported")
    check_tag(mirror, tag, commit)
    archive = into.with_name(f"{into.name}.archive")
    url = f"{git.repo_url(repo)}/releases/download/{quote(tag, safe='')}/{quote(asset, safe='')}"
    try:
        found = _download(url, archive, check, on_progress, transport)
        if found != sha256:
            raise _wrong(
                f"{asset} of {tag} is not the file that was pinned: its sha256 is {found}",
                "asset_sha256",
            )
        unpack(archive, into, check=check)
    finally:
        archive.unlink(missing_ok=True)


def check_tag(mirror: Path, tag: str, commit: str) -> None:
    """Raise `JobFailure` unless the tag means that commit: what was released belongs to its tag."""
    try:
        means = git.resolve(mirror, f"tags/{tag}").sha
    except UsageError as fault:
        raise _wrong(f"there is no tag {tag[:80]!r} any more", "ref_missing") from fault
    if means != commit:
        raise _wrong(
            f"what is pinned is of tag {tag[:80]} ({means[:12]}), and {commit[:12]} is asked for",
            "asset_of_another_commit",
        )


def _download(
    url: str,
    archive: Path,
    check: Callable[[], None],
    on_progress: Callable[[int, int | None], None],
    transport: httpx.BaseTransport | None,
) -> str:
    """The sha256 of what was written."""
    digest = hashlib.sha256()
    done = 0
    try:
        with (
            httpx.Client(
                transport=transport,
                timeout=TIMEOUT,
                follow_redirects=True,
                max_redirects=MOST_REDIRECTS,
                event_hooks={"request": [_only_https]},
            ) as http,
            http.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer,
            archive.open("xb") as file,
        ):
            if answer.status_code == httpx.codes.NOT_FOUND:
                raise _wrong(f"the release has no such file any more: {url}", "asset_missing")
            if answer.status_code != httpx.codes.OK:
                raise Transient(f"{url} is answered with {answer.status_code}", advice=AGAIN)
            total = int(answer.headers.get("Content-Length", "0")) or None
            for data in answer.iter_raw(CHUNK_BYTES):
                check()
                done += len(data)
                if done > MOST_BYTES:
                    raise _wrong(f"it is larger than {MOST_BYTES / 1e9:.1f} GB", "archive_refused")
                digest.update(data)
                file.write(data)
                on_progress(done, total)
    except (httpx.HTTPError, ValueError) as fault:
        raise Transient(f"{url} does not come: {fault}", advice=AGAIN) from fault
    return digest.hexdigest()


def _only_https(request: httpx.Request) -> None:
    if request.url.scheme != "https":
        raise httpx.UnsupportedProtocol(f"a redirect to {request.url.scheme} is not followed")


def _wrong(detail: str, failure_class: str) -> JobFailure:
    return JobFailure(
        detail,
        failure_class=failure_class,
        blame=Blame.CONFIGURATION,
        phase="download",
        advice="Correct what the [[engine.build]] pins, with its tag, or build from the source.",
    )
