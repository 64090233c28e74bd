"""What is remembered of repositories and their refs, in each kind of database."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Engine
from sqlmodel import select
from support.rows import NOON, Rows

from jobs.db import writing
from jobs.sightings import RefRow, RepositoryRow
from jobs.store import refs

LATER = NOON + timedelta(hours=1)


def test_a_repository_seen_before_is_tied_to_its_engine(database: Engine) -> None:
    """By name, whatever its case; a second engine of the same repository gets a row of its own."""
    with writing(database) as session:
        rows = Rows(session)
        one, two = rows.engine(repo="Own/Engine"), rows.engine(repo="own/engine")
        known = RepositoryRow(
            full_name="own/ENGINE", github_id=5, tier=2, first_seen_at=NOON, last_seen_at=NOON
        )
        session.add(known)
        session.flush()
        assert refs.repository_of(session, one, NOON).id == known.id
        assert refs.repository_of(session, one, NOON).tier == 0
        other = refs.repository_of(session, two, NOON)
        assert other.id != known.id
        assert refs.repository_of(session, two, NOON).id == other.id
        assert set(refs.repositories_of_engines(session)) == {one.id, two.id}


def test_refs_keep_when_they_changed_and_went(database: Engine) -> None:
    """A deleted ref is marked, and lives again when it comes back."""
    with writing(database) as session:
        place = refs.repository_of(session, Rows(session).engine(repo="a/b"), NOON)
        number = place.id or 0
        refs.record_refs(session, number, {"refs/heads/a": "1", "refs/heads/b": "1"}, NOON)
        refs.record_refs(session, number, {"refs/heads/a": "2"}, LATER)
        assert refs.refs_of(session, number) == {"refs/heads/a": "2"}
        rows = {row.name: row for row in session.exec(select(RefRow))}
        assert rows["refs/heads/a"].first_seen_at == NOON
        assert rows["refs/heads/a"].changed_at == LATER
        assert rows["refs/heads/b"].gone_at == LATER
        refs.record_refs(session, number, {"refs/heads/b": "1"}, LATER)
        assert refs.refs_of(session, number) == {"refs/heads/b": "1"}


def test_all_repositories_are_read_at_once(database: Engine) -> None:
    """As each would be alone; a lost tag says nothing, and a candidate is nobody's engine."""
    with writing(database) as session:
        rows = Rows(session)
        engines = [rows.engine(repo=f"a/{name}") for name in "bcd"]
        places = refs.repositories_of(session, engines[:2], NOON)
        assert set(places) == {each.id for each in engines[:2]}
        one, two = (place.id or 0 for place in places.values())
        both = {"refs/heads/a": "1", "refs/tags/v1": "2"}
        for number in (one, two):
            refs.record_refs(session, number, both, NOON)
        refs.record_refs(session, two, {"refs/heads/b": "3"}, LATER)
        found = refs.recorded_of_engines(session)
        assert found == {
            one: refs.Recorded(both, {}),
            two: refs.Recorded({"refs/heads/b": "3"}, {"refs/heads/a": "1"}),
        }
        candidate = RepositoryRow(full_name="a/d", tier=2, first_seen_at=NOON, last_seen_at=NOON)
        session.add(candidate)
        session.flush()
        refs.record_refs(session, candidate.id or 0, both, NOON)
        assert refs.recorded_of_engines(session) == found
        places[engines[0].id or 0].tier = 1
        again = refs.repositories_of(session, engines, LATER)
        assert [again[each.id or 0].id for each in engines] == [one, two, candidate.id]
        assert {place.tier for place in again.values()} == {0}
        assert set(refs.recorded_of_engines(session)) == {one, two}


def test_a_silent_place_is_asked_less_and_less(database: Engine) -> None:
    """The wait doubles up to a day, and an answer forgives all of it."""
    with writing(database) as session:
        waits = []
        for _ in range(9):
            refs.note_failure(session, "git:1", NOON)
            waits.append(refs.source_state(session, "git:1", NOON).retry_at - NOON)
        assert waits[:3] == [timedelta(minutes=15), timedelta(minutes=30), timedelta(hours=1)]
        assert waits[-1] == timedelta(hours=24)
        refs.note_answers(session, ["git:1"], NOON)
        assert refs.source_state(session, "git:1", NOON).retry_at is None
