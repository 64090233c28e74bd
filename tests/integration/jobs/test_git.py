"""Git against real repositories: mirrors, refs, and trees that hold no surprise."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest
from support.git_server import Fault, GitServer
from support.hub import Hub, Repository

from jobs import git, git_single
from jobs.errors import Permanent, ScoutError, Stopped, Transient, UsageError

pytestmark = pytest.mark.needs("git")
URL = git.repo_url("a/engine")


@pytest.fixture
def repository(hub: Hub) -> Repository:
    repository = hub.add("a/engine")
    repository.commit({"CMakeLists.txt": "one", "src/main.c": "int main;", "models/big": "x" * 99})
    repository.push()
    return repository


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "git" / "engine.git"


def test_the_remote_says_its_refs(repository: Repository) -> None:
    """`ls_remote` gives full ref names with full shas through the operator's mirror."""
    head = repository.git("rev-parse", "HEAD").strip()
    assert git.ls_remote(URL) == {"HEAD": head, "refs/heads/main": head}


def test_a_mirror_holds_no_file_content_until_a_tree_is_asked_for(
    repository: Repository, mirror: Path, tmp_path: Path
) -> None:
    """Blobs come with the checkout, and only those the patterns choose."""
    repository.git("tag", "-a", "-m", "t", "v1")
    repository.push("main", "v1")
    lines: list[str] = []
    git.update_mirror(mirror, URL, lines.append)
    found = git.resolve(mirror, "v1")
    tree = git.check_out(mirror, found.sha, tmp_path / "tree", ["/*", "!/models/"])
    assert found.label == "v1"
    assert found.committed_at.tzinfo is not None
    assert sorted(path.name for path in tree.path.iterdir()) == ["CMakeLists.txt", "src"]
    assert (tree.path / "src/main.c").read_text() == "int main;"
    assert tree.submodules == ()
    (repository.bare / "refs").rename(repository.bare / "gone")
    with pytest.raises((Transient, Permanent)):
        git.check_out(mirror, found.sha, tmp_path / "whole", [])
    assert not (tmp_path / "whole").exists()


def test_every_way_to_name_a_commit_means_the_same(repository: Repository, mirror: Path) -> None:
    """Branch, tag, full and short sha resolve to one commit; the count is its depth."""
    second = repository.commit({"b": "2"})
    repository.git("tag", "v2")
    repository.push("main", "v2")
    git.update_mirror(mirror, URL)
    for ref in ("main", "heads/main", "refs/heads/main", "origin/main", "v2", second, second[:8]):
        assert git.resolve(mirror, ref).sha == second
    assert git.resolve(mirror, second).label == "v2"
    assert git.resolve(mirror, "main").label == "main"
    assert git.commit_count(mirror, second) == 2


def test_an_unknown_ref_names_close_matches(repository: Repository, mirror: Path) -> None:
    """A misspelt branch is a usage error that says what exists; an unknown sha is one too."""
    git.update_mirror(mirror, URL)
    with pytest.raises(UsageError) as caught:
        git.resolve(mirror, "mian")
    assert "main" in caught.value.advice
    with pytest.raises(UsageError, match="no branch, tag or commit"):
        git.resolve(mirror, "f" * 40)


def test_a_name_with_two_meanings_is_not_guessed(repository: Repository, mirror: Path) -> None:
    """A tag and a branch of one name on two commits must be told apart by the caller."""
    repository.git("tag", "both")
    repository.git("checkout", "--quiet", "-b", "both")
    second = repository.commit({"b": "2"})
    repository.push("refs/heads/both", "refs/tags/both")
    git.update_mirror(mirror, URL)
    with pytest.raises(UsageError, match="means 2 commits"):
        git.resolve(mirror, "both")
    assert git.resolve(mirror, "heads/both").sha == second


