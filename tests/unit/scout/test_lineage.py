"""Who descends from whom, on small graphs of the real chain's shape."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from support.graphs import DAY, START, Story, sha

from scout.graph import Distance
from scout.lineage import Absorbed, Descent, Member, lineage

NOW = datetime.fromtimestamp(START, tz=UTC) + timedelta(days=100)


def member(name: str, head: str, *tips: str, parent: str | None = None) -> Member:
    return Member(name, "main", sha(head), [sha(tip) for tip in tips], parent)


def chain() -> tuple[Story, list[Member]]:
    """Turbo was forked by buun, then rebased; buun merged upstream; bee forked buun."""
    story = Story()
    story.line("u0 u1 u2", author="Up")
    story.line("t0 t1", on="u0", author="tom")
    story.line("b0", on="t1", author="buun")
    story.line("u3 u4", on="u2", author="Up")
    story.rebased("r0", "t0", "u3")
    story.rebased("r1", "t1", "r0")
    story.line("r2", on="r1", author="tom")
    story.commit("m", "b0", "u4", author="buun")
    story.line("b1", on="m", author="buun")
    story.line("e0 e1", on="b1", author="bee")
    story.rebased("e2", "r2", "e1")
    story.line("b2", on="b1", author="buun")
    story.line("u5", on="u4", author="Up")
    return story, [
        member("upstream", "u5"),
        member("turbo", "r2", "t1"),
        member("buun", "b2"),
        member("bee", "e2"),
    ]


def descents(story: Story, members: list[Member]) -> dict[str, Descent]:
    return {
        each.engine: each for each in lineage(story.graph(), members, upstream="upstream", now=NOW)
    }


def test_the_chain_is_found_without_being_told() -> None:
    """A rebased parent is known by its old branch, and the elder by whose work is shared."""
    found = descents(*chain())
    assert {name: each.parent for name, each in found.items()} == {
        "upstream": None,
        "turbo": "upstream",
        "buun": "turbo",
        "bee": "buun",
    }


def test_distances_are_against_upstream_and_parent() -> None:
    """Each fork is counted twice, so that a fork of a fork does not look brilliant."""
    bee = descents(*chain())["bee"]
    assert bee.from_upstream is not None
    assert bee.from_parent is not None
    assert (bee.from_upstream.ahead, bee.from_upstream.behind) == (8, 1)
    assert (bee.from_parent.ahead, bee.from_parent.behind) == (3, 1)
    assert bee.from_parent.merge_base == sha("b1")
    assert (bee.own_patches, bee.patches_beyond_parent, bee.own_authors) == (7, 3, 3)


def test_a_patch_is_absorbed_once_from_the_nearest() -> None:
    """What came through the parent counts there; a cherry-pick counts for its source."""
    found = descents(*chain())
    assert found["buun"].absorbed == (Absorbed("turbo", 2, 2),)
    assert found["bee"].absorbed == (Absorbed("buun", 5, 4), Absorbed("turbo", 0, 1))
    assert found["turbo"].absorbed == ()


def test_the_last_sync_is_upstreams_date_and_the_merges() -> None:
    """When the upstream state was made, and when the fork took it; a child inherits both."""
    found = descents(*chain())
    for name in ("buun", "bee"):
        sync = found[name].last_sync
        assert sync is not None
        assert (sync.commit, sync.brought_by, sync.method) == (sha("u4"), sha("m"), "merge")
        assert sync.upstream_at < sync.brought_at
    assert found["buun"].stale_days == 100 - 7


def test_a_rebase_is_a_sync_without_a_merge() -> None:
    """It was brought when the first commit on top of it was made."""
    sync = descents(*chain())["turbo"].last_sync
    assert sync is not None
    assert (sync.commit, sync.brought_by, sync.method) == (sha("u3"), None, "rebase")
    assert sync.brought_at.timestamp() == START + 8 * DAY


def test_a_name_in_the_watch_list_decides_who_is_older() -> None:
    """Two forks with the same authors are told apart by what a person wrote."""
    story = Story()
    story.line("u0", author="Up")
    story.line("x0 x1", on="u0", author="x")
    story.line("y0", on="x1", author="x")
    members = [member("upstream", "u0"), member("x", "x1"), member("y", "y0")]
    for child, parent in (("x", "y"), ("y", "x")):
        named = [
            Member(
                each.name, each.branch, each.head, each.tips, parent if each.name == child else None
            )
            for each in members
        ]
        found = descents(story, named)
        assert (found[child].parent, found[parent].parent) == (parent, "upstream")


def test_a_mirror_has_nothing_of_its_own() -> None:
    """A fork that never changed is behind and no more."""
    story = Story()
    story.line("u0 u1", author="Up")
    same = descents(story, [member("upstream", "u1"), member("same", "u0")])["same"]
    assert same.from_upstream is not None
    assert (same.from_upstream.ahead, same.from_upstream.behind) == (0, 1)
    assert (same.own_patches, same.absorbed, same.parent) == (0, (), "upstream")


def test_an_unrelated_repository_has_no_base() -> None:
    """Without a common commit nothing is claimed, and nothing counted."""
    story = Story()
    story.line("u0", author="Up")
    story.line("z0", author="z")
    other = descents(story, [member("upstream", "u0"), member("other", "z0")])["other"]
    assert other.from_upstream == Distance(None, None, None)
    assert (other.last_sync, other.stale_days) == (None, None)


def test_without_upstream_only_the_named_parent_counts() -> None:
    """Upstream's work cannot be told from a fork's own, so nobody's patches are counted."""
    story, members = chain()
    named = {"buun": "turbo", "bee": "buun"}
    forks = [
        Member(each.name, each.branch, each.head, each.tips, named.get(each.name))
        for each in members[1:]
    ]
    found = descents(story, forks)
    assert {name: each.parent for name, each in found.items()} == {
        "turbo": "upstream",
        "buun": "turbo",
        "bee": "buun",
    }
    assert found["turbo"].from_parent is None
    assert found["bee"].from_parent == Distance(3, 1, sha("b1"))
    assert found["bee"].patches_beyond_parent == 3
    assert {(each.from_upstream, each.own_patches) for each in found.values()} == {(None, None)}
