"""The artifact store on a real disk: addressed by content, whole or absent."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path

import pytest

from jobs.errors import JobFailure, UsageError
from jobs.model import Blame
from workers import artifacts


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def _tree(folder: Path, name: str = "out") -> Path:
    tree = folder / name
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "server").write_text("#!")
    (tree / "bin" / "server").chmod(0o755)
    (tree / "lib.so.1").write_text("lib")
    (tree / "lib.so").symlink_to("lib.so.1")
    return tree


def test_the_digest_is_the_content_and_nothing_else(tmp_path: Path) -> None:
    """Times and permissions of others do not matter; name, bit, link and content do."""
    tree = _tree(tmp_path)
    digest = artifacts.tree_digest(tree)
    os.utime(tree / "lib.so.1", (1, 1))
    (tree / "lib.so.1").chmod(0o640)
    assert artifacts.tree_digest(tree) == digest == artifacts.tree_digest(_tree(tmp_path, "two"))
    seen = {digest}
    for change in (
        lambda: (tree / "lib.so.1").write_text("bil"),
        lambda: (tree / "lib.so.1").chmod(0o755),
        lambda: (tree / "lib.so.1").rename(tree / "lib.so.2"),
        lambda: (tree / "empty").mkdir(),
        lambda: (tree / "lib.so").unlink(),
    ):
        change()
        seen.add(artifacts.tree_digest(tree))
    assert len(seen) == 6


def test_a_stored_tree_is_found_read_only_and_verified(tmp_path: Path, root: Path) -> None:
    """What went in comes out under its digest, and nobody writes to it by accident."""
    tree = _tree(tmp_path)
    expected = artifacts.tree_digest(tree)
    digest = artifacts.store(tree, root)
    found = artifacts.find(root, digest)
    assert digest == expected
    assert found is not None
    assert not tree.exists()
    assert (found / "lib.so").read_text() == "lib"
    assert (found / "bin/server").stat().st_mode & 0o777 == 0o555
    assert found.stat().st_mode & 0o222 == 0
    artifacts.verify(root, digest)
    artifacts.write_provenance(root, digest, {"source": "a" * 40})
    artifacts.write_provenance(root, digest, {"source": "b" * 40})
    assert json.loads((root / digest / "provenance.json").read_text()) == {"source": "a" * 40}


def test_the_same_artifact_is_kept_once(tmp_path: Path, root: Path) -> None:
    """Storing it again changes nothing and leaves nothing lying about."""
    first = artifacts.store(_tree(tmp_path), root)
    second = artifacts.store(_tree(tmp_path, "again"), root)
    assert first == second
    assert [p.name for p in root.iterdir()] == [first]


def test_a_damaged_artifact_is_noticed(tmp_path: Path, root: Path) -> None:
    """A changed file and a missing artifact are infrastructure faults with advice."""
    digest = artifacts.store(_tree(tmp_path), root)
    file = root / digest / "tree" / "lib.so.1"
    file.chmod(0o644)
    file.write_text("bil")
    with pytest.raises(JobFailure) as caught:
        artifacts.verify(root, digest)
    assert caught.value.failure_class == "artifact_damaged"
    artifacts.discard(root, digest)
    assert artifacts.find(root, digest) is None
    assert list(root.iterdir()) == []
    with pytest.raises(JobFailure) as caught:
        artifacts.verify(root, digest)
    assert caught.value.failure_class == "artifact_missing"


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "bin/../../x"])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, root: Path, target: str) -> None:
    """Absolute and climbing links never enter the store (case C142)."""
    tree = _tree(tmp_path)
    (tree / "link").symlink_to(target)
    with pytest.raises(JobFailure, match="leads out") as caught:
        artifacts.store(tree, root)
    assert caught.value.blame is Blame.ENGINE
    assert list(root.iterdir()) == []


def test_a_pipe_a_socket_and_a_setuid_file_are_refused(tmp_path: Path, root: Path) -> None:
    """Only files, folders and links are kept, and no file that runs as its owner."""
    for number, name in enumerate(("pipe", "socket", "setuid")):
        tree = _tree(tmp_path, f"out{number}")
        if name == "pipe":
            os.mkfifo(tree / name)
        elif name == "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(tree / name))
        else:
            (tree / name).touch()
            (tree / name).chmod(0o4755)
        with pytest.raises(JobFailure, match=name):
            artifacts.store(tree, root)
    assert list(root.iterdir()) == []


def test_folders_nobody_may_enter_are_entered_all_the_same(tmp_path: Path, root: Path) -> None:
    """A build that takes its own permissions away is stored like any other."""
    tree = _tree(tmp_path)
    (tree / "bin").chmod(0)
    assert artifacts.store(tree, root) == artifacts.store(_tree(tmp_path, "two"), root)


def test_leftovers_of_a_crash_are_swept_and_work_in_hand_is_not(tmp_path: Path, root: Path) -> None:
    """A half-written artifact of a dead process goes at the next store."""
    half = root / f"{artifacts.INCOMING}dead" / "tree"
    half.mkdir(parents=True)
    (half / "x").write_text("half")
    half.chmod(0o555)
    with artifacts._incoming(root) as living:
        digest = artifacts.store(_tree(tmp_path), root)
        assert sorted(p.name for p in root.iterdir()) == sorted([digest, living.name])


def test_a_digest_is_not_a_path(root: Path) -> None:
    """Only a full sha256 is looked up."""
    with pytest.raises(UsageError):
        artifacts.find(root, "../../etc")


def test_a_full_disk_is_an_infrastructure_fault(tmp_path: Path) -> None:
    """Too little room, asked before or met on the way, never counts against an engine."""
    artifacts.check_free(tmp_path, 1)
    with pytest.raises(JobFailure) as caught:
        artifacts.check_free(tmp_path, 1 << 62)
    assert (caught.value.failure_class, caught.value.blame) == ("disk_full", Blame.INFRASTRUCTURE)
    with pytest.raises(JobFailure, match="No space"), artifacts.disk_full_is_infrastructure():
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(PermissionError), artifacts.disk_full_is_infrastructure():
        raise PermissionError(errno.EACCES, "Permission denied")
