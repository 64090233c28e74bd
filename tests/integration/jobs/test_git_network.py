"""One bare repository for many forks, against real git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.hub import Hub, Repository
from support.shared_network import OTHER, URL, refs

from jobs import git_contents, git_network, git_remote, git_rooms
from jobs.errors import Permanent, ScoutError, Transient
from jobs.git_history import changed_files, changed_paths, commits
from jobs.git_network import BRANCH, SEEN, TAG

pytestmark = pytest.mark.needs("git")


def test_a_second_look_fetches_only_what_moved(repository: Repository, network: Path) -> None:
    """Unchanged refs cost one listing; a moved one is fetched."""
    first = git_network.update(network, URL, 1)
    assert first.fetched
    assert first.commits == {f"{BRANCH}main": repository.head}
    assert not git_network.update(network, URL, 1).fetched
    head = repository.commit({"b": "2"})
    repository.push()
    second = git_network.update(network, URL, 1)
    assert (second.fetched, second.commits[f"{BRANCH}main"]) == (True, head)


def test_equal_names_of_two_forks_never_meet(
    hub: Hub, repository: Repository, network: Path
) -> None:
    """The same tag means another commit in each; an annotated one counts as its commit."""
    repository.git("tag", "-a", "-m", "ours", "b1")
    repository.push("main", "b1")
    other = hub.add("b/engine")
    theirs = other.commit({"x": "1"})
    other.git("tag", "b1")
    other.push("main", "b1")
    git_network.update(network, URL, 1)
    git_network.update(network, OTHER, 2)
    assert git_network.tips(network, 1)[f"{TAG}b1"] == repository.head
    assert git_network.tips(network, 2)[f"{TAG}b1"] == theirs
    assert not git_network.update(network, URL, 1).fetched


def test_what_was_forced_away_or_deleted_stays(repository: Repository, network: Path) -> None:
    """A rewritten and a deleted tip keep a ref of ours; one that only moved on needs none."""
    repository.git("checkout", "--quiet", "-b", "work")
    old = repository.commit({"b": "old"})
    repository.push("work")
    git_network.update(network, URL, 1)
    repository.commit({"c": "on"})
    repository.push("work")
    git_network.update(network, URL, 1)
    assert refs(network, SEEN) == []
    forced = repository.head
    repository.git("reset", "--quiet", "--hard", "main")
    new = repository.commit({"b": "new"})
    repository.push("work")
    git_network.update(network, URL, 1)
    assert refs(network, SEEN) == [f"{SEEN}1/{forced}"]
    repository.push(":work")
    git_network.update(network, URL, 1)
    assert set(refs(network, SEEN)) == {f"{SEEN}1/{forced}", f"{SEEN}1/{new}"}
    assert f"{BRANCH}work" not in git_network.tips(network, 1)
    assert {old, forced, new} <= {each.sha for each in commits(network, [1])}


def test_contents_come_one_by_one_and_only_when_asked(
    repository: Repository, network: Path
) -> None:
    """Ids need no content; asking for one file brings that one."""
    git_network.update(network, URL, 1)
    head = repository.head
    places = [(head, "common/arg.cpp"), (head, "src"), (head, "missing")]
    assert list(git_contents.file_ids(network, places)) == [(head, "common/arg.cpp")]
    assert not git_contents._is_here(
        network, repository.git("rev-parse", "HEAD:src/main.c").strip()
    )
    assert git_contents.read_files(network, URL, places) == {(head, "common/arg.cpp"): "one"}
    assert not git_contents._is_here(
        network, repository.git("rev-parse", "HEAD:src/main.c").strip()
    )


def test_a_server_without_filters_works_too(repository: Repository, network: Path) -> None:
    """An old server sends contents as well; nothing else differs."""
    subprocess.run(
        ["git", "config", "uploadpack.allowFilter", "false"], cwd=repository.bare, check=True
    )
    assert git_network.update(network, URL, 1).commits == {f"{BRANCH}main": repository.head}
    wanted = [(repository.head, "src/main.c")]
    assert list(git_contents.read_files(network, URL, wanted).values()) == ["int main;"]


def test_a_missing_repository_changes_nothing(repository: Repository, network: Path) -> None:
    """Gone, or shown without branches: an error, and what was known stays known."""
    git_network.update(network, URL, 1)
    known = git_network.tips(network, 1)
    hidden = repository.bare.with_suffix(".hidden")
    repository.bare.rename(hidden)
    with pytest.raises(Permanent, match="a/engine"):
        git_network.update(network, URL, 1)
    subprocess.run(["git", "init", "--quiet", "--bare", str(repository.bare)], check=True)
    with pytest.raises(Transient, match="no branches"):
        git_network.update(network, URL, 1)
    assert git_network.tips(network, 1) == known


def test_ten_thousand_refs_survive(repository: Repository, network: Path) -> None:
    """All are there after one fetch, and the second look is one listing."""
    names = [f"{BRANCH}{n}" for n in range(10_000, 20_000)] + [f"{BRANCH}main"]
    packed = "".join(f"{repository.head} {name}\n" for name in names)
    (repository.bare / "packed-refs").write_text(f"# pack-refs with: peeled sorted \n{packed}")
    assert len(git_network.update(network, URL, 1).commits) == 10_001
    assert not git_network.update(network, URL, 1).fetched


def test_more_refs_than_honest_are_refused_whole(
    repository: Repository, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No half list is ever taken."""
    monkeypatch.setattr(git_remote, "REFS_LIMIT", 2)
    repository.push("main:refs/heads/b", "main:refs/heads/c")
    with pytest.raises(Permanent, match="more than 2 branches"):
        git_network.update(network, URL, 1)
    assert not network.exists()


