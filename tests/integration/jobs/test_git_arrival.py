"""What a fetch brings: refused whole, bounded for each repository, nothing of it left behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.hub import Hub, Repository
from support.shared_network import OTHER, URL, refs

from jobs import git_arrival, git_network, git_packs, git_rooms
from jobs.errors import Permanent, Transient
from jobs.git_history import commits
from jobs.git_network import BRANCH, SEEN

pytestmark = pytest.mark.needs("git")


def packs(network: Path) -> set[str]:
    return {path.name for path in (network / "objects" / "pack").iterdir()}


def test_a_refused_push_leaves_nothing_on_the_disk(
    repository: Repository, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is tried, and what the fork left behind earlier stays."""
    git_network.update(network, URL, 1)
    old = repository.head
    repository.git("commit", "--quiet", "--amend", "-m", "rewritten")
    repository.push()
    git_network.update(network, URL, 1)
    before = packs(network)
    monkeypatch.setattr(git_rooms, "COMMITS_LIMIT", 4)
    for n in range(5):
        repository.commit({"x": str(n)})
    repository.push()
    for _ in range(2):
        with pytest.raises(Permanent, match="more history"):
            git_network.update(network, URL, 1)
        assert packs(network) == before
    assert f"{SEEN}1/{old}" in refs(network, SEEN)


def test_what_one_repository_forces_away_adds_up_to_its_own_limit(
    hub: Hub, repository: Repository, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest goes; nobody else's is touched, and nobody else reads it."""
    git_network.update(network, URL, 1)
    other = hub.add("b/engine")
    theirs = other.commit({"x": "1"})
    other.push()
    git_network.update(network, OTHER, 2)
    other.git("commit", "--quiet", "--amend", "-m", "rewritten")
    other.push()
    git_network.update(network, OTHER, 2)
    monkeypatch.setattr(git_rooms, "COMMITS_LIMIT", 8)
    forced = []
    for n in range(6):
        repository.git("checkout", "--quiet", "--orphan", f"o{n}")
        for m in range(3):
            forced.append(repository.commit({"y": f"{n} {m}"}, message=f"{n} {m}"))
        repository.push()
        assert git_network.update(network, URL, 1).commits == {f"{BRANCH}main": forced[-1]}
    kept = {commit.sha for commit in commits(network, [1])}
    assert set(forced[-6:]) <= kept
    assert len(kept) <= 8
    assert refs(network, f"{SEEN}2/") == [f"{SEEN}2/{theirs}"]
    assert kept.isdisjoint(commit.sha for commit in commits(network, [2]))


def test_old_tips_of_all_together_stay_readable_under_no_number(
    repository: Repository, network: Path
) -> None:
    """A network of earlier days is put in order at its next look."""
    old = repository.commit({"b": "old"})
    repository.push()
    git_network.update(network, URL, 1)
    (network / git_network.ROOMS_GIVEN).unlink()
    subprocess.run(["git", "update-ref", f"{SEEN}{old}", old], cwd=network, check=True)
    repository.git("reset", "--quiet", "--hard", "HEAD~")
    repository.push()
    git_network.update(network, URL, 1)
    assert set(refs(network, SEEN)) == {f"{SEEN}0/{old}", f"{SEEN}1/{old}"}
    subprocess.run(["git", "update-ref", "-d", f"{SEEN}1/{old}"], cwd=network, check=True)
    assert old in {commit.sha for commit in commits(network, [1])}


def test_what_a_killed_process_fetched_is_judged_at_the_next_look(
    hub: Hub, repository: Repository, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its list did not move since, and whoever is looked at next."""
    git_network.update(network, URL, 1)
    other = hub.add("b/engine")
    other.commit({"x": "1"})
    other.push()
    before = packs(network)
    for n in range(5):
        repository.commit({"x": str(n)})
    repository.push()

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(git_arrival, "refuse_flood", die)
        with pytest.raises(Killed):
            git_network.update(network, URL, 1)
    assert packs(network) != before
    monkeypatch.setattr(git_rooms, "COMMITS_LIMIT", 4)
    assert git_network.update(network, OTHER, 2).fetched
    assert refs(network, "refs/remotes/1/") == []
    assert not git_arrival.is_unjudged(network)


def test_a_fetch_that_fails_leaves_no_part_of_a_pack(tmp_path: Path) -> None:
    """What is half there may be what fills the disk."""
    folder = tmp_path / "objects" / "pack"
    folder.mkdir(parents=True)
    (folder / "pack-1.pack").touch()

    def fail() -> None:
        (folder / "tmp_pack_x").write_bytes(b"x" * 100)
        raise Transient("cut off")

    with pytest.raises(Transient), git_packs.arriving(tmp_path):
        fail()
    assert [path.name for path in folder.iterdir()] == ["pack-1.pack"]
