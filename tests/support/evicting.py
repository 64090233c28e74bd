"""A process that removes everything from a store, again and again, until it is killed."""

from __future__ import annotations

import sys
from pathlib import Path

from workers.weight_store import Store


def main(root: str) -> None:
    """Say `up`, then remove whatever is there."""
    store = Store(Path(root), kept=set, let_go=lambda _sha: True)
    sys.stdout.write("up\n")
    sys.stdout.flush()
    while True:
        for entry in store.entries():
            store.remove(entry)


if __name__ == "__main__":
    main(*sys.argv[1:])
