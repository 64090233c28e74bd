"""What the one repository for many forks holds, for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

from jobs.git import repo_url

URL, OTHER = repo_url("a/engine"), repo_url("b/engine")


def refs(network: Path, under: str = "refs/") -> list[str]:
    """Full names of its refs."""
    words = ["git", "-C", str(network), "for-each-ref", "--format=%(refname)", under]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
