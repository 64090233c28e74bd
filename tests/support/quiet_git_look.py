"""Our side of a benchmark over git: one quiet look at every branch and tag, in its own process.

It is run as a program with a folder: the database `refs.sqlite` and the network lie there.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from jobs import db
from scout.history import GitHistory
from scout.ref_watch import watch_refs

START = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)


def look(folder: Path) -> dict[str, int]:
    """How many repositories answered, and how much of it was new."""
    database = db.connect(f"sqlite:///{folder / 'refs.sqlite'}")
    network = folder / "network.git"
    found = watch_refs(database, history=GitHistory(network), network=network, now=lambda: START)
    return {"looked": len(found.looked), "new": len(found.new)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(look(Path(sys.argv[1]))) + "\n")