def test_a_commit_outside_the_refs_is_not_served(repository: Repository, mirror: Path) -> None:
    """A sha the remote holds but no branch or tag reaches is refused, not fetched."""
    git.update_mirror(mirror, URL)
    repository.git("checkout", "--quiet", "-b", "pull")
    foreign = repository.commit({"evil": "1"})
    repository.push("HEAD:refs/pull/1/head")
    git.update_mirror(mirror, URL)
    with pytest.raises(UsageError, match="no branch, tag or commit"):
        git.resolve(mirror, foreign)


def test_a_force_push_keeps_what_was_there(repository: Repository, mirror: Path) -> None:
    """The old head stays resolvable after the branch was rewritten and after it was deleted."""
    repository.git("checkout", "--quiet", "-b", "work")
    old = repository.commit({"b": "old"})
    repository.push("work")
    git.update_mirror(mirror, URL)
    repository.git("reset", "--quiet", "--hard", "main")
    new = repository.commit({"b": "new"})
    repository.push("work")
    git.update_mirror(mirror, URL)
    repository.push(":work")
    git.update_mirror(mirror, URL)
    assert git.resolve(mirror, old).sha == old
    assert git.resolve(mirror, new).sha == new
    with pytest.raises(UsageError):
        git.resolve(mirror, "work")


def test_a_missing_repository_leaves_nothing(hub: Hub, mirror: Path) -> None:
    """The error names the repository, and no half mirror stays behind."""
    with pytest.raises(Permanent, match="a/engine"):
        git.update_mirror(mirror, URL)
    assert not mirror.exists()
    assert not list(mirror.parent.glob(".new-*"))


