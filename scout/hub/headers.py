"""Reads what new weights of a repository are, from their first bytes; downloads none of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

import httpx
from sqlmodel import Session

from jobs.db import reading, writing
from jobs.errors import BadGguf, Permanent, ScoutError, Transient
from jobs.fit.joining import refuse_part, shape_from
from jobs.fit.shape import TensorBytes
from jobs.fit.stored import shape_stored
from jobs.gguf.facts import ModelFacts
from jobs.gguf.file_names import quant_label
from jobs.gguf.header import Header
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of
from jobs.sightings import HubFileRow, HubRepositoryRow
from jobs.store import hub
from scout import ranges
from scout.github.base import Happening, record
from scout.github.desk import Held
from scout.github.governor import Tier
from scout.hub import news
from scout.hub.answers import RESOLVERS, Answer, Kind, sort
from scout.hub.cards import drafter_config, engine_refs
from scout.hub.desk import Desk, Outcome
from scout.hub.late_heads import is_built_like_one_without, may_hide_heads
from scout.hub.repositories import NAME, listed_of
from scout.hub.sets import Weights, is_projector, is_safetensors, weights_of
from scout.hub.values import HubFile

HEADER_SECONDS = 20.0
MOST_ATTEMPTS = 3
"""Looks after which a header that could not be read is told as that."""
CARD = "README.md"
NO_SHAPE = "no_shape"
"""The fact that says why a header that was read gives no shape."""
LONGEST_WHY = 200
UNWANTED = "its header was not read: no place of the watch list asks for projectors there"
CUT = "a header could not be read to its end"


@dataclass(frozen=True)
class Learned:
    """What one model is: its facts, or why they could not be read and whether to try again."""

    facts: Mapping[str, Any]
    shape: Mapping[str, Any] | None = None
    unread: str = ""
    again: bool = False


def read_pending(
    desk: Desk,
    repository_id: int,
    roles: Callable[[HubRepositoryRow], set[str]],
    *,
    http: httpx.Client | None = None,
) -> Outcome:
    """Read the headers that are still to be read in one repository, and tell of those models.

    Each is written down before the next is asked for, so that a stop loses none.
    """
    with reading(desk.database) as session:
        row = session.get(HubRepositoryRow, repository_id)
        if row is None:
            return Outcome()
        rows = hub.files(session, repository_id)
        wanted_roles = roles(row)
    pending = {each.path for each in rows if each.pending}
    if not pending or not row.sha:
        return Outcome()
    new: list[Happening] = []
    refs: tuple[str, ...] | None = None
    for weights in weights_of(_file(each) for each in rows):
        paths = [file.path for file in weights.files]
        if not pending & set(paths) or not weights.is_whole:
            continue
        if desk.is_late():
            return Outcome(tuple(new), unfinished=True)
        if is_projector(weights.first.path) and news.MMPROJ not in wanted_roles:
            learned: Learned | Held = Learned({"role": news.MMPROJ, NO_SHAPE: UNWANTED})
        else:
            learned = _learn(desk, row, weights, paths=[each.path for each in rows], http=http)
        if isinstance(learned, Held):
            return Outcome(tuple(new), held=learned)
        quiet = all(each.quiet for each in rows if each.path in paths and each.pending)
        if refs is None and not quiet:
            refs = _refs(desk, row)
        with writing(desk.database) as session:
            new += _keep(
                session, row, weights, learned, roles=wanted_roles, refs=refs or (),
                quiet=quiet, now=desk.now(),
            )  # fmt: skip
    with reading(desk.database) as session:
        left = [each for each in hub.files(session, repository_id) if each.pending]
    again = any(0 < each.attempts < MOST_ATTEMPTS for each in left)
    failed = Answer(Kind.NOT_KNOWN, reason=next((e.unread for e in left if e.unread), CUT))
    return Outcome(tuple(new), failed=failed if again else None)


def _learn(
    desk: Desk,
    row: HubRepositoryRow,
    weights: Weights,
    *,
    paths: list[str],
    http: httpx.Client | None,
) -> Learned | Held:
    file = weights.first
    if file.sha256:
        with reading(desk.database) as session:
            twin = hub.file_with_facts(session, file.sha256)
        if twin is not None and len(weights.files) == 1:
            label = quant_label(PurePosixPath(file.path).name) or twin.facts.get("quant")
            return Learned({**twin.facts, "quant": label}, twin.shape)
    if held := desk.held(Tier.CHAIN, RESOLVERS):
        return held
    if is_safetensors(file.path):
        return _from_config(desk, row, file, paths)
    if row.gated and desk.client.anonymous:
        return Learned({"role": news.guessed_role(file.path)}, unread="gated: no token is set")
    learned = _from_header(desk, row, weights, http)
    return (learned.again and desk.held(Tier.CHAIN, RESOLVERS)) or learned


def _from_header(
    desk: Desk, row: HubRepositoryRow, weights: Weights, http: httpx.Client | None
) -> Learned:
    """What the header says at the commit that was looked at; a file of another size is refused."""
    file = weights.first
    client = http or ranges.client()
    client.event_hooks = {"response": [_accountant(desk)]}
    guess = {"role": news.guessed_role(file.path)}
    try:
        ranged = ranges.RangedFile(
            desk.client.file_url(row.full_name, row.sha, file.path),
            http=client,
            token=desk.client.token,
            whole_seconds=desk.seconds_left(HEADER_SECONDS),
        )
        if ranged.size_bytes != file.size_bytes:
            raise Permanent(
                f"{ranged.size_bytes} bytes are served, {file.size_bytes} were promised",
                advice="Look at the file on the hub; it is read again when it changes.",
            )
        name = PurePosixPath(file.path).name
        header, facts = _read(ranged, name, Depth.FACTS)
        again = False
        with reading(desk.database) as session:
            beside = [each.facts for each in hub.files(session, row.id or 0)]
        if may_hide_heads(header, facts) and not is_built_like_one_without(facts, beside):
            try:
                header, facts = _read(ranged, name, Depth.FULL)
            except BadGguf:
                raise
            except ScoutError as fault:  # the facts are told, with the note of what was not read
                again = isinstance(fault, Transient)
        refuse_part(facts, len(weights.files))
        told = news.model_facts(facts, keys_read=header.has_all_keys)
        try:
            shape = _shape(header, facts, weights)
        except Permanent as fault:
            return Learned({**told, NO_SHAPE: fault.detail[:LONGEST_WHY]}, again=again)
        return Learned(told, shape, again=again)
    except Transient as fault:
        return Learned(guess, unread=_why(fault), again=True)
    except ScoutError as fault:
        return Learned(guess, unread=_why(fault))
    finally:
        if http is None:
            client.close()


def _read(ranged: ranges.RangedFile, name: str, depth: Depth) -> tuple[Header, ModelFacts]:
    header = read_header(
        ranged.fetch, size_bytes=ranged.size_bytes, depth=depth, check=ranged.check
    )
    return header, facts_of(header, file_name=name)


def _shape(header: Header, facts: ModelFacts, weights: Weights) -> dict[str, Any]:
    """What counts for memory, the sizes of all files standing for their tensors."""
    if weights.size_bytes is None:
        raise Permanent("the hub does not say how large it is", advice="Fetch it.")
    shape = shape_from(header, facts)
    return shape_stored(replace(shape, tensors=TensorBytes(weights.size_bytes, whole=False)))


def _why(fault: ScoutError) -> str:
    return fault.message[:300]


def _accountant(desk: Desk) -> Callable[[httpx.Response], None]:
    """Writes down what the hub itself says of its quota; its other hosts have none."""
    lock = threading.Lock()

    def account(response: httpx.Response) -> None:
        desk.client.requests_made += 1
        if not str(response.request.url).startswith(f"{desk.client.base}/"):
            return
        answer = sort(
            response.status_code,
            response.headers,
            anonymous=desk.client.anonymous,
            now=desk.now(),
        )
        with lock:
            desk.account(answer if response.status_code == 429 else _quota_of(answer), RESOLVERS)

    return account


def _quota_of(answer: Answer) -> Answer:
    return Answer(Kind.NOT_KNOWN, answer.status, quota=answer.quota)


def _from_config(
    desk: Desk, row: HubRepositoryRow, file: HubFile, paths: list[str]
) -> Learned | Held:
    """A drafter in safetensors is known by its config; other safetensors are not benched."""
    config = str(PurePosixPath(file.path).parent / "config.json")
    if config not in paths:
        return Learned({"role": "other"})
    answer = desk.ask(
        lambda client: client.text(row.full_name, row.sha, config), Tier.CHAIN, bucket=RESOLVERS
    )
    if isinstance(answer, Held):
        return answer
    if answer.kind is Kind.NOT_KNOWN:
        return Learned({"role": "other"}, unread=answer.reason, again=True)
    found = drafter_config(answer.text) if answer.kind is Kind.PAGE else None
    return Learned(news.config_facts(found) if found else {"role": "other"})


def _refs(desk: Desk, row: HubRepositoryRow) -> tuple[str, ...]:
    """Engines that the card names; what it said before where it cannot be had."""
    answer = desk.ask(
        lambda client: client.text(row.full_name, row.sha, CARD), Tier.CHAIN, bucket=RESOLVERS
    )
    if isinstance(answer, Held) or answer.kind is not Kind.PAGE:
        return tuple(row.engine_refs)
    return engine_refs(answer.text)


def _keep(
    session: Session,
    row: HubRepositoryRow,
    weights: Weights,
    learned: Learned,
    *,
    roles: set[str],
    refs: tuple[str, ...],
    quiet: bool,
    now: datetime,
) -> tuple[Happening, ...]:
    kept = {each.path: each for each in hub.files(session, row.id or 0)}
    files = [kept[file.path] for file in weights.files if file.path in kept]
    if [each.sha256 or each.blob_id for each in files] != [f.content for f in weights.files]:
        return ()
    attempts = max(each.attempts for each in files) + 1
    again = learned.again and attempts < MOST_ATTEMPTS
    for each in files:
        each.attempts, each.pending = attempts, again
        each.role, each.facts = str(learned.facts["role"]), dict(learned.facts)
        each.quantisation = str(learned.facts.get("quant") or "") or each.quantisation
        each.unread, each.shape = learned.unread, None
        if learned.unread:
            each.facts = {}
        elif each.path == weights.first.path and learned.shape is not None:
            each.shape = dict(learned.shape)
        session.add(each)
    locked = hub.lock_repository(session, row.id or 0)
    locked.engine_refs = list(refs) or locked.engine_refs
    session.add(locked)
    was_there = all(each.sha256 and hub.is_old_news(session, each.sha256) for each in files)
    if again or quiet or was_there:
        return ()
    happening = news.published(
        listed_of(row), weights, learned.facts, roles=roles, refs=refs, unread=learned.unread
    )
    return record(session, [happening] if happening else [], source=NAME, repo=None, now=now)


def _file(row: HubFileRow) -> HubFile:
    return HubFile(row.path, row.size_bytes, row.sha256, row.blob_id, row.xet_hash)