@pytest.mark.parametrize(
    ("limit", "value"),
    [("COMMITS_LIMIT", 2), ("COMMITS_BYTES_LIMIT", 400), ("LISTED_BYTES_LIMIT", 100)],
)
def test_more_history_than_honest_is_refused_whole(
    hub: Hub,
    repository: Repository,
    network: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
) -> None:
    """The flooding fork loses its namespace; the others keep theirs."""
    git_network.update(network, URL, 1)
    monkeypatch.setattr(git_rooms, limit, value)
    other = hub.add("b/engine")
    for n in range(3):
        other.commit({"x": str(n)})
    other.push()
    with pytest.raises(Permanent, match=r"3 commits|too many commits"):
        git_network.update(network, OTHER, 2)
    assert git_network.tips(network, 2) == {}
    assert git_network.tips(network, 1) != {}


def test_names_that_nobody_could_read_are_left_out(repository: Repository, network: Path) -> None:
    """Right-to-left overrides and endless names are counted, not stored; odd ones are text."""
    odd = ["$(touch${IFS}x)", "a;b", "--upload-pack=x", "\U0001f600"]
    bad = ["evil\u202egpj", f"{'x' * 150}/{'y' * 150}"]
    for name in [*odd, *bad]:
        repository.push(f"HEAD:refs/heads/x/{name}")
    found = git_network.update(network, URL, 1)
    assert found.refused == 2
    assert set(found.commits) == {f"{BRANCH}main", *(f"{BRANCH}x/{name}" for name in odd)}
    assert not git_network.update(network, URL, 1).fetched


def raw_branch(repository: Repository, name: bytes, sha: str) -> None:
    """A branch whose name is no text; git itself takes any byte."""
    (repository.bare / "refs" / "heads" / os.fsdecode(name)).write_text(f"{sha}\n")


def test_two_names_that_are_no_text_are_not_one_that_is(
    repository: Repository, network: Path
) -> None:
    """Each is refused by itself, and so is the sign that stands for unreadable bytes."""
    for name in (b"bad\xff\xfe1", b"bad\xff\xfd1", "bad\ufffd1".encode()):
        raw_branch(repository, name, repository.head)
    found = git_network.update(network, URL, 1)
    assert (set(found.commits), found.refused) == ({f"{BRANCH}main"}, 3)
    assert set(git_network.tips(network, 1)) == {f"{BRANCH}main"}


