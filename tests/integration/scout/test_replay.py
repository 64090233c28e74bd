"""The real chain from 28 April 2026 on, out of mirrors in the folder `FORKSCOUT_MIRRORS`.

Mirrors are bare repositories `OWNER/NAME.git` of the three forks. Upstream of 18 May is reachable
through a branch of buun. Without the folder nothing is collected here.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.mirrors import LIST, START, UPSTREAM, Past, chain_of, git
from support.watching import Scout

from jobs.db import reading
from scout.family import family_of
from scout.kinship import kindred
from scout.lineage import Absorbed


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Past]:
    hub = tmp_path / "hub"
    (tmp_path / "gitconfig").write_text(f'[url "{hub}/"]\n\tinsteadOf = https://github.com/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return chain_of(Path(os.environ["FORKSCOUT_MIRRORS"]).absolute(), hub)


def _replay(sqlite: Engine, past: dict[str, Past], tmp_path: Path) -> None:
    """Pushes, tags and syncs of three weeks, then the lineage as git itself counts it."""
    scout = Scout(sqlite, tmp_path)
    scout.load(LIST)
    before = {name: each.show(START) for name, each in past.items()}
    assert scout.look().new == ()
    after = {name: each.show() for name, each in past.items()}
    summary = scout.look()
    assert summary.troubles == ()
    events = list(scout.events().values())

    def told(kind: str, name: str) -> list[dict[str, object]]:
        return [
            row.payload["facts"]
            for row in events
            if row.kind == kind and row.title.startswith(f"{name}:")
        ]

    for name in past:
        moved = {
            ref
            for ref in before[name].keys() & after[name].keys()
            if ref.startswith("refs/heads/") and before[name][ref] != after[name][ref]
        }
        assert {fact["ref"] for fact in told("fork_pushed", name)} == moved
        created = after[name].keys() - before[name].keys()
        tags = {ref.removeprefix("refs/tags/") for ref in created if "/tags/" in ref}
        assert {fact["tag"] for fact in told("tag_created", name)} == tags
    (sync,) = (
        fact for fact in told("upstream_synced", "buun") if fact["ref"] == "refs/heads/master"
    )
    old = git(past["upstream"].place, "merge-base", UPSTREAM, before["buun"]["refs/heads/master"])
    assert str(sync["new_merge_base"]).startswith("a95a11e5b")
    assert sync["absorbed"] == int(
        git(past["upstream"].place, "rev-list", "--count", f"{old.strip()}..a95a11e5b")
    )
    assert sync["method"] == "merge"
    assert told("upstream_synced", "turboquant") == []

    with reading(sqlite) as session:
        kin = kindred(session)
    found = {each.engine: each for each in family_of("beellama", kin, scout.history, now=scout.at)}
    figures = {
        name: (each.from_upstream.ahead, each.from_upstream.behind)
        for name, each in found.items()
        if each.from_upstream is not None
    }
    assert figures == {"turboquant": (208, 351), "buun": (333, 229), "beellama": (360, 229)}
    bee = found["beellama"]
    assert bee.from_parent is not None
    assert (bee.parent, bee.from_parent.ahead, bee.from_parent.behind) == ("buun", 41, 14)
    assert found["buun"].absorbed == (Absorbed("turboquant", 44, 46),)
    assert bee.patches_beyond_parent == 38


if "FORKSCOUT_MIRRORS" in os.environ:

    def test_the_real_chain_is_told_as_it_happened(
        sqlite: Engine, past: dict[str, Past], tmp_path: Path
    ) -> None:
        """Pushes, tags and syncs since 28 April 2026, and the lineage that git itself counts."""
        _replay(sqlite, past, tmp_path)
