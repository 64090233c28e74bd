"""Looks at one repository of the hub: its commit, then its file set decide what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from sqlmodel import Session

from jobs.db import reading, writing
from jobs.gguf.file_names import quant_label
from jobs.sightings import HubFileRow, HubRepositoryRow
from jobs.store import hub
from scout.github.base import Happening, record
from scout.github.desk import Held
from scout.github.governor import Tier
from scout.hub import news
from scout.hub.answers import Answer, Kind
from scout.hub.desk import Desk, Outcome, backoff_until, unanswered
from scout.hub.lists import first_row
from scout.hub.sets import is_calibration, is_gguf, is_safetensors
from scout.hub.values import HubFile, Listed, Snapshot, read_snapshot, read_xet_hashes

NAME = "hf_repositories"
CLOSE, REST = timedelta(minutes=4), timedelta(hours=20)
"""How soon a repository that the watch list names is looked at again, and any other: what is new
in those shows in a list first, so this look is for what no list tells."""
MISSED_AGAIN = timedelta(hours=8)
MOST_TREE_PAGES = 20


@dataclass(frozen=True)
class Wanted:
    """A repository to look at; one that the watch list names may have no row yet."""

    full_name: str
    repository_id: int | None = None
    hub_id: str = ""
    baseline_sha: str = ""
    watch: str = ""
    is_new: bool = False
    can_wait: bool = False

    @classmethod
    def of(cls, row: HubRepositoryRow) -> Wanted:
        """The value of a row."""
        baseline = "" if row.sha else row.baseline_sha
        can_wait = bool(baseline) and not row.found_late
        return cls(row.full_name, row.id, row.hub_id, baseline, can_wait=can_wait)

    @property
    def tier(self) -> Tier:
        """First looks are many and can wait."""
        return Tier.EVERYTHING if self.can_wait else Tier.CHAIN


def look(desk: Desk, wanted: Wanted) -> Outcome:
    """One look; only a reply that names the repository with all its files changes anything."""
    answer = desk.ask(
        lambda client: client.model(wanted.full_name, commit=wanted.baseline_sha), wanted.tier
    )
    if isinstance(answer, Answer) and answer.is_revision and wanted.baseline_sha:
        answer = desk.ask(lambda client: client.model(wanted.full_name), wanted.tier)
    if isinstance(answer, Held):
        return Outcome(held=answer)
    snapshot = None
    if answer.kind is Kind.PAGE:
        snapshot = read_snapshot(answer.body)
        if snapshot is None:
            answer = Answer(Kind.NOT_KNOWN, 200, reason="it came without an id, commit or files")
        elif wanted.hub_id and snapshot.listed.hub_id != wanted.hub_id:
            answer = Answer(Kind.MISSING, 200, reason="another repository has its name now")
    if snapshot is None or answer.kind is not Kind.PAGE:
        return _not_shown(desk, wanted, answer)
    hashed = _with_xet_hashes(desk, wanted, snapshot)
    if not isinstance(hashed, Snapshot):
        return _not_shown(desk, wanted, hashed)
    with writing(desk.database) as session:
        return _shown(desk, session, wanted, hashed)


def _with_xet_hashes(desk: Desk, wanted: Wanted, snapshot: Snapshot) -> Snapshot | Answer:
    """The snapshot with what the tree of its commit adds, where that commit is news.

    Two lists of one commit that tell different files mean that neither can be trusted yet. A tree
    with more pages than we ask for is compared as far as it was read.
    """
    listed = snapshot.listed
    if wanted.repository_id is None or wanted.baseline_sha:
        return snapshot
    with reading(desk.database) as session:
        row = session.get(HubRepositoryRow, wanted.repository_id)
        if row is None or row.sha == listed.sha:
            return snapshot
    found: dict[str, tuple[str, str]] = {}
    is_whole = False
    page = desk.ask(lambda client: client.tree(listed.full_name, listed.sha), Tier.CHAIN)
    for _ in range(MOST_TREE_PAGES):
        if isinstance(page, Held) or page.kind is not Kind.PAGE:
            return snapshot
        found |= read_xet_hashes(page.body)
        next_url = page.next_url
        is_whole = next_url is None
        if next_url is None:
            break
        page = desk.ask(lambda client, url=next_url: client.page(url), Tier.CHAIN)  # type: ignore[misc]
    large = {file.path: file.sha256 for file in snapshot.files if file.sha256}
    told = {path: sha256 for path, (sha256, _) in found.items()}
    if told.items() - large.items() or (is_whole and len(told) < len(large)):
        return Answer(Kind.NOT_KNOWN, 200, reason="its files changed while they were listed")
    files = [
        replace(file, xet_hash=found[file.path][1]) if file.path in found else file
        for file in snapshot.files
    ]
    return replace(snapshot, files=tuple(files))


def _shown(desk: Desk, session: Session, wanted: Wanted, snapshot: Snapshot) -> Outcome:
    now, listed = desk.now(), snapshot.listed
    row = hub.repository(session, listed.hub_id)
    if row is None:
        row = first_row(listed, quiet=not wanted.is_new, now=now)
        row.watches = [wanted.watch]
        session.add(row)
        session.flush()
    row = hub.lock_repository(session, row.id or 0)
    if wanted.watch and wanted.watch not in row.watches:
        row.watches = [*row.watches, wanted.watch]
    is_first, quiet = not row.sha, not row.sha and bool(row.baseline_sha)
    old_sha, happenings = row.sha, list[Happening]()
    if not is_first:
        happenings += _states(row, listed)
    elif not quiet:
        happenings.append(news.created(snapshot))
    if old_sha != listed.sha:
        rows = hub.files(session, row.id or 0)
        change = news.difference({each.path: _content(each) for each in rows}, snapshot.files)
        if not is_first and change.paths:
            happenings.append(news.files_changed(listed, old_sha, change))
        _keep_files(session, row, change, quiet=quiet, now=now)
    if row.gated and not listed.gated:
        _ask_again(session, row)
    _keep(row, snapshot, now=now)
    session.add(row)
    told = record(session, happenings, source=NAME, repo=None, now=now)
    return Outcome(told, unfinished=quiet and row.head_sha != listed.sha)


def _states(row: HubRepositoryRow, listed: Listed) -> list[Happening]:
    """What is different of the repository itself."""
    found = []
    if row.full_name != listed.full_name:
        found.append(
            news.state_changed("hf_moved", listed, "name", old=row.full_name, new=listed.full_name)
        )
    if row.gated != listed.gated:
        found.append(
            news.state_changed("hf_gated_changed", listed, "gated", old=row.gated, new=listed.gated)
        )
    if row.disabled != listed.disabled:
        found.append(
            news.state_changed(
                "hf_gated_changed", listed, "disabled", old=row.disabled, new=listed.disabled
            )
        )
    if row.state == hub.GONE:
        found.append(
            news.state_changed("hf_returned", listed, "state", old=hub.GONE, new=hub.KNOWN)
        )
    return found


def _keep(row: HubRepositoryRow, snapshot: Snapshot, *, now: datetime) -> None:
    listed = snapshot.listed
    is_behind = not row.sha and row.baseline_sha and row.head_sha != listed.sha
    row.full_name, row.sha = listed.full_name, listed.sha
    row.head_sha = row.head_sha if is_behind else listed.sha
    row.gated, row.private, row.disabled = listed.gated, listed.private, listed.disabled
    row.tags, row.base_models = list(listed.tags), list(listed.base_models)
    row.created_at = listed.created_at or row.created_at
    row.last_modified = listed.last_modified or row.last_modified
    row.refused = [asdict(each) for each in snapshot.refused]
    row.state, row.misses, row.missed_since, row.failures = hub.KNOWN, 0, None, 0
    row.last_seen_at = now
    row.look_at = now if is_behind else now + pace_of(row)


def pace_of(row: HubRepositoryRow) -> timedelta:
    """How long until the next look that nothing gave cause for."""
    return CLOSE if any(watch.startswith("repo:") for watch in row.watches) else REST


def _keep_files(
    session: Session, row: HubRepositoryRow, change: news.Changed, *, quiet: bool, now: datetime
) -> None:
    known = {each.path: each for each in hub.files(session, row.id or 0, gone=True)}
    for file in (*change.added, *change.changed):
        kept = known.get(file.path) or HubFileRow(
            repository_id=row.id or 0, path=file.path, first_seen_at=now, changed_at=now
        )
        _fill(kept, file, now=now)
        is_drafter = news.guessed_role(file.path) == news.DRAFTER
        kept.quiet = quiet and not (row.found_late and is_drafter)
        kept.pending = _is_model(file.path) and (not quiet or _is_wanted(row, file.path))
        if is_gguf(file.path) and not is_calibration(file.path):
            kept.role = news.guessed_role(file.path)
            kept.quantisation = quant_label(PurePosixPath(file.path).name)
        else:
            kept.role = ""
        session.add(kept)
    for file in change.removed:
        known[file.path].gone_at, known[file.path].pending = now, False
        session.add(known[file.path])


def _ask_again(session: Session, row: HubRepositoryRow) -> None:
    """What could not be read of a gated repository can be, now that it is open."""
    for each in hub.files(session, row.id or 0):
        if each.unread:
            each.pending, each.attempts = True, 0
            session.add(each)


def _is_model(path: str) -> bool:
    return (is_gguf(path) or is_safetensors(path)) and not is_calibration(path)


def _is_wanted(row: HubRepositoryRow, path: str) -> bool:
    """Whether a header is worth reading of what was there before anybody watched."""
    named = any(watch.startswith("repo:") for watch in row.watches)
    return is_gguf(path) and (named or news.guessed_role(path) == news.DRAFTER)


def _fill(kept: HubFileRow, file: HubFile, *, now: datetime) -> None:
    kept.size_bytes, kept.sha256, kept.blob_id = file.size_bytes, file.sha256, file.blob_id
    kept.xet_hash, kept.unread, kept.attempts = file.xet_hash, "", 0
    kept.facts, kept.shape = {}, None
    kept.quantisation, kept.changed_at, kept.gone_at = "", now, None


def _content(row: HubFileRow) -> str:
    return row.sha256 or row.blob_id


def _not_shown(desk: Desk, wanted: Wanted, answer: Answer) -> Outcome:
    now = desk.now()
    with writing(desk.database) as session:
        if wanted.repository_id is None:
            note = f"{wanted.full_name}: {answer.reason}; check the name in the watch list"
            return unanswered(answer) or Outcome(note=note)
        row = hub.lock_repository(session, wanted.repository_id)
        session.add(row)
        if answer.kind is Kind.NOT_KNOWN or answer.kind is Kind.GATED:
            row.failures += 1
            row.look_at = backoff_until(answer, failures=row.failures, now=now)
            return Outcome(failed=replace(answer, kind=Kind.NOT_KNOWN))
        happenings: Sequence[Happening] = ()
        if answer.kind is Kind.DISABLED:
            happenings = _disabled(row)
            row.look_at = now + pace_of(row)
        elif answer.kind is Kind.MISSING:
            happenings = _missed(row, now=now)
            row.look_at = now + MISSED_AGAIN
        return Outcome(record(session, happenings, source=NAME, repo=None, now=now))


def _disabled(row: HubRepositoryRow) -> list[Happening]:
    was, row.disabled = row.disabled, True
    if was:
        return []
    return [news.state_changed("hf_gated_changed", listed_of(row), "disabled", old=False, new=True)]


def _missed(row: HubRepositoryRow, *, now: datetime) -> list[Happening]:
    """Count one look that did not find it; the event once that means gone."""
    row.misses += 1
    row.missed_since = row.missed_since or now
    if row.state == hub.GONE or not news.is_gone(row.misses, row.missed_since, now):
        return []
    row.state = hub.GONE
    return [news.state_changed("hf_gone", listed_of(row), "state", old=hub.KNOWN, new=hub.GONE)]


def listed_of(row: HubRepositoryRow) -> Listed:
    """What a row says, as the hub said it."""
    return Listed(
        hub_id=row.hub_id,
        full_name=row.full_name,
        sha=row.sha or row.head_sha,
        gated=row.gated,
        private=row.private,
        disabled=row.disabled,
        tags=tuple(row.tags),
        base_models=tuple(row.base_models),
        created_at=row.created_at,
        last_modified=row.last_modified,
    )
