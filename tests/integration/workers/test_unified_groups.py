"""Groups in the kernel's own cgroup v2, mounted for this test alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import unified_groups

SCRIPT = 'mount -t cgroup2 none "$1" || exit 77; shift; exec "$@"'


def test_the_kernels_own_groups_hold_and_end_a_whole_tree(tmp_path: Path) -> None:
    """Members are all that a step started; where nothing can be bounded no place is found."""
    mounted = tmp_path / "cgroup"
    mounted.mkdir()
    words = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", str(mounted)]
    words += [sys.executable, "-m", "support.unified_groups", str(mounted)]
    roots = {"PYTHONPATH": f"{Path(unified_groups.__file__).parents[1]}:{Path.cwd()}"}
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=120, env={"PATH": "/usr/bin:/bin", **roots}
    )
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip(f"this user may not mount cgroup v2: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["is_member"]
    assert told["members"] == 2
    assert (told["spared"], told["swept"], told["ended"], told["left"]) == (0, 1, -9, False)
    assert told["found"] == told["bounded"] == told["can_bound"]
    assert told["struck"] is None
