"""Rows of forks as pages get them, from each kind of database."""

from __future__ import annotations

from sqlalchemy import Engine
from support.fork_rows import repository, standing, watched
from support.rows import NOON, Rows

from jobs import db
from jobs.store import chains, overview
from jobs.store.chains import elders_first


def _names(found) -> list[str]:
    return [each.engine for each in found]


def test_a_chain_is_read_with_elders_first(database: Engine) -> None:
    """As the commits say, whatever the watch list named; each chain by itself."""
    with db.writing(database) as session:
        rows = Rows(session)
        watched(rows, "zz-upstream")
        turbo = rows.engine(name="turbo", parent="somebody")
        watched(rows, "turbo", "zz-upstream", row=turbo)
        bee = watched(rows, "bee", "turbo")
        watched(rows, "other")
    with db.reading(database) as session:
        found = chains.fork(session, bee)
        assert found is not None
        assert _names(found.chain) == ["zz-upstream", "turbo", "bee"]
        assert found.fork.standing is not None
        assert found.fork.standing.last_sync is not None
        assert found.fork.standing.last_sync.upstream_at.tzinfo is not None
        assert _names(chains.chain_named(session, "other")) == ["other"]
        assert chains.chain_named(session, "nobody") == ()
        assert chains.fork(session, 999) is None


def test_before_anything_was_worked_out_the_watch_list_speaks(database: Engine) -> None:
    """The named parent is shown, without a figure; one that is not watched is none."""
    with db.writing(database) as session:
        rows = Rows(session)
        for name, parent in (("up", None), ("child", "up"), ("orphan", "stranger")):
            repository(rows, rows.engine(name=name, parent=parent))
    with db.reading(database) as session:
        found = {each.engine: each for each in chains.watched(session)}
    assert (found["child"].parent, found["child"].upstream) == ("up", "up")
    assert (found["orphan"].parent, found["orphan"].upstream) == (None, "orphan")
    assert found["child"].standing is None


def test_a_circle_of_parents_ends(database: Engine) -> None:
    """Two forks that name each other are one chain, and nobody waits for ever."""
    with db.writing(database) as session:
        rows = Rows(session)
        watched(rows, "a", "b")
        watched(rows, "b", "a")
        watched(rows, "c", "b")
    with db.reading(database) as session:
        assert _names(chains.chain_named(session, "c")) == ["a", "b", "c"]
    assert sorted(elders_first({"x": "x", "y": "x", "z": "gone"})) == ["x", "y", "z"]


def test_a_fork_that_was_found_is_listed_with_its_parent(database: Engine) -> None:
    """Closest tier first, then stars; watched ones and repositories that are no forks are not."""
    with db.writing(database) as session:
        rows = Rows(session)
        watched(rows, "up")
        repository(rows, github_id=1, full_name="ggml-org/llama.cpp")
        for number, (tier, stars) in enumerate([(3, 9), (2, 1), (3, 10)], start=2):
            repository(
                rows,
                github_id=number,
                parent_github_id=1,
                full_name=f"p/{number}",
                tier=tier,
                stars=stars,
            )
    with db.reading(database) as session:
        found = chains.found(session, others=2)
    assert [each.full_name for each in found.others] == ["p/3", "p/4"]
    assert found.others[0].parent == "ggml-org/llama.cpp"
    assert found.others_total == 3


def test_sources_that_were_refused_are_told(database: Engine) -> None:
    """The reason stands where the abilities would."""
    with db.writing(database) as session:
        rows = Rows(session)
        place = repository(rows, rows.engine(name="fat"))
        standing(rows, place, "fat", capability={"problem": "a source of 1 GB is not read"})
    with db.reading(database) as session:
        (fat,) = chains.watched(session)
    assert fat.standing is not None
    assert (fat.standing.problem, fat.standing.abilities) == ("a source of 1 GB is not read", ())


def test_news_lead_to_the_page_of_their_repository(database: Engine) -> None:
    """An event of a package has no such page."""
    with db.writing(database) as session:
        rows = Rows(session)
        engine = rows.engine(name="up")
        place = watched(rows, "up", row=engine)
        rows.event(engine, seen_at=NOON)
        rows.event(rows.engine(name="wheel", repo=None, package="stub"), seen_at=NOON)
    with db.reading(database) as session:
        events = overview.front(session).events
        found = chains.fork(session, place)
        engines = {each.name: each.fork_id for each in overview.engines(session)}
    assert {each.engine: each.fork_id for each in events} == {"up": place, "wheel": None}
    assert found is not None
    assert (len(found.events), found.events_total) == (1, 1)
    assert engines == {"up": place, "wheel": None}


def test_an_event_shows_what_it_brought(database: Engine) -> None:
    """The names a push made understood come before its subjects; each is cut, and their number."""
    with db.writing(database) as session:
        rows = Rows(session)
        engine = rows.engine(name="up")
        place = watched(rows, "up", row=engine)
        names = [f"flags:--{number}" for number in range(99)]
        for key, facts in (
            ("cap", {"new": names, "subjects": ["no"]}),
            ("push", {"new": [], "subjects": ["x" * 999]}),
            ("tag", {"tag": "b1"}),
        ):
            rows.event(engine, key=key, payload={"facts": facts})
        rows.event(engine, key="release", payload={})
    with db.reading(database) as session:
        found = chains.fork(session, place)
    assert found is not None
    details = sorted((event.details for event in found.events), key=len)
    assert details[:2] == [(), ()]
    assert details[2] == ("x" * 120,)
    assert details[3] == tuple(names[:40])
