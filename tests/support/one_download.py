"""A process of its own that downloads one file and may be killed at any moment."""

from __future__ import annotations

import sys
from pathlib import Path

from support.weights_hub import COMMIT, REPO

from jobs.control import Control
from jobs.hub import Hub
from workers.weight_downloads import Wanted, download, look_up, shards_of
from workers.weight_store import Store


def main(url: str, root: str, file: str, sha256: str) -> None:
    """Bring the file into the store at `root`."""
    store = Store(Path(root), kept=set, let_go=lambda _sha: True)
    hub = Hub(url)
    wanted = Wanted(REPO, COMMIT, (file,), (sha256,))
    found = look_up(hub, wanted)
    with store.alone_with([sha256]):
        download(
            shards_of(wanted, found),
            hub=hub,
            found=found,
            target_of=store.file,
            control=Control(),
            room=store.room_kept,
            block_bytes=64 * 1024,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
