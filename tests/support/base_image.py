"""A base image made by debootstrap on this machine, kept in the temporary folder between runs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from workers.engine_client import EngineTool

IMAGE = "forkscout-test-base:1"


def base_image(tool: EngineTool) -> str:
    """The name of a small Debian in this engine; made once, which takes half a minute."""
    if tool.says("image", "inspect", IMAGE):
        return IMAGE
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
    tool.ask("import", str(archive), IMAGE)
    return IMAGE


def _suite() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    return "stable"
