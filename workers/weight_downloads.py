"""Files of the model hub at a pinned commit: resumed, verified, whole or not at all.

The digest decides: a file whose digest the hub gives as another is refused before its first byte,
and other bytes than the digest's are deleted. It never waits for a quota: `Later` goes to the row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from jobs import hub as hubs
from jobs.control import Control
from jobs.errors import JobFailure, ScoutError, Transient
from jobs.hub import Hub, HubFile, Snapshot
from jobs.hub_answers import failed, gone, refusal
from jobs.hub_names import MAIN, set_sha256, shard_files
from workers.download_parts import BLOCK_BYTES, Part
from workers.download_plan import (
    LEAST_RATE,
    LeastRate,
    Pace,
    Waiting,
    range_header,
    start_of,
)
from workers.hub_stream import End, Incoming

FRUITLESS = 3
"""Answers in a row that may bring next to nothing before the job gives the worker back."""

LEAST_GAIN_BYTES = 64 * 1024
MOST_RESTARTS = 3
SAY_SECONDS = 30.0
_AGAIN = "the job is tried again by itself, and goes on where it was"


@dataclass(frozen=True)
class Wanted:
    """One weight, of one file or of a set of them."""

    repo: str
    revision: str
    files: tuple[str, ...]
    digests: tuple[str, ...]
    size_bytes: int | None = None

    @property
    def is_set(self) -> bool:
        """Whether it is made of several files."""
        return len(self.files) > 1


@dataclass(frozen=True)
class Shard:
    """One file to bring."""

    file: str
    sha256: str
    size_bytes: int


def wanted_of(source: Mapping[str, Any], *, sha256: str, size_bytes: int | None) -> Wanted:
    """What a model file's `source` of `repo`, `file`, `revision` and `shards` asks for."""
    file = str(source["file"])
    files = shard_files(file)
    shards = tuple(str(digest) for digest in source.get("shards") or ())
    digests = shards or (sha256,)
    if len(digests) != len(files) or (shards and set_sha256(shards) != sha256):
        raise failed(
            "weights_set",
            f"{file[-80:]} is one of {len(files)} files, and {len(digests)} digests are known",
            "name the sha256 of each file in `shards` of the watch list",
        )
    revision = str(source.get("revision") or MAIN)
    return Wanted(str(source["repo"]), revision, files, digests, size_bytes)


def look_up(hub: Hub, wanted: Wanted, *, http: httpx.Client | None = None) -> Snapshot:
    """The repository at its commit, every wanted file in it with the digest we ask for."""
    found = hubs.snapshot(hub, wanted.repo, wanted.revision, http=http)
    for file, digest in zip(wanted.files, wanted.digests, strict=True):
        there = found.files.get(file)
        if there is None:
            raise gone(f"{file} of {wanted.repo} at {wanted.revision}")
        if there.sha256 is not None and there.sha256 != digest:
            raise failed(
                "weights_sha256",
                f"{file} of {found.repo} at {found.commit[:12]} has sha256 {there.sha256}, "
                f"asked is {digest}; nothing was downloaded",
                "correct sha256 or revision in the watch list: the file was replaced",
            )
    return found


def shards_of(wanted: Wanted, found: Snapshot) -> list[Shard]:
    """The files to bring with their sizes."""
    shards = []
    for file, digest in zip(wanted.files, wanted.digests, strict=True):
        there: HubFile = found.files[file]
        alone = None if wanted.is_set else wanted.size_bytes
        size = there.size_bytes or alone
        if size is None or (alone is not None and size != alone):
            raise failed(
                "weights_size",
                f"{file} of {found.repo} has {size or 'no known'} bytes, asked are {alone}",
                "correct size_bytes in the watch list",
            )
        shards.append(Shard(file, digest, size))
    return shards


