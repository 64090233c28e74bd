"""Where groups can be made and what is said of limits, over trees shaped like the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.cgroups import Group, find
from workers.limited import enforced


def _v2(root: Path, own: str, *, handed_down: str) -> Path:
    folder = root / own
    folder.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory pids\n")
    for each in (folder, folder.parent):
        (each / "cgroup.subtree_control").write_text("")
    (folder.parent / "cgroup.subtree_control").write_text(handed_down)
    said = root.parent / "own"
    said.write_text(f"0::/{own}\n")
    return said


def test_a_delegated_parent_takes_our_groups(tmp_path: Path) -> None:
    """With cgroup v2 a worker in a leaf puts its groups beside itself where that is handed down."""
    own = _v2(tmp_path / "fs", "user.slice/app.slice/w.scope", handed_down="memory pids")
    (tmp_path / "fs/user.slice/app.slice/w.scope/cgroup.subtree_control").unlink()
    found = find(mounted_at=tmp_path / "fs", own=own)
    assert found is not None
    assert (found.version, found.pids) == (2, tmp_path / "fs/user.slice/app.slice")


def test_without_delegation_there_is_no_group(tmp_path: Path) -> None:
    """A hierarchy that hands no controllers down is no place, and none is invented."""
    own = _v2(tmp_path / "fs", "a/b", handed_down="cpu")
    for file in (tmp_path / "fs").rglob("cgroup.subtree_control"):
        file.unlink()
    assert find(mounted_at=tmp_path / "fs", own=own) is None


def test_v1_uses_both_hierarchies(tmp_path: Path) -> None:
    """With cgroup v1 memory and pids have folders of their own, below the worker's own group."""
    (tmp_path / "fs/pids").mkdir(parents=True)
    (tmp_path / "fs/memory/box").mkdir(parents=True)
    own = tmp_path / "own"
    own.write_text("3:pids:/\n2:memory:/box\n1:cpu,cpuacct:/\n0::/\n")
    found = find(mounted_at=tmp_path / "fs", own=own)
    assert found is not None
    assert (found.version, found.pids, found.memory) == (
        1,
        tmp_path / "fs/pids",
        tmp_path / "fs/memory/box",
    )


def test_a_path_outside_the_namespace_is_no_place(tmp_path: Path) -> None:
    """A group of the machine that a container cannot see is not written to."""
    (tmp_path / "fs/pids").mkdir(parents=True)
    own = tmp_path / "own"
    own.write_text("3:pids:/../../host\n2:memory:/../host\n")
    assert find(mounted_at=tmp_path / "fs", own=own) is None


def test_v2_bounds_swap_too(tmp_path: Path) -> None:
    """Memory that may be swapped out would be bounded in name only."""
    (tmp_path / "memory.swap.max").write_text("max")
    Group(tmp_path, tmp_path).limit(memory_bytes=1 << 20, processes=7)
    values = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert values == {"pids.max": "7", "memory.max": "1048576", "memory.swap.max": "0"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.events": "low 0\noom_kill 1\n", "pids.events": "max 0\n"}, "memory"),
        ({"memory.events": "low 0\noom_kill 0\n", "pids.events": "max 3\n"}, "processes"),
        ({"memory.events": "oom_kill 0\n", "pids.events": "max 0\n"}, None),
        ({"memory.events": "oom_kill many\n"}, None),
        ({}, None),
    ],
)
def test_the_kernel_says_which_bound_it_enforced(
    tmp_path: Path, files: dict[str, str], expected: str | None
) -> None:
    """A kill for memory comes before a refused fork; what cannot be read is no event."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert Group(tmp_path, tmp_path).struck() == expected


def test_root_without_groups_runs_no_foreign_code() -> None:
    """The kernel bounds no number of processes of root, so the cage is not proven."""
    assert enforced(None, uid=0, kernel=(6, 18)).faults
    assert enforced(None, uid=1000, kernel=(5, 4)).faults
    unprivileged = enforced(None, uid=1000, kernel=(6, 1))
    assert unprivileged.faults == ()
    assert "per process" in unprivileged.notes[0]
