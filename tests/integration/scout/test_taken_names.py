"""A name that passes to a stranger: the number is the identity, for looking and for building."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.github import GitHub
from support.hub import Hub, Repository
from support.scene import BEE, Scene
from support.watching import NOON, Scout, bench_of, engine

from jobs.config import Settings
from jobs.db import reading, writing
from jobs.errors import JobFailure, UsageError
from jobs.resolving import Desk, resolve
from jobs.store import catalog, origins
from scout.adding import Wish, add, remove
from workers.errands import subject
from workers.source import trusted_name

pytestmark = pytest.mark.needs("git")
OLD, NEW, STRANGER = "anbeeld/bee", "anbeeld/moved", 99


class Moved:
    """A repository that was watched, and its GitHub."""

    def __init__(self, github: GitHub, hub: Hub, database: Engine, folder: Path) -> None:
        self.github, self.hub = github, hub
        self.own = hub.add(OLD)
        self.first = self.own.commit({"a": "1"}, message="first")
        self.own.push()
        github.public = github.url
        github.add(BEE, OLD)
        self.scout = Scout(database, folder)
        self.scene = Scene(github, database, NOON)
        self.scout.load(engine("bee", OLD, "main") + bench_of("bee"))
        self.api()
        assert self.scout.look().troubles == ()

    def api(self) -> None:
        self.scene.later(hours=1)
        self.scene.look("github_repositories")

    def rename(self) -> Repository:
        """The repository moves to its new name, at GitHub and for git."""
        self.github.rename(BEE, NEW)
        moved = self.hub.add(NEW)
        moved.git("reset", "--quiet", "--hard", moved.take(self.own, "main"))
        moved.push()
        return moved

    def squat(self) -> str:
        """Somebody takes the old name and pushes there."""
        self.github.add(STRANGER, OLD)
        evil = self.own.commit({"a": "evil"}, message="evil")
        self.own.push()
        return evil


@pytest.fixture
def moved(hub: Hub, sqlite: Engine, tmp_path: Path):
    with GitHub() as github:
        yield Moved(github, hub, sqlite, tmp_path)


def test_after_a_rename_git_asks_for_the_new_name(moved: Moved) -> None:
    """What a stranger pushes under the old name is never seen; a push to the new one is."""
    own = moved.rename()
    moved.api()
    moved.squat()
    summary = moved.scout.look()
    assert summary.new == ()
    assert summary.looked["bee"] == (f"main@{moved.first[:9]}",)
    pushed = own.commit({"a": "2"}, message="own work")
    own.push()
    (news,) = [each for each in moved.scout.look().new if each.kind == "fork_pushed"]
    assert news.revision == pushed
    evidence = moved.scout.events()[news.key].payload["evidence"]["url"]
    assert evidence.endswith(NEW)


def test_a_stranger_under_the_old_name_is_told_with_what_to_do(moved: Moved) -> None:
    """One event, and a trouble at every look until the watch list has the new name."""
    moved.rename()
    moved.squat()
    moved.api()
    assert f"gh:repo:{BEE}:name_taken:{OLD}:{STRANGER}" in moved.scene.told()
    (trouble,) = moved.scout.look().troubles
    assert (trouble.engine, str(STRANGER) in trouble.message) == ("bee", True)
    assert f"repo = '{NEW}'" in trouble.advice
    moved.api()
    assert moved.scout.look().troubles == (trouble,)
    moved.scout.load(engine("bee", NEW, "main") + bench_of("bee"))
    moved.api()
    assert moved.scout.look().troubles == ()
    moved.github.remove(STRANGER)


def test_nothing_is_taken_from_a_name_whose_number_shows_nothing(moved: Moved) -> None:
    """The repository vanishes and a stranger takes its name: no look, no event of a push."""
    moved.github.remove(BEE)
    moved.api()
    evil = moved.squat()
    summary = moved.scout.look()
    assert summary.new == ()
    assert "bee" not in summary.looked
    assert "is not known" in summary.troubles[0].message
    moved.api()
    assert "another repository" in moved.scout.look().troubles[0].message
    with reading(moved.scout.database) as session:
        assert evil not in {row.commit for row in catalog.revisions_of(session, 1)}


def test_a_number_that_shows_again_ends_the_doubt(moved: Moved) -> None:
    """A 404 that comes back costs a pause, and nothing else."""
    moved.github.status_of[BEE] = 404
    moved.api()
    assert moved.scout.look().troubles
    del moved.github.status_of[BEE]
    moved.api()
    assert moved.scout.look().troubles == ()


def test_builds_and_submits_use_the_number_too(moved: Moved, tmp_path: Path) -> None:
    """A worker asks for the new name, and for none that is in doubt; so does a submit by hand."""
    own = moved.rename()
    moved.squat()
    moved.api()
    database = moved.scout.database
    settings = Settings(home=tmp_path / "home")
    with writing(database) as session:
        row = catalog.engine_named(session, "bee")
        revision = catalog.add_revision(
            session, engine_id=1, commit=own.head, label="x", order_key="x", now=NOON
        )
        known = subject(session, revision.id or 0)
        assert trusted_name(known) == known.revision.source == NEW
    assert resolve(Desk(settings, database), row, "main").commit == own.head
    moved.github.remove(BEE)
    moved.api()
    with reading(database) as session:
        in_doubt = subject(session, revision.id or 0)
        assert origins.origin_of(session, row).doubt
    with pytest.raises(JobFailure, match="is not known"):
        trusted_name(in_doubt)
    with pytest.raises(UsageError, match="is not known"):
        resolve(Desk(settings, database), row, "main")


def test_engines_of_one_repository_move_together(moved: Moved) -> None:
    """The one that has no row with the number of its own asks for the new name as well."""
    moved.scout.load(engine("bee", OLD, "main") + engine("try", OLD, "try"))
    moved.rename()
    moved.api()
    with reading(moved.scout.database) as session:
        rows = catalog.engines(session)
        assert {each.repo for each in origins.origins(session, rows).values()} == {NEW}


def test_the_old_name_is_free_once_the_watch_list_has_the_new_one(moved: Moved) -> None:
    """Until then both names mean the engine that is watched; then it is another engine's."""
    moved.rename()
    moved.squat()
    moved.api()
    with writing(moved.scout.database) as session:
        for name in (OLD, NEW):
            with pytest.raises(UsageError, match="watched already, as 'bee'"):
                add(session, Wish(name), this_rig="cpu", now=NOON)
    moved.scout.load(engine("bee", NEW, "main"))
    with writing(moved.scout.database) as session:
        assert add(session, Wish(OLD, name="other"), this_rig="cpu", now=NOON).repo == OLD
        where = origins.origins(session, catalog.engines(session))
    assert [each.repo for each in where.values()] == [NEW, OLD]


def test_a_retired_engine_says_nothing_of_its_old_name(moved: Moved) -> None:
    """Whoever watches the stranger on purpose, under another name, gets the stranger."""
    moved.rename()
    moved.squat()
    moved.api()
    with writing(moved.scout.database) as session:
        remove(session, "bee")
        add(session, Wish(OLD, name="other"), this_rig="cpu", now=NOON)
        other = catalog.engine_named(session, "other")
        assert origins.origin_of(session, other).repo == OLD
    moved.api()
    with reading(moved.scout.database) as session:
        assert origins.origin_of(session, other).github_id == STRANGER
