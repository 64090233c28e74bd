"""The room of the weights store: who is pushed out, who never is; over both databases."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from support.rows import NOON, Rows, digest
from support.work import request

from jobs import db
from jobs.config import Settings
from jobs.errors import JobFailure, Later, Permanent
from jobs.model import Kind, State
from jobs.store import weights, work
from jobs.tables import ModelFileRow
from workers.store_name import NAME_FILE, store_name
from workers.weight_bringing import store_of
from workers.weight_store import PART_DAYS, Store, being_read

MB = 1_000_000
HUB = {"repo": "a/b", "file": "c.gguf"}
HERE, ELSEWHERE = "a" * 32, "b" * 32

MakeStore = Callable[..., Store]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def make_store(database: Engine, tmp_path: Path, said: list[str]) -> MakeStore:
    def make(**limits: Any) -> Store:
        settings = Settings(home=tmp_path / "home", **{"min_free_bytes": 0, **limits})
        settings.prepare()
        settings.weights.mkdir(exist_ok=True)
        (settings.weights / NAME_FILE).write_text(HERE)
        return store_of(settings, database, say=said.append)

    return make


def put(store: Store, name: str, *, megabytes: int = 1, used_at: int, suffix: str = "gguf") -> str:
    """A weight of that many megabytes, last used then."""
    sha256 = digest(name)
    path = store.root / f"{sha256}.{suffix}"
    path.write_bytes(b"\0" * (megabytes * MB))
    os.utime(path, (used_at, used_at))
    return sha256


def model(database: Engine, name: str, **values: Any) -> ModelFileRow:
    """A stored model file with a source, of that name's digest."""
    with db.writing(database) as session:
        values = {"stored_in": HERE, "source": HUB, "sha256": digest(name), **values}
        return Rows(session).model_file(name=name, **values)


def job(database: Engine, of: ModelFileRow, **values: Any) -> None:
    with db.writing(database) as session:
        Rows(session).job(payload={"model_file_id": of.id}, **values)


def here(store: Store) -> list[str]:
    return [entry.sha256 for entry in store.entries()]


def is_present(database: Engine, of: ModelFileRow) -> bool:
    with db.reading(database) as session:
        return HERE in weights.stores_of(session, of.id or 0)


def test_the_least_recently_used_goes_first_and_no_more_than_must(
    make_store: MakeStore, database: Engine, said: list[str]
) -> None:
    """Its row says at once that it is gone, and the log says that it went."""
    store = make_store(weights_budget_bytes=3 * MB)
    rows = {name: model(database, name) for name in ("old", "middle", "new")}
    shas = [put(store, name, used_at=at) for at, name in enumerate(rows, start=1000)]
    with store.room_kept(MB):
        assert here(store) == shas[1:]
    assert [is_present(database, row) for row in rows.values()] == [False, True, True]
    assert [words for words in said if digest("old")[:12] in words]


@pytest.mark.parametrize("state", [State.QUEUED, State.BLOCKED, State.LEASED, State.RUNNING])
@pytest.mark.parametrize("kind", [Kind.FETCH_MODEL, Kind.BENCH])
def test_what_a_living_job_needs_stays(
    make_store: MakeStore, database: Engine, state: State, kind: Kind
) -> None:
    """Whatever the job does with it and however long ago it was used."""
    store = make_store(weights_budget_bytes=2 * MB)
    needed, other = model(database, "needed"), model(database, "other")
    job(database, needed, state=state, kind=kind)
    put(store, "needed", used_at=1)
    put(store, "other", used_at=2)
    with store.room_kept(MB):
        assert here(store) == [needed.sha256]
    assert (is_present(database, needed), is_present(database, other)) == (True, False)


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.CANCELLED, State.DEAD])
def test_an_ended_job_needs_nothing(make_store: MakeStore, database: Engine, state: State) -> None:
    """Its weights may be pushed out."""
    store = make_store(weights_budget_bytes=MB)
    job(database, model(database, "used"), state=state, kind=Kind.BENCH)
    put(store, "used", used_at=1)
    with store.room_kept(MB):
        assert here(store) == []


def test_files_of_a_needed_set_stay(make_store: MakeStore, database: Engine) -> None:
    """A job that needs the set needs each file that has come already."""
    store = make_store(weights_budget_bytes=MB)
    shards = [digest("s1"), digest("s2")]
    job(database, model(database, "set", source={**HUB, "shards": shards}), state=State.QUEUED)
    put(store, "s1", used_at=1)
    with pytest.raises(JobFailure, match="no room"), store.room_kept(MB):
        pass
    assert here(store) == shards[:1]


def test_nothing_is_removed_where_it_would_not_do(make_store: MakeStore, database: Engine) -> None:
    """A file of an impossible size empties no store."""
    store = make_store(weights_budget_bytes=2 * MB)
    model(database, "old")
    put(store, "old", used_at=1)
    for need in (3 * MB, 10**18):
        with pytest.raises(JobFailure) as caught, store.room_kept(need):
            pass
        assert caught.value.failure_class == "disk_full"
        assert "FORKSCOUT_WEIGHTS_BUDGET_BYTES" in caught.value.advice
    assert len(here(store)) == 1


def test_a_file_that_is_read_stays(make_store: MakeStore, database: Engine) -> None:
    """Until its reader has closed it."""
    store = make_store(weights_budget_bytes=MB)
    model(database, "read")
    sha256 = put(store, "read", used_at=1)
    with being_read([store.file(sha256)]):
        with pytest.raises(JobFailure), store.room_kept(MB):
            pass
        assert here(store) == [sha256]
    with store.room_kept(MB):
        assert here(store) == []