def test_a_flood_under_an_unreadable_name_is_refused_whole(
    repository: Repository, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it stays reachable, whatever its branches are called."""
    git_network.update(network, URL, 1)
    monkeypatch.setattr(git_rooms, "COMMITS_LIMIT", 2)
    for n in range(3):
        repository.commit({"x": str(n)})
    repository.push()
    raw_branch(repository, b"bad\xff\xfe", repository.head)
    with pytest.raises(Permanent, match="more history"):
        git_network.update(network, URL, 1)
    assert refs(network, "refs/remotes/") == []


def test_a_room_that_stays_is_not_called_empty(
    repository: Repository, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guard that failed says so."""
    git_network.update(network, URL, 1, candidate=True)
    monkeypatch.setattr(git_rooms, "change_refs", lambda *_: None)
    with pytest.raises(Permanent, match="cannot be deleted"):
        git_network.drop(network, 1)


def test_a_tag_of_a_tag_means_the_same_at_every_look_at_a_candidate(
    hub: Hub, repository: Repository, network: Path
) -> None:
    """Known by its list alone, fetched, and by its list again: one commit."""
    git_network.update(network, URL, 1)
    other = hub.add("b/engine")
    other.git("reset", "--quiet", "--hard", other.take(repository, "main"))
    other.git("tag", "-a", "-m", "x", "inner")
    other.git("tag", "-a", "-m", "x", "nested", "inner")
    other.push("main", "inner", "nested")
    known = {repository.head}
    looks = [git_network.update(network, OTHER, 2, known=known, candidate=True).commits]
    other.commit({"own": "1"})
    other.push()
    looks.append(git_network.update(network, OTHER, 2, known=known, candidate=True).commits)
    looks.append(git_network.update(network, OTHER, 2, known=known, candidate=True).commits)
    other.push(f"{repository.head}:refs/heads/main")
    looks.append(git_network.update(network, OTHER, 2, known=known, candidate=True).commits)
    assert [look[f"{TAG}nested"] for look in looks] == [repository.head] * 4


@pytest.mark.parametrize(
    "name",
    [
        "refs/heads/-x",
        "refs/heads/a..b",
        "refs/pull/1/merge",
        "refs/heads/a\x1b[2J",
        "refs/heads/a\ufffd",
        "HEAD",
    ],
)
def test_hostile_names_are_no_refs(name: str) -> None:
    """Options, ranges, escapes and other namespaces are refused before git sees them."""
    assert not git_network.is_readable(name)


def test_a_tag_on_something_else_is_no_tip(repository: Repository, network: Path) -> None:
    """Tags on files and trees are passed over, and do not make the next look fetch."""
    repository.git("tag", "file", "HEAD:src/main.c")
    repository.git("tag", "-a", "-m", "x", "deep", "HEAD:src/main.c")
    repository.git("tag", "tree", "HEAD^{tree}")
    repository.push("main", "file", "deep", "tree")
    assert set(git_network.update(network, URL, 1).commits) == {f"{BRANCH}main"}
    assert not git_network.update(network, URL, 1).fetched


def test_hostile_texts_are_bounded_and_printable(repository: Repository, network: Path) -> None:
    """Escapes, fake fields and endless subjects stay one short line of their own commit."""
    repository.commit({"b": "1"}, message="\x1b[2Jred\u202e\x1f" + "y" * 5000, author="A\x07B")
    repository.push()
    git_network.update(network, URL, 1)
    newest, oldest = commits(network, [1])
    assert newest.subject.startswith("[2Jredyyy")
    assert len(newest.subject) <= 240
    assert newest.author == "AB"
    assert newest.parents == (oldest.sha,)
    assert changed_paths(network, [newest.sha]) == {"b"}
    assert changed_paths(network, [oldest.sha]) == {"src/main.c", "common/arg.cpp"}


def test_the_default_branch_is_what_head_stands_for(repository: Repository) -> None:
    """Forks name it as they like."""
    assert git_network.default_branch(URL) == "main"


def test_a_fork_at_known_commits_is_not_fetched(
    hub: Hub, repository: Repository, network: Path
) -> None:
    """Its list says all: tags are told by the commit they stand for."""
    git_network.update(network, URL, 1)
    other = hub.add("b/engine")
    other.git("reset", "--quiet", "--hard", other.take(repository, "main"))
    other.git("tag", "-a", "-m", "theirs", "v1")
    other.push("HEAD:refs/heads/main", "v1")
    known = {repository.head}
    found = git_network.update(network, OTHER, 2, known=known, candidate=True)
    assert (found.fetched, found.commits) == (
        False,
        {f"{BRANCH}main": repository.head, f"{TAG}v1": repository.head},
    )
    assert refs(network, "refs/candidates/") == []
    other.commit({"b": "2"})
    other.push()
    assert git_network.update(network, OTHER, 2, known=known, candidate=True).fetched


def test_what_a_candidate_has_can_be_forgotten(
    hub: Hub, repository: Repository, network: Path
) -> None:
    """Its old tips go with it; what a watched repository left behind stays."""
    git_network.update(network, URL, 1)
    first = repository.head
    other = hub.add("b/engine")
    other.git("reset", "--quiet", "--hard", other.take(repository, "main"))
    theirs = other.commit({"b": "2"})
    other.push()
    git_network.update(network, OTHER, 2, candidate=True)
    other.git("reset", "--quiet", "--hard", first)
    other.commit({"b": "3"})
    other.push()
    git_network.update(network, OTHER, 2, candidate=True)
    assert {commit.sha for commit in commits(network, [2])} >= {theirs, first}
    repository.git("commit", "--quiet", "--amend", "-m", "rewritten")
    repository.push()
    git_network.update(network, URL, 1)
    git_network.drop(network, 2)
    assert refs(network, "refs/candidates/") == []
    assert refs(network, SEEN) == [f"{SEEN}1/{first}"]
    git_network.drop(network, 77)


def test_what_a_stopped_git_left_is_swept(repository: Repository, network: Path) -> None:
    """Half a pack does not count against whoever is fetched next."""
    git_network.update(network, URL, 1)
    half = network / "objects" / "pack" / "tmp_pack_x"
    half.write_bytes(b"x" * 1000)
    repository.commit({"b": "2"})
    repository.push()
    assert git_network.update(network, URL, 1).fetched
    assert not half.exists()


def test_many_packs_become_one(
    repository: Repository, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only once there are many; every commit is still there."""
    monkeypatch.setattr(git_network, "PACKS_LIMIT", 2)
    for number in range(3):
        repository.commit({"b": str(number)})
        repository.push()
        git_network.update(network, URL, 1)
    assert git_network.tidy(network)
    assert not git_network.tidy(network)
    assert len(list((network / "objects" / "pack").glob("*.pack"))) <= 2
    assert len(list(commits(network, [1]))) == 4
    assert changed_files(network, [repository.head]) == {repository.head: {"b"}}


def test_the_head_of_a_pull_request_is_fetched_alone(hub: Hub, network: Path) -> None:
    """No other ref comes with it; a forced head keeps the old one; a missing one is an error."""
    repository = hub.add("a/engine")
    repository.commit({"a": "1"})
    repository.push()
    first = repository.commit({"b": "1"})
    repository.push("HEAD:refs/pull/7/head")
    pull = "refs/pull/7/head"
    found = git_network.update_pulls(network, URL, 1, [pull])
    assert (found.commits, found.fetched) == ({pull: first}, True)
    assert refs(network, "refs/remotes/") == ["refs/remotes/1/pull/7/head"]
    assert not git_network.update_pulls(network, URL, 1, [pull]).fetched
    repository.git("reset", "--quiet", "--hard", "HEAD~")
    second = repository.commit({"b": "2"})
    repository.push("HEAD:refs/pull/7/head")
    found = git_network.update_pulls(network, URL, 1, [pull])
    assert (found.commits, found.fetched) == ({pull: second}, True)
    assert refs(network, SEEN) == [f"{SEEN}1/{first}"]
    with pytest.raises(ScoutError):
        git_network.update_pulls(network, URL, 1, ["refs/pull/8/head"])
    assert git_network.held_by(network)[1].commits == {pull: second}
