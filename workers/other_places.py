"""Where a file that is no longer at its place may be had now; suggests and never swaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from shlex import quote

import httpx

from jobs import hub as hubs
from jobs.errors import JobFailure, ScoutError, UsageError
from jobs.hub import Hub, HubFile
from jobs.hub_answers import DISABLED, GATED, GONE, MISSING, PRIVATE, REVISION
from jobs.hub_names import MAIN, checked_file, read_place
from workers.weight_downloads import Wanted

NOT_THERE = frozenset({DISABLED, GATED, GONE, MISSING, PRIVATE, REVISION})

Places = Callable[[str], Sequence[str]]
"""Where the hub was seen to hold a digest, as `OWNER/REPO/FILE`."""


def with_other_places(
    fault: JobFailure, wanted: Wanted, *, hub: Hub, places: Places, http: httpx.Client
) -> JobFailure:
    """The fault with advice on where these bytes are, or what stands in their stead."""
    if fault.failure_class not in NOT_THERE:
        return fault
    repo, files = _files(wanted, hub, http)
    same = [f"{repo}/{name}" for name in _with_digest(files, wanted.digests[0])]
    seen = [place for place in places(wanted.digests[0]) if _is_place(place)]
    if place := next(iter([*same, *seen]), ""):
        words = (
            f"the same bytes are {place}: name that in the watch list, "
            f"or `forkscout submit fetch {quote(place)}`"
        )
    elif stead := next(iter(_with_name(files, wanted.files[0])), ""):
        words = (
            f"{repo}/{stead} is there now, with other bytes: it is another model with results "
            f"of its own, `forkscout submit fetch {quote(f'{repo}/{stead}')}`"
        )
    else:
        return fault
    return JobFailure(
        fault.detail,
        failure_class=fault.failure_class,
        blame=fault.blame,
        phase=fault.phase,
        advice=f"{words}; else {fault.advice}",
    )


def _with_digest(files: Mapping[str, HubFile], sha256: str) -> list[str]:
    return sorted(name for name, file in files.items() if file.sha256 == sha256)


def _with_name(files: Mapping[str, HubFile], file: str) -> list[str]:
    """Files of that name in whatever folder."""
    own = PurePosixPath(file).name
    return sorted(name for name in files if PurePosixPath(name).name == own)


def _files(wanted: Wanted, hub: Hub, http: httpx.Client) -> tuple[str, Mapping[str, HubFile]]:
    """What the repository holds now, names that could mean something else left out."""
    try:
        head = hubs.snapshot(hub, wanted.repo, MAIN, http=http)
    except ScoutError:
        return wanted.repo, {}
    return head.repo, {name: file for name, file in head.files.items() if _is_plain(name)}


def _is_place(text: str) -> bool:
    try:
        return read_place(text).revision == MAIN
    except UsageError:
        return False


def _is_plain(name: str) -> bool:
    try:
        return checked_file(name) == name
    except ValueError:
        return False
