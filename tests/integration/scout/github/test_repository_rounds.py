"""Repositories themselves, read in rounds: missing, blocked, renamed, archived."""

from __future__ import annotations

from support.scene import BUUN, UPSTREAM, Scene

from jobs.db import reading, writing
from jobs.store import catalog, refs
from scout.kinship import kindred


def test_missing_once_is_not_gone(chain: Scene) -> None:
    """A 404 that comes back leaves no trace; three over a day mean gone; return is told."""
    chain.look()
    chain.github.status_of[BUUN] = 404
    chain.later(minutes=16)
    chain.look()
    assert chain.row(BUUN).misses == 1
    del chain.github.status_of[BUUN]
    chain.later(minutes=16)
    chain.look()
    assert (chain.row(BUUN).misses, chain.row(BUUN).state) == (0, "known")
    chain.github.status_of[BUUN] = 404
    for _ in range(8):
        chain.later(minutes=16)
        chain.look()
    assert (chain.row(BUUN).misses, chain.row(BUUN).state) == (8, "known")
    assert chain.gone_keys(BUUN) == []
    chain.later(hours=24)
    chain.look()
    assert chain.row(BUUN).state == "gone"
    assert len(chain.gone_keys(BUUN)) == 1
    chain.later(hours=24)
    chain.look()
    assert len(chain.gone_keys(BUUN)) == 1
    del chain.github.status_of[BUUN]
    chain.later(hours=24)
    chain.look()
    assert chain.row(BUUN).state == "known"
    assert any(key.startswith(f"gh:repo:{BUUN}:returned") for key in chain.told())


def test_a_takedown_blocks_one_repository_and_stops_nobody(chain: Scene) -> None:
    """451 is an event of its own, once; the others are looked at."""
    chain.look()
    chain.github.status_of[BUUN] = 451
    chain.later(minutes=16)
    assert chain.look().troubles == ()
    assert chain.row(BUUN).state == "blocked"
    assert f"gh:repo:{BUUN}:blocked:2026-05-18" in chain.told()
    assert chain.row(UPSTREAM).last_seen_at == chain.now
    chain.later(minutes=16)
    assert chain.look().new == ()


def test_a_renamed_repository_stays_itself(chain: Scene) -> None:
    """The id is the identity; the new name is told once and asked by id ever after."""
    chain.look()
    chain.github.rename(BUUN, "spiritbuun/new-name")
    chain.later(minutes=16)
    chain.look()
    assert f"gh:repo:{BUUN}:renamed:spiritbuun/new-name" in chain.told()
    assert chain.row(BUUN).full_name == "spiritbuun/new-name"
    assert chain.event(f"gh:repo:{BUUN}:renamed:spiritbuun/new-name").payload["old_name"] == (
        "spiritbuun/buun-llama-cpp"
    )


def test_a_watch_list_with_an_old_name_finds_the_repository(scene: Scene) -> None:
    """301 at the first look: the event says so, the engine is tied to the id."""
    scene.github.add(BUUN, "spiritbuun/old")
    scene.github.rename(BUUN, "spiritbuun/new")
    scene.engine("buun", "spiritbuun/old")
    scene.look("github_repositories")
    assert scene.row(BUUN).engine_id is not None
    event = scene.event(f"gh:repo:{BUUN}:renamed:spiritbuun/new")
    assert event.payload["status"] == 301


def test_a_name_nobody_has_is_said_and_asked_again(scene: Scene) -> None:
    """A typing error in the watch list is no repository that is gone."""
    scene.engine("typo", "ggml-org/lama.cpp")
    look = scene.look()
    assert "check the name in the watch list" in look.troubles[0]
    assert scene.told() == []


def test_archived_and_default_branch_are_told(chain: Scene) -> None:
    """Each change is one event."""
    chain.look()
    chain.github.repos[BUUN].update(archived=True, default_branch="main")
    chain.later(minutes=16)
    kinds = {each.kind for each in chain.look().new}
    assert kinds == {"repo_archived", "repo_default_changed"}


def test_two_engines_of_one_repository_share_its_number(scene: Scene) -> None:
    """It is asked for once, and belongs to the engine that has branches, whoever comes first."""
    scene.engine("a-pull", "ggml-org/llama.cpp", branches=["pull/22673"])
    scene.engine("upstream", "ggml-org/llama.cpp", branches=["master"])
    for name in ("a-pull", "upstream"):
        with writing(scene.database) as session:
            refs.repository_of(session, catalog.engine_named(session, name), scene.now)
    for _ in range(2):
        before = len(scene.github.asked)
        scene.look("github_repositories", force=True)
        assert len(scene.github.asked) == before + 1
    with reading(scene.database) as session:
        owner = catalog.engine_named(session, "upstream").id
        kin = kindred(session)
    assert scene.row(UPSTREAM).engine_id == owner
    assert {each.github_id for each in kin.values()} == {UPSTREAM}
    assert len({each.repository for each in kin.values()}) == 2


def test_a_name_nobody_has_is_said_though_git_has_met_it(scene: Scene) -> None:
    """At every look, in the same words, whether or not there is a row of it."""
    scene.engine("typo", "some/typo")
    scene.engine("seen", "some/seen")
    with writing(scene.database) as session:
        refs.repository_of(session, catalog.engine_named(session, "seen"), scene.now)
    for _ in range(2):
        assert scene.look().troubles == (
            "some/seen: GitHub knows no such page; check the name in the watch list",
            "some/typo: GitHub knows no such page; check the name in the watch list",
        )
        scene.later(minutes=20)


def test_two_repositories_without_a_number_are_two(scene: Scene) -> None:
    """Their events go by our own numbers, so that neither silences the other (C60)."""
    for name in ("one", "two"):
        scene.engine(name, f"some/{name}")
        with writing(scene.database) as session:
            refs.repository_of(session, catalog.engine_named(session, name), scene.now)
    scene.github.fail("/repos/some/", times=2, status=451)
    found = scene.look()
    assert sorted(each.title for each in found.new) == [
        "some/one is blocked by GitHub",
        "some/two is blocked by GitHub",
    ]
    keys = [key for key in scene.told() if key.startswith("gh:repo:")]
    assert len(keys) == 2
    assert all(key.startswith("gh:repo:r") for key in keys)
    assert scene.event(keys[0]).payload["repo_id"] is None
