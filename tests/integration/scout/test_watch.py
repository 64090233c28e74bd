"""Watching a real index into a real database of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from support.package_index import PackageIndex, sha256_of

from jobs.db import reading, writing
from jobs.errors import Transient, UsageError
from jobs.store import catalog, scenarios
from scout.loading import apply
from scout.reading import parse
from scout.sources import package_index as index_source
from scout.sources.base import Sighting, Source, Watched
from scout.watch import Summary, watch

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def now() -> datetime:
    return NOW


def wheel_engine(name: str, package: str, extra: str = "") -> str:
    return (
        f'[[engine]]\nname = "{name}"\nfamily = "xllamacpp"\npackage = "{package}"\n'
        f'trust = "package"\n{extra}\n[[engine.build]]\nrig = "cpu"\nvia = "wheel"\n'
    )


def model(name: str, digit: str = "a") -> str:
    return (
        f'[[model]]\nname = "{name}"\npackage = "tiny"\nversion = "1.0"\n'
        f'sha256 = "{digit * 64}"\nmodel_class = "tiny"\n'
    )


def stack(name: str, engine: str, target: str) -> str:
    return f'[[stack]]\nname = "{name}"\nengine = "{engine}"\ntarget = "{target}"\n'


FORK = '[[engine]]\nname = "fork"\nfamily = "llama.cpp"\nrepo = "a/b"\n'


def load_list(database: Engine, text: str, **how: bool) -> Any:
    with writing(database) as session:
        return apply(session, parse(text, "list.toml"), NOW, **how)


def look(database: Engine, **changes: Any) -> Summary:
    return watch(database, now=now, **changes)


def revisions(database: Engine, name: str) -> list[tuple[str, str]]:
    with reading(database) as session:
        engine = catalog.engine_named(session, name)
        return [(row.label, row.commit) for row in catalog.revisions_of(session, engine.id or 0)]


def test_the_newest_releases_become_revisions_and_events_once(
    database: Engine, package_index: PackageIndex
) -> None:
    """Three newest of four, oldest first; the second round finds nothing new."""
    wheels = [package_index.offer("stub", version) for version in ("1.9", "1.10", "1.11", "1.8")]
    load_list(database, wheel_engine("wheel", "stub"))
    first = look(database)
    assert first.looked == {"wheel": ("1.11", "1.10", "1.9")}
    expected = [(wheel.name.split("-")[1], sha256_of(wheel)) for wheel in wheels[:3]]
    assert revisions(database, "wheel") == expected
    with reading(database) as session:
        events = catalog.unplanned_events(session)
    assert [event.key for event in events] == [
        f"release:wheel:{label}:{digest}" for label, digest in expected
    ]
    assert events[0].payload["filename"] == wheels[0].name
    assert look(database).new == ()
    assert revisions(database, "wheel") == expected


def test_a_later_release_is_the_only_news(database: Engine, package_index: PackageIndex) -> None:
    """What was known stays, also when it falls out of the newest ones."""
    package_index.offer("stub", "1.0")
    load_list(database, wheel_engine("wheel", "stub", "newest = 1"))
    look(database)
    package_index.offer("stub", "1.1")
    assert [news.sighting.label for news in look(database).new] == ["1.1"]
    assert [label for label, _ in revisions(database, "wheel")] == ["1.0", "1.1"]


def test_a_replaced_file_is_told_and_adds_no_revision(
    database: Engine, package_index: PackageIndex
) -> None:
    """The same version with another sha256 is one event, however often it is seen."""
    before = sha256_of(package_index.offer("stub", "1.0"))
    load_list(database, wheel_engine("wheel", "stub"))
    look(database)
    package_index.offer("stub", "1.0", files={"stub/__init__.py": b"other = 1"})
    (news,) = look(database).new
    assert (news.kind, news.known_commit) == ("package_changed", before)
    assert look(database).new == ()
    assert revisions(database, "wheel") == [("1.0", before)]


def test_a_yanked_release_is_passed_over(database: Engine, package_index: PackageIndex) -> None:
    """What its maker took back is not benched; the next one takes its place."""
    for version, yanked in (("1.0", False), ("1.1", False), ("1.2", True)):
        package_index.offer("stub", version, yanked=yanked)
    load_list(database, wheel_engine("wheel", "stub", "newest = 2"))
    assert look(database).looked == {"wheel": ("1.1", "1.0")}


def test_doubt_keeps_the_state(database: Engine, package_index: PackageIndex) -> None:
    """An index that fails, or forgets a package, takes nothing away and is reported."""
    package_index.offer("stub", "1.0")
    load_list(database, wheel_engine("wheel", "stub"))
    look(database)
    known = revisions(database, "wheel")
    package_index.status = 503
    (trouble,) = look(database).troubles
    assert "did not answer" in trouble.message
    package_index.status = 200
    package_index.withdraw("stub")
    (trouble,) = look(database).troubles
    assert "knows no package" in trouble.message
    assert revisions(database, "wheel") == known


class Broken:
    """A source that fails for one engine, and has our own bug for another."""

    def watches(self, engine: Watched) -> bool:
        return engine.package is not None

    def look(
        self, engine: Watched, known: Mapping[str, str], *, log: Path | None
    ) -> Sequence[Sighting]:
        if engine.name == "down":
            raise Transient("no answer", advice="wait")
        if engine.name == "bug":
            raise ZeroDivisionError
        return index_source.look(engine, known, log=log)


def test_one_failing_source_stops_no_other(database: Engine, package_index: PackageIndex) -> None:
    """Each failure is reported by engine, also a bug of ours; the rest is looked at."""
    package_index.offer("stub", "1.0")
    names = ("bug", "down", "works")
    load_list(database, "".join(wheel_engine(name, "stub") for name in names) + FORK)
    source: Source = Broken()
    summary = look(database, sources={"broken": source})
    assert [trouble.engine for trouble in summary.troubles] == ["bug", "down"]
    assert list(summary.looked) == ["works"]
    assert summary.unwatched == ("fork",)


def test_engines_gone_from_the_list_are_retired_not_deleted(
    database: Engine, package_index: PackageIndex
) -> None:
    """A retired engine keeps its revisions, is not looked at, and can come back."""
    package_index.offer("stub", "1.0")
    both = wheel_engine("one", "stub") + wheel_engine("two", "stub")
    load_list(database, both + model("m") + stack("s", "two", "m"))
    look(database)
    assert load_list(database, wheel_engine("one", "stub")).retired == ()
    changes = load_list(database, wheel_engine("one", "stub"), replace=True)
    assert changes.retired == ("two",)
    assert changes.dropped == ("s",)
    assert list(look(database).looked) == ["one"]
    assert revisions(database, "two")
    assert load_list(database, both).changed == ("engine two",)
    assert list(look(database).looked) == ["one", "two"]


def test_an_import_twice_changes_nothing(database: Engine) -> None:
    """The rows already say what the list says."""
    text = wheel_engine("wheel", "stub") + FORK + model("m") + stack("s", "wheel", "m")
    assert set(load_list(database, text).new) == {
        "engine wheel",
        "engine fork",
        "rig cpu",
        "model m",
        "stack s",
    }
    again = load_list(database, text)
    assert (again.new, again.changed, again.retired, again.dropped) == ((), (), (), ())


def test_what_cannot_be_benched_yet_is_no_stack(database: Engine) -> None:
    """A stack on hub weights is told and not imported."""
    text = wheel_engine("wheel", "stub") + stack("s", "wheel", "a/b:q4")
    changes = load_list(database, text)
    assert "stack s is not benchable yet" in changes.not_yet[0]
    with reading(database) as session:
        assert catalog.stacks(session) == []


def test_a_scenario_of_a_list_goes_with_its_stack(database: Engine) -> None:
    """It is known by its name from then on; other words in the list change the stack."""
    own = '[[scenario]]\nname = "haiku"\nversion = 1\nprompt = "Rain."\ntokens = 64\n'
    text = wheel_engine("wheel", "stub") + model("m") + stack("s", "wheel", "m")
    text += 'scenarios = ["haiku"]\n'
    load_list(database, text + own)
    with reading(database) as session:
        found = scenarios.named(session, "haiku")
    assert (found.tokens, found.own, found.prompt) == (64, True, "Rain.")
    changes = load_list(database, text + own.replace("Rain", "Snow"))
    assert changes.changed == ("stack s",)
    with reading(database) as session:
        assert scenarios.named(session, "haiku").key != found.key


def test_a_name_never_changes_what_it_means(database: Engine) -> None:
    """Another sha256 for a model, or another package for an engine, is refused naming both."""
    text = wheel_engine("wheel", "stub") + model("m")
    load_list(database, text)
    with pytest.raises(UsageError, match=f"{'a' * 64}.*{'b' * 64}"):
        load_list(database, wheel_engine("new", "other") + model("m", "b"))
    with pytest.raises(UsageError, match="stub, now asked as xllamacpp other"):
        load_list(database, wheel_engine("wheel", "other"))
    with reading(database) as session:
        assert [row.name for row in catalog.engines(session)] == ["wheel"]


def test_unknown_names_come_with_the_nearest(database: Engine) -> None:
    """Engine, model, rig, stack and revision look-ups say what was perhaps meant."""
    load_list(database, wheel_engine("wheel", "stub") + model("m1") + stack("s1", "wheel", "m1"))
    with writing(database) as session:
        engine = catalog.engine_named(session, "wheel")
        catalog.add_revision(
            session, engine_id=engine.id or 0, commit="c" * 64, label="1.0", now=NOW
        )
    with reading(database) as session:
        for find, wrong, right in (
            (catalog.engine_named, "whel", "wheel"),
            (catalog.model_named, "m2", "m1"),
            (catalog.rig_named, "cup", "cpu"),
            (catalog.stack_named, "s2", "s1"),
        ):
            with pytest.raises(UsageError, match=wrong) as caught:
                find(session, wrong)
            assert right in caught.value.advice
        engine = catalog.engine_named(session, "wheel")
        for text in ("1.0", "c" * 64, "c" * 7):
            assert catalog.revision_named(session, engine, text).label == "1.0"
        with pytest.raises(UsageError, match="no known revision"):
            catalog.revision_named(session, engine, "cc")
