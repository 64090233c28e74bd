"""A small Debian made by debootstrap on this machine, kept in the temporary folder between runs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path


def base_layer() -> Path:
    """An archive of its files; made once, which takes half a minute."""
    archive = Path(tempfile.gettempdir(), f"forkscout-test-base-{os.getuid()}.tar")
    if not archive.exists():
        with tempfile.TemporaryDirectory() as folder:
            words = ["debootstrap", "--variant=minbase", _suite(), folder]
            subprocess.run(words, check=True, capture_output=True, timeout=300)
            fresh = archive.with_suffix(f".{os.getpid()}")
            pack = ["tar", "--create", "--file", str(fresh), "--directory", folder]
            pack += ["--exclude=./var/cache", "--exclude=./usr/share/doc", "."]
            subprocess.run(pack, check=True, timeout=300)
            fresh.rename(archive)
    return archive


def _suite() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    return "stable"
