"""What a weights store is called, whichever machine looks into its folder; it names no machine."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from pathlib import Path

from jobs.errors import Permanent

NAME_FILE = ".store"
_NAME = re.compile(r"[0-9a-f]{32}", re.ASCII)


def store_name(root: Path) -> str:
    """The name in the folder; the first to ask writes it, and all others read the same."""
    root.mkdir(parents=True, exist_ok=True)
    place = root / NAME_FILE
    if not place.exists():
        _write_once(place)
    name = place.read_text("ascii", errors="replace").strip()
    if not _NAME.fullmatch(name):
        raise Permanent(
            "the name of the weights store is damaged",
            advice=f"remove {NAME_FILE} from its folder; the next worker writes a new one",
        )
    return name


def _write_once(place: Path) -> None:
    with tempfile.NamedTemporaryFile("w", dir=place.parent, prefix=f"{NAME_FILE}-") as fresh:
        fresh.write(f"{secrets.token_hex(16)}\n")
        fresh.flush()
        os.fsync(fresh.fileno())
        try:
            os.link(fresh.name, place)
        except FileExistsError:
            return