def test_a_dead_network_is_a_passing_fault(
    tmp_path: Path, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that nobody answers is to be tried again."""
    config = tmp_path / "gitconfig"
    config.write_text('[url "https://127.0.0.1:1/"]\n\tinsteadOf = https://github.com/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    with pytest.raises(Transient, match="a/engine"):
        git.update_mirror(mirror, URL)


def test_what_a_tick_raises_ends_git(
    repository: Repository, mirror: Path, git_server: GitServer
) -> None:
    """A cancel in the middle of a fetch ends it and leaves no half mirror."""
    git_server.faults["a/engine"] = Fault(hang=True)

    def cancel() -> None:
        raise Stopped("asked")

    with pytest.raises(Stopped):
        git.update_mirror(mirror, URL, tick=cancel)
    assert not mirror.exists()


def test_a_killed_git_does_not_block_the_next(repository: Repository, mirror: Path) -> None:
    """Lock files of a git that was killed are removed before the next fetch."""
    git.update_mirror(mirror, URL)
    head = repository.commit({"b": "2"})
    repository.push()
    for name in ("config.lock", "packed-refs.lock", "refs/remotes/origin/main.lock"):
        (mirror / name).touch()
    git.update_mirror(mirror, URL)
    assert git.resolve(mirror, "main").sha == head


def test_two_updates_take_turns(repository: Repository, mirror: Path) -> None:
    """A second update waits for the one that holds the mirror."""
    git.update_mirror(mirror, URL)
    lock = os.open(mirror.with_name(f".{mirror.name}.lock"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    second = threading.Thread(target=git.update_mirror, args=(mirror, URL))
    second.start()
    second.join(0.3)
    assert second.is_alive()
    os.close(lock)
    second.join(30)
    assert not second.is_alive()


def _checked_out(repository: Repository, mirror: Path, tmp_path: Path) -> git.CheckedOut:
    repository.push()
    git.update_mirror(mirror, URL)
    sha = git.resolve(mirror, "main").sha
    return git.check_out(mirror, sha, tmp_path / "tree", ["/*"])


def test_no_program_of_repository_or_operator_runs(
    repository: Repository, mirror: Path, tmp_path: Path, hub: Hub
) -> None:
    """Hooks, filters and file watchers stay still; bytes arrive as they were committed."""
    trap = hub.folder / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {hub.folder}/sprung\ncat\n")
    trap.chmod(0o755)
    hooks = hub.folder / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").symlink_to(trap)
    with hub.config.open("a") as config:
        config.write(
            f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {trap}\n\tautocrlf = true\n"
            f'[filter "evil"]\n\tsmudge = {trap}\n\tprocess = {trap}\n\trequired = true\n'
        )
    repository.commit({".gitattributes": "* filter=evil text eol=crlf ident\n", "f": "$Id$\n"})
    tree = _checked_out(repository, mirror, tmp_path)
    assert (tree.path / "f").read_bytes() == b"$Id$\n"
    assert not (hub.folder / "sprung").exists()
    assert not (tree.path / ".git").exists()


def test_an_empty_submodule_file_is_fine(
    repository: Repository, mirror: Path, tmp_path: Path
) -> None:
    """Some real forks carry a zero-byte .gitmodules (case C110)."""
    repository.commit({".gitmodules": ""})
    assert _checked_out(repository, mirror, tmp_path).submodules == ()


def test_a_submodule_is_reported_and_left_empty(
    repository: Repository, mirror: Path, tmp_path: Path
) -> None:
    """A submodule over https is named to the caller and never fetched."""
    module = '[submodule "k"]\n\tpath = vendor/k\n\turl = https://github.com/b/k\n'
    repository.commit({".gitmodules": module})
    assert _checked_out(repository, mirror, tmp_path).submodules == ("vendor/k",)


@pytest.mark.parametrize("url", ["ext::sh -c x", "file:///etc", "/etc", "-u./x", "ssh://x/y"])
def test_a_hostile_submodule_is_refused(
    repository: Repository, mirror: Path, tmp_path: Path, url: str
) -> None:
    """A submodule address that is not https stops the checkout (case C110)."""
    repository.commit({".gitmodules": f'[submodule "k"]\n\tpath = k\n\turl = "{url}"\n'})
    with pytest.raises(Permanent, match="submodule"):
        _checked_out(repository, mirror, tmp_path)
    assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "sub/../../outside", "up/.."])
def test_a_link_out_of_the_tree_is_refused(
    repository: Repository, mirror: Path, tmp_path: Path, target: str
) -> None:
    """Absolute links and links that climb out, over other links too, stop the checkout."""
    repository.commit({"sub/deep/f": "1"}, links={"up": "sub/deep/../..", "link": target})
    with pytest.raises(Permanent, match="leads out of its tree"):
        _checked_out(repository, mirror, tmp_path)
    assert not (tmp_path / "tree").exists()


def test_a_link_inside_the_tree_stays(repository: Repository, mirror: Path, tmp_path: Path) -> None:
    """A relative link to a file of the same tree is kept."""
    repository.commit({"sub/f": "1"}, links={"link": "sub/f"})
    assert (_checked_out(repository, mirror, tmp_path).path / "link").read_text() == "1"


def test_a_crashed_checkout_does_not_block_the_next(
    repository: Repository, mirror: Path, tmp_path: Path
) -> None:
    """Git's memory of a work tree that vanished is forgotten."""
    git.update_mirror(mirror, URL)
    sha = git.resolve(mirror, "main").sha
    half = tmp_path / "tree"
    repository._run("worktree", "add", "--no-checkout", "--detach", str(half), sha, cwd=mirror)
    (half / ".git").unlink()
    half.rmdir()
    assert git.check_out(mirror, sha, half, []).path == half
    assert not (mirror / "worktrees").exists()


def test_a_commit_that_no_branch_reaches_is_fetched_by_itself(hub: Hub, mirror: Path) -> None:
    """It stays through later looks; a sha that the remote lacks is an error and changes nothing."""
    repository = hub.add("a/engine")
    repository.commit({"a": "1"})
    repository.push()
    git.update_mirror(mirror, URL)
    hidden = repository.commit({"b": "1"})
    repository.push("HEAD:refs/pull/1/head")
    git.update_mirror(mirror, URL)
    assert not git.holds(mirror, hidden)
    git_single.fetch_commit(mirror, URL, hidden)
    git.update_mirror(mirror, URL)
    assert git.holds(mirror, hidden)
    for wrong in ("f" * 40, "main", "--all"):
        with pytest.raises(ScoutError):
            git_single.fetch_commit(mirror, URL, wrong)