def test_what_a_person_added_stays(make_store: MakeStore, database: Engine) -> None:
    """Nothing would bring it again."""
    store = make_store(weights_budget_bytes=MB)
    model(database, "mine", source={})
    sha256 = put(store, "mine", used_at=1)
    with pytest.raises(JobFailure), store.room_kept(MB):
        pass
    assert here(store) == [sha256]
    assert store.remove(store.entries()[0])


def test_use_is_what_counts(make_store: MakeStore, database: Engine) -> None:
    """Reading the oldest makes it the newest."""
    store = make_store(weights_budget_bytes=2 * MB)
    first, second = model(database, "first"), model(database, "second")
    put(store, "first", used_at=1)
    put(store, "second", used_at=2)
    with being_read([store.file(first.sha256)]):
        pass
    with store.room_kept(MB):
        assert here(store) == [first.sha256]
    assert not is_present(database, second)


def test_a_fetch_and_a_removal_take_turns(make_store: MakeStore, database: Engine) -> None:
    """Who fetches holds the lock; a removal leaves it, a second fetch is put off."""
    store = make_store()
    model(database, "busy")
    sha256 = put(store, "busy", used_at=1)
    with store.alone_with([sha256]):
        assert not store.remove(store.entries()[0])
        with pytest.raises(Later), store.alone_with([sha256]):
            pass
    assert here(store) == [sha256]


def test_parts_are_swept_after_a_week(make_store: MakeStore, database: Engine) -> None:
    """Younger ones, and those of a living job, are kept for resuming."""
    store = make_store()
    now = 10_000_000.0
    week_ago = int(now - PART_DAYS * 86400)
    put(store, "forgotten", used_at=week_ago - 5, suffix="part")
    put(store, "forgotten", used_at=week_ago - 5, suffix="journal")
    put(store, "orphan", used_at=week_ago - 5, suffix="journal")
    young = put(store, "young", used_at=week_ago + 5, suffix="part")
    waited = model(database, "waited for")
    job(database, waited, state=State.QUEUED)
    for suffix in ("part", "journal"):
        put(store, "waited for", used_at=week_ago - 5, suffix=suffix)
    put(store, "whole", used_at=1)
    gone = store.sweep(now=now)
    assert [entry.sha256 for entry in gone] == [digest("forgotten")]
    assert set(here(store)) == {young, waited.sha256, digest("whole")}
    assert [path.name for path in store.root.glob("*.journal*")] == [f"{waited.sha256}.journal"]


def test_strange_names_are_not_ours(make_store: MakeStore) -> None:
    """Files that no digest names are neither counted nor touched."""
    store = make_store()
    for name in ("README", "x.gguf", f"{'g' * 64}.gguf", f"{digest('a')}.txt"):
        (store.root / name).write_bytes(b"x")
    (store.root / digest("set")).mkdir()
    (store.root / digest("set") / "a.gguf").write_bytes(b"abc")
    assert [(entry.form, entry.size_bytes) for entry in store.entries()] == [("set", 3)]
    assert store.remove(store.entries()[0])
    assert not (store.root / digest("set")).exists()


def test_what_one_store_loses_another_still_holds(make_store: MakeStore, database: Engine) -> None:
    """Its row there stays, and no fetch is queued for what lies somewhere."""
    store = make_store(weights_budget_bytes=MB)
    both = model(database, "both")
    with db.writing(database) as session:
        weights.say_stored(session, both.sha256, MB, store=ELSEWHERE, now=NOON)
    put(store, "both", used_at=1)
    with store.room_kept(MB):
        assert here(store) == []
    with db.writing(database) as session:
        assert weights.stores_of(session, both.id or 0) == [ELSEWHERE]
        wanted = request("f", kind=Kind.FETCH_MODEL, payload={"model_file_id": both.id})
        assert work.enqueue(session, [wanted], NOON) == {wanted.identity: None}
        weights.let_go(session, both.sha256, store=ELSEWHERE)
        assert work.enqueue(session, [wanted], NOON)[wanted.identity] is not None


def test_taking_stock_corrects_what_was_said_of_this_store_alone(
    make_store: MakeStore, database: Engine
) -> None:
    """Files that came or went while nobody worked; parts are not held, sets are."""
    store = make_store()
    gone, came, part = model(database, "gone"), model(database, "came", stored_in=None), "part"
    half = model(database, part)
    in_files = model(database, "set", stored_in=None)
    other = model(database, "other", stored_in=ELSEWHERE)
    put(store, "came", used_at=1)
    put(store, part, used_at=1, suffix="part")
    store.folder(in_files.sha256).mkdir()
    (store.folder(in_files.sha256) / "a-00001-of-00001.gguf").write_bytes(b"x")
    with db.writing(database) as session:
        for _ in range(2):
            weights.take_stock(session, store.whole(), store=store.name, now=NOON)
    with db.reading(database) as session:
        held = {
            row.name: weights.stores_of(session, row.id or 0)
            for row in (gone, came, half, in_files, other)
        }
    assert held == {
        "gone": [], "came": [HERE], "part": [], "set": [HERE], "other": [ELSEWHERE],
    }  # fmt: skip


def test_a_store_keeps_the_name_that_was_written_first(tmp_path: Path) -> None:
    """Machines that share the folder share the name; a damaged name is said."""
    name = store_name(tmp_path / "weights")
    assert store_name(tmp_path / "weights") == name
    assert store_name(tmp_path / "others") != name
    assert [path.name for path in (tmp_path / "weights").iterdir()] == [NAME_FILE]
    (tmp_path / "weights" / NAME_FILE).write_bytes(b"\xff../x")
    with pytest.raises(Permanent, match="damaged"):
        store_name(tmp_path / "weights")