def download(
    shards: list[Shard],
    *,
    hub: Hub,
    found: Snapshot,
    target_of: Callable[[str], Path],
    control: Control,
    say: Callable[[str], None] = lambda _words: None,
    room: Callable[[int], AbstractContextManager[None]] = lambda _bytes: nullcontext(),
    block_bytes: int = BLOCK_BYTES,
    http: httpx.Client | None = None,
    least_rate: LeastRate = LEAST_RATE,
) -> None:
    """Bring every file to `target_of(sha256)`; the caller holds the lock of each.

    A raise keeps what was verified for the next attempt, other bytes than asked excepted.
    """
    with ExitStack() as stack:
        client = http or stack.enter_context(hubs.client())
        parts = []
        for shard in shards:
            root = target_of(shard.sha256).parent
            part = Part(root, shard.sha256, shard.size_bytes, block_bytes=block_bytes)
            stack.callback(part.close)
            for done in part.resume():
                control.check()
                control.report("verify part", done=done, total=shard.size_bytes, unit="B")
            if part.offset:
                say(f"{shard.file}: {part.offset:,} of {shard.size_bytes:,} bytes are here already")
            parts.append(part)
        with room(sum(part.lacking_bytes for part in parts)):
            for part in parts:
                part.reserve()
        told = _Telling(parts, control, say)
        for shard, part in zip(shards, parts, strict=True):
            url = hub.file_url(found.repo, found.commit, shard.file)
            waiting = Waiting(least_rate, f"{shard.file} of the hub")
            _fill(_Fetch(client, hub, url, shard, part, told, control, waiting))
            part.finish(target_of(shard.sha256))
            say(f"{shard.file}: {shard.size_bytes:,} bytes, sha256 {shard.sha256} verified")


class _Telling:
    """Says how far all files are together: often to the job's row, seldom to its log."""

    def __init__(self, parts: list[Part], control: Control, say: Callable[[str], None]) -> None:
        self._parts, self._control, self.say = parts, control, say
        self._total = sum(part.size_bytes for part in parts)
        self._pace = Pace(time.monotonic(), self._done)
        self._said_at = time.monotonic()

    @property
    def _done(self) -> int:
        return sum(part.offset for part in self._parts)

    def __call__(self) -> None:
        now, done = time.monotonic(), self._done
        words = self._pace.words(done=done, total=self._total, now=now)
        self._control.report("download", done=done, total=self._total, unit="B", note=words)
        if now - self._said_at >= SAY_SECONDS:
            self._said_at = now
            self.say(f"download: {done / 1e6:,.0f} of {self._total / 1e6:,.0f} MB, {words}")


@dataclass(frozen=True)
class _Fetch:
    client: httpx.Client
    hub: Hub
    url: str
    shard: Shard
    part: Part
    told: _Telling
    control: Control
    waiting: Waiting


def _fill(fetch: _Fetch) -> None:
    """Ask until the part is full; each answer must bring something, and nobody sleeps between."""
    part, fruitless, restarts = fetch.part, 0, 0
    while part.offset < part.size_bytes:
        before = part.offset
        started, fault = _take(fetch)
        restarts += bool(before and started == 0)
        gained = part.offset - (before if started is None else started)
        little = gained < LEAST_GAIN_BYTES and part.offset < part.size_bytes
        fruitless = fruitless + 1 if little else 0
        if fruitless >= FRUITLESS or restarts > MOST_RESTARTS:
            raise fault or Transient(f"{fetch.shard.file} comes in pieces too small", advice=_AGAIN)
        if part.offset < part.size_bytes:
            why = fault.detail if fault else "the answer ended early"
            fetch.told.say(f"asked again from byte {part.offset:,}: {why}")


def _take(fetch: _Fetch) -> tuple[int | None, ScoutError | None]:
    """Read one answer: where its bytes started, if it had any, and what broke it."""
    part, shard = fetch.part, fetch.shard
    what = f"{shard.file} of the hub"
    wish = range_header(part.offset, part.size_bytes)
    with Incoming(
        lambda: hubs.asked(fetch.client, fetch.hub, fetch.url, wish),
        fetch.control,
        waiting=fetch.waiting,
    ) as body:
        head = body.next()
        if isinstance(head, End):
            return None, _fault(head)
        if not isinstance(head, hubs.Reply):
            raise TypeError("an answer starts with its head")
        if head.is_elsewhere and head.status in (401, 403, 404, 410):
            return None, Transient(f"the link to {what} has expired", advice=_AGAIN)
        if head.status not in (200, 206):
            raise refusal(head.status, head.headers, what=what, has_token=fetch.hub.has_token)
        start = start_of(
            head.status, head.headers, offset=part.offset, size_bytes=part.size_bytes, what=what
        )
        if start < part.offset:
            fetch.told.say(f"{shard.file}: the server ignores ranges, from the start again")
            part.restart()
        while not isinstance(item := body.next(), End):
            if not isinstance(item, bytes):
                raise TypeError("a body is bytes")
            if part.offset + len(item) > part.size_bytes:
                part.restart()
                raise Transient(
                    f"{what} sends more than its {part.size_bytes:,} bytes", advice=_AGAIN
                )
            part.write(item)
            fetch.told()
        return start, _fault(item)


def _fault(end: End) -> ScoutError | None:
    if end.fault is None or isinstance(end.fault, Transient):
        return end.fault
    if isinstance(end.fault, JobFailure):
        return end.fault
    raise end.fault
