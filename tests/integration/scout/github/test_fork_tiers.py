"""Found forks that a person watches closely, and engines that nobody watches any more."""

from __future__ import annotations

import pytest
from sqlmodel import col, update
from support import github_json as make
from support.looks import look_at
from support.scene import BUUN, TURBO, UPSTREAM, Scene

from jobs.db import reading, writing
from jobs.errors import UsageError
from jobs.sightings import RefRow
from jobs.store import catalog, refs
from jobs.tables import EngineRow
from scout import adding, fork_tiers


def watch(scene: Scene, name: str) -> bool:
    with writing(scene.database) as session:
        return fork_tiers.watch_fork(session, name)


def unwatch(scene: Scene, name: str) -> None:
    with writing(scene.database) as session:
        fork_tiers.unwatch_fork(session, name, now=scene.now)


def paths(scene: Scene, part: str) -> list[str]:
    return [each.path for each in scene.github.asked if part in each.path]


def test_a_watched_fork_stays_watched_through_every_look(chain: Scene) -> None:
    """The count of all forks, their pushes and a search leave its tier alone."""
    chain.look()
    assert chain.row(TURBO).tier == 3
    assert watch(chain, "thetom/llama-cpp-turboquant") is True
    assert watch(chain, "TheTom/llama-cpp-turboquant") is False
    chain.github.repos[TURBO]["pushed_at"] = "2026-05-18T12:30:00Z"
    chain.later(days=1, minutes=1)
    chain.look(force=True)
    assert chain.row(TURBO).tier == 1
    assert chain.row(TURBO).engine_id is None
    unwatch(chain, "TheTom/llama-cpp-turboquant")
    assert chain.row(TURBO).tier == 2


def test_a_watched_fork_is_looked_at_as_one(chain: Scene) -> None:
    """Its page, its releases and its forks, hourly; never its pull requests and issues."""
    chain.look()
    watch(chain, "TheTom/llama-cpp-turboquant")
    chain.look()
    assert paths(chain, f"/repositories/{TURBO}/releases")
    chain.later(minutes=59)
    chain.github.asked.clear()
    chain.look()
    assert not paths(chain, f"/repositories/{TURBO}/releases")
    assert paths(chain, f"/repositories/{UPSTREAM}/releases")
    chain.later(minutes=2)
    chain.look()
    assert paths(chain, f"/repositories/{TURBO}/releases")
    assert not paths(chain, f"/repositories/{TURBO}/pulls")
    assert not paths(chain, f"/repositories/{TURBO}/issues")


def test_a_tag_that_moved_is_reason_enough_to_look_for_a_release(chain: Scene) -> None:
    """Git saw it for nothing; the hour is not waited for, once."""
    chain.look()
    watch(chain, "TheTom/llama-cpp-turboquant")
    chain.look()
    chain.later(minutes=10)
    row_id = chain.row(TURBO).id or 0
    with writing(chain.database) as session:
        refs.record_refs(session, row_id, {"refs/tags/v1": "a" * 40}, chain.now)
    chain.github.put(TURBO, "releases", make.release(3, "v1", "2026-05-18T12:09:00Z"))
    assert [each.key for each in chain.look().new] == ["gh:rel:3"]
    chain.github.asked.clear()
    chain.later(minutes=10)
    chain.look()
    assert not paths(chain, f"/repositories/{TURBO}/releases")
    with writing(chain.database) as session:
        moved = update(RefRow).where(col(RefRow.repository_id) == row_id)
        session.exec(moved.values(changed_at=chain.now, name="refs/heads/main"))
    chain.later(minutes=1)
    chain.look()
    assert not paths(chain, f"/repositories/{TURBO}/releases")


@pytest.mark.parametrize("name", ["some/body", "https://github.com/a/b", "-x/b", "a/../b"])
def test_only_a_fork_that_was_found_can_be_watched(chain: Scene, name: str) -> None:
    """Anything else is refused with what to do."""
    chain.look()
    with pytest.raises(UsageError) as refused:
        watch(chain, name)
    assert refused.value.advice


def test_an_engine_is_no_fork_to_watch(chain: Scene) -> None:
    """It is watched more closely already, and unwatching it is the watch list's business."""
    chain.look()
    for move in (watch, unwatch):
        with pytest.raises(UsageError):
            move(chain, "spiritbuun/buun-llama-cpp")
    assert chain.row(BUUN).tier == 0


def test_watched_forks_are_listed_whatever_became_of_them(chain: Scene) -> None:
    """Gone ones too: they can be let go."""
    chain.look()
    watch(chain, "TheTom/llama-cpp-turboquant")
    chain.github.status_of[TURBO] = 451
    chain.later(hours=2)
    chain.look()
    with reading(chain.database) as session:
        (row,) = fork_tiers.watched_forks(session)
    assert (row.full_name, row.state) == ("TheTom/llama-cpp-turboquant", "blocked")
    unwatch(chain, "TheTom/llama-cpp-turboquant")


def test_what_becomes_of_a_watched_fork_its_own_page_says(chain: Scene) -> None:
    """A list that still shows a blocked repository does not bring it back."""
    chain.look()
    watch(chain, "TheTom/llama-cpp-turboquant")
    chain.github.fail(f"/repositories/{TURBO}$", times=99, status=451)
    for _ in range(3):
        chain.later(days=1, minutes=1)
        chain.look()
        assert chain.row(TURBO).state == "blocked"
    assert len([key for key in chain.told() if key.startswith(f"gh:repo:{TURBO}:")]) == 1
    chain.github.faults.clear()
    chain.later(days=1)
    chain.look()
    assert chain.row(TURBO).state == "known"
    assert any(key.startswith(f"gh:repo:{TURBO}:returned") for key in chain.told())


def test_a_page_that_did_not_change_meanwhile_is_back_too(chain: Scene) -> None:
    """304 to the ETag of the time before: it is there, and the misses begin anew."""
    chain.look()
    chain.github.fail(f"/repositories/{BUUN}$", times=99, status=404)
    for _ in range(4):
        chain.later(hours=12)
        look_at(chain, "github_repositories")
    assert chain.row(BUUN).state == "gone"
    chain.github.faults.clear()
    chain.later(hours=1)
    found = look_at(chain, "github_repositories")
    assert [each.kind for each in found.new] == ["repo_returned"]
    row = chain.row(BUUN)
    assert (row.state, row.misses, "missed_since" in row.facts) == ("known", 0, False)


def test_an_engine_that_was_removed_is_asked_about_no_more(chain: Scene) -> None:
    """Neither its releases nor its forks; what is known of it stays, and it can come back."""
    chain.look()
    with writing(chain.database) as session:
        adding.remove(session, "buun")
    chain.later(days=1, minutes=1)
    chain.github.asked.clear()
    chain.look()
    assert not paths(chain, f"/repositories/{BUUN}")
    assert chain.row(BUUN).state == "known"
    with writing(chain.database) as session:
        engine = catalog.engine_named(session, "buun")
        assert isinstance(engine, EngineRow)
        engine.retired = False
    chain.later(minutes=16)
    chain.look()
    assert paths(chain, f"/repositories/{BUUN}/releases")
