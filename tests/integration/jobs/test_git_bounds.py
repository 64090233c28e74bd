"""What git may take of the machine: memory, output and time, each with a limit of ours."""

from __future__ import annotations

import os
import signal
import subprocess
import zlib
from pathlib import Path

import pytest
from support.bombs import bomb
from support.hub import Hub, Repository
from support.waiting import wait_for

from jobs import git_history, git_memory, git_network, git_process, git_remote
from jobs.git import repo_url, update_mirror
from jobs.git_history import changed_files, changed_paths
from jobs.git_memory import MEMORY_BYTES, TooMuch
from jobs.git_process import TooSlow, ask
from jobs.git_refs import resolve

pytestmark = pytest.mark.needs("git")
URL = repo_url("a/engine")
SMALL_BYTES = 96 * 2**20


@pytest.fixture
def repository(hub: Hub) -> Repository:
    repository = hub.add("a/engine")
    repository.commit({"a": "1"})
    repository.push()
    return repository


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little memory that a test does not hurt the machine it runs on."""
    monkeypatch.setattr(git_memory, "MEMORY_BYTES", SMALL_BYTES)
    monkeypatch.setattr(git_memory, "WALL_BYTES", MEMORY_BYTES)
    monkeypatch.setattr(git_process, "TICK_SECONDS", 0.02)


@pytest.mark.usefixtures("small")
def test_a_dozen_objects_for_a_billion_files_are_left(
    repository: Repository, tmp_path: Path
) -> None:
    """Git is stopped; that its paths are too many is an answer, and the fetch itself is fine."""
    sha = bomb(repository, width=1, depth=9)
    repository.push(f"{sha}:refs/heads/main")
    network = tmp_path / "network.git"
    assert git_network.update(network, URL, 1).commits == {"refs/heads/main": sha}
    words = ["diff-tree", "-r", "--root", "--name-only", sha]
    with pytest.raises(TooMuch, match="96 MiB"):
        ask(words, mirror=network)
    assert changed_paths(network, [sha]) is None
    assert changed_files(network, [sha]) is None


@pytest.mark.parametrize("limit", ["PATHS_BYTES_LIMIT", "seconds"])
def test_paths_beyond_the_limits_are_too_many(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """However fast they come and go, and however long they would take."""
    sha = bomb(repository, width=40, depth=3)
    repository.push(f"{sha}:refs/heads/main")
    network = tmp_path / "network.git"
    git_network.update(network, URL, 1)
    assert len(changed_paths(network, [sha]) or ()) == 40_001
    if limit == "seconds":
        monkeypatch.setattr(git_history, "ask", slow)
    else:
        monkeypatch.setattr(git_history, limit, 100_000)
    assert changed_paths(network, [sha]) is None


def slow(*_: object, **__: object) -> str:
    raise TooSlow("git took longer than 60 s")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("size_bytes", "sent_bytes", "message"),
    [
        (240 * 2**20, 240 * 2**20, "96 MiB of memory"),
        pytest.param(
            *(3 * 2**30, 2**22, "asked for more memory"), marks=pytest.mark.needs("prlimit")
        ),
    ],
)
def test_a_commit_larger_than_memory_is_not_taken(
    repository: Repository, tmp_path: Path, size_bytes: int, sent_bytes: int, message: str
) -> None:
    """A small pack that would unpack to gigabytes: what fills up is weighed, what asks for all at
    once runs into the system's wall."""
    network = tmp_path / "network.git"
    git_network.update(network, URL, 1)
    pack = giant_commit(size_bytes, sent_bytes)
    with pytest.raises(TooMuch, match=message):
        ask(["index-pack", "--stdin"], mirror=network, text=pack.decode(errors="surrogateescape"))


def giant_commit(size_bytes: int, sent_bytes: int) -> bytes:
    """The pack of one commit with an endless message, and as much of it as is sent."""
    head, left = [], size_bytes
    byte, left = (1 << 4) | (left & 15), left >> 4
    while left:
        head.append(byte | 0x80)
        byte, left = left & 127, left >> 7
    packer = zlib.compressobj(1)
    block = b"\0" * 2**22
    body = b"".join(packer.compress(block) for _ in range(sent_bytes // 2**22))
    return b"PACK\0\0\0\2\0\0\0\1" + bytes([*head, byte]) + body + packer.flush() + b"\0" * 20


def test_an_honest_git_is_weighed_too(repository: Repository, tmp_path: Path) -> None:
    """The weight is that of git and its children; one that is over weighs nothing."""
    gone = subprocess.Popen(["git", "version"], stdout=subprocess.DEVNULL)
    gone.wait()
    assert git_memory.held_bytes(gone.pid) == 0
    with subprocess.Popen(["git", "hash-object", "--stdin"], stdin=subprocess.PIPE) as git:
        assert 0 < git_memory.held_bytes(git.pid) < MEMORY_BYTES
        git.kill()


@pytest.mark.parametrize("lists_children", [True, False])
def test_what_a_child_of_a_child_holds_is_weighed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lists_children: bool
) -> None:
    """Also where the system does not list the children of a process."""
    if not lists_children:
        monkeypatch.setattr(git_memory, "PROCESSES", tmp_path)
    # tail keeps a line until it ends
    words = ["sh", "-c", "sh -c '{ head -c 40000000 /dev/zero; sleep 60; } | tail; true'; true"]
    with subprocess.Popen(words, start_new_session=True) as process:
        try:
            wait_for(
                lambda: git_memory.held_bytes(process.pid) > 40_000_000, what="a full grandchild"
            )
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_list_has_less_time_than_a_fetch(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that drips holds a look for the time of a list, not of a build's checkout."""
    monkeypatch.setattr(git_process, "TICK_SECONDS", 0.001)
    for module, name in ((git_remote, "LIST_SECONDS"), (git_network, "FETCH_SECONDS")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, 0.0001)
            with pytest.raises(TooSlow):
                git_network.update(tmp_path / f"{name}.git", URL, 1)


def test_a_branch_with_another_line_end_in_its_name_breaks_no_mirror(
    repository: Repository, tmp_path: Path
) -> None:
    """Only git's own line end ends a line."""
    repository.push("HEAD:refs/heads/a\u2028b", "HEAD:refs/heads/c\x85d")
    mirror = tmp_path / "mirror"
    for _ in range(2):
        update_mirror(mirror, URL)
    assert resolve(mirror, "main").sha == repository.head
