"""Run behind `unshare --mount`: makes groups in a real cgroup v2 and says what the kernel did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from workers.cgroups import NEEDED, Groups, find


def told(mounted: Path) -> dict[str, object]:
    """What was seen, with and without the controllers that bounds need."""
    own = mounted.parent / "own"
    own.write_text("0::/\n")
    offered = (mounted / "cgroup.controllers").read_text().split()
    found = find(mounted_at=mounted, own=own)
    groups = found or Groups(2, mounted, mounted)
    group = groups.make()
    try:
        words = ["/bin/sh", "-c", "setsid sleep 600 & echo ready; exec sleep 600"]
        child = subprocess.Popen(group.entered_by(words), stdout=subprocess.PIPE, env={})
        assert child.stdout is not None
        child.stdout.readline()
        members = group.members()
        try:
            group.limit(memory_bytes=64 << 20, processes=20)
            bounded = True
        except OSError:
            bounded = False
        spared = groups.sweep(lambda _: True)
        swept = groups.sweep(lambda pid: pid != os.getpid())
        return {
            "can_bound": set(NEEDED) <= set(offered),
            "found": found is not None,
            "bounded": bounded,
            "is_member": child.pid in members,
            "members": len(members),
            "spared": spared,
            "swept": swept,
            "ended": child.wait(timeout=30),
            "left": group.pids.exists(),
            "struck": group.struck(),
        }
    finally:
        for pid in group.members():
            os.kill(pid, 9)
        group.remove()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(told(Path(sys.argv[1]))))
