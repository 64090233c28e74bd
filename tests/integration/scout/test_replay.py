"""The real chain from 28 April 2026 on, out of mirrors in the folder `FORKSCOUT_MIRRORS`.

Mirrors are bare repositories `OWNER/NAME.git` of the three forks. Upstream of 18 May is reachable
through a branch of buun. Without the folder nothing is collected here.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.watching import Scout, engine

from jobs.db import reading
from scout.family import family_of
from scout.kinship import kindred
from scout.lineage import Absorbed

UPSTREAM = "9a532ae4bab1b164052ce60a738f78538b421c66"
START = "2026-04-28T00:00:00Z"
FORKS = {
    "turboquant": ("TheTom/llama-cpp-turboquant", "feature/turboquant-kv-cache"),
    "buun": ("spiritbuun/buun-llama-cpp", "master"),
    "beellama": ("Anbeeld/beellama.cpp", "main"),
}
LIST = (
    engine("upstream", "ggml-org/llama.cpp", "master")
    + engine("turboquant", *FORKS["turboquant"], parent="upstream")
    + engine("buun", *FORKS["buun"], parent="turboquant")
    + engine("beellama", *FORKS["beellama"], parent="buun")
)


def git(place: Path, *words: str, text: str = "") -> str:
    done = subprocess.run(
        ["git", "-C", str(place), *words], input=text, check=True, capture_output=True, text=True
    )
    return done.stdout


class Past:
    """A repository that borrows a mirror's objects and shows its refs as of a moment."""

    def __init__(self, place: Path, mirror: Path, final: dict[str, str]) -> None:
        self.place = place
        self.final = final
        place.mkdir(parents=True)
        git(place, "init", "--quiet", "--bare")
        git(place, "config", "uploadpack.allowFilter", "true")
        git(place, "config", "uploadpack.allowAnySHA1InWant", "true")
        (place / "objects" / "info" / "alternates").write_text(f"{mirror / 'objects'}\n")

    def show(self, until: str | None = None) -> dict[str, str]:
        """Put every branch where it stood by committer date, and tags that were there."""
        refs = dict(self.final)
        if until is not None:
            for ref, sha in self.final.items():
                line = ["rev-list", "-1", f"--until={until}", "--first-parent", sha]
                then = git(self.place, *line).strip()
                if not then or (ref.startswith("refs/tags/") and then != sha):
                    del refs[ref]
                else:
                    refs[ref] = then
        update = "".join(f"update {ref} {sha}\n" for ref, sha in refs.items())
        git(self.place, "update-ref", "--stdin", text=update)
        return refs


def refs_of(mirror: Path) -> dict[str, str]:
    form = "--format=%(objectname) %(refname)"
    rows = git(mirror, "for-each-ref", form, "refs/heads", "refs/tags").splitlines()
    return {
        ref: git(mirror, "rev-parse", f"{sha}^{{commit}}").strip()
        for sha, _, ref in (row.partition(" ") for row in rows)
    }


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Past]:
    mirrors = Path(os.environ["FORKSCOUT_MIRRORS"]).absolute()
    hub = tmp_path / "hub"
    (tmp_path / "gitconfig").write_text(f'[url "{hub}/"]\n\tinsteadOf = https://github.com/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    buun = mirrors / f"{FORKS['buun'][0]}.git"
    found = {
        "upstream": Past(hub / "ggml-org/llama.cpp.git", buun, {"refs/heads/master": UPSTREAM})
    }
    for name, (repo, _) in FORKS.items():
        mirror = mirrors / f"{repo}.git"
        found[name] = Past(hub / f"{repo}.git", mirror, refs_of(mirror))
    return found


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
