"""A download whose process is killed at random moments ends whole and right."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from support.weights_hub import WeightsHub, sha256_of

KILLS = 20
WEIGHTS = random.Random(20).randbytes(12_000_000)
FILE = "tiny.gguf"
SHA = sha256_of(WEIGHTS)
TESTS = Path(__file__).parents[2]


def start(hub: WeightsHub, root: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "support.one_download", hub.url, str(root), FILE, SHA]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    environment = {**os.environ, "PYTHONPATH": paths, "NO_PROXY": "127.0.0.1,localhost"}
    return subprocess.Popen(words, env=environment, cwd=root.parent)


def test_twenty_kills_cost_no_byte_of_what_was_journaled(tmp_path: Path) -> None:
    """Each life goes on behind the last journaled block; under the final name there is no part."""
    chance = random.Random(1)
    root = tmp_path / "weights"
    with WeightsHub({FILE: WEIGHTS}) as hub:
        hub.pause_seconds = 0.002
        kills = 0
        while kills < KILLS:
            before, limit = hub.sent_bytes, chance.randrange(0, len(WEIGHTS) // KILLS)
            process = start(hub, root)
            deadline = time.monotonic() + 20
            while hub.sent_bytes - before <= limit and time.monotonic() < deadline:
                if process.poll() is not None:
                    break
                time.sleep(0.001)
            process.kill()
            process.wait()
            kills += 1
            assert process.returncode != 0, "it was done before it could be killed"
            assert not (root / f"{SHA}.gguf").exists()
        hub.pause_seconds = 0.0
        assert start(hub, root).wait(60) == 0
        offsets = [
            int(headers["Range"].removeprefix("bytes=").split("-")[0])
            for kind, _, headers in hub.asked
            if kind == "cdn"
        ]
    assert (root / f"{SHA}.gguf").read_bytes() == WEIGHTS
    assert [path.name for path in root.iterdir() if path.suffix != ".lock"] == [f"{SHA}.gguf"]
    assert offsets == sorted(offsets)
    assert offsets[-1] > 0
    assert hub.sent_bytes < 2.5 * len(WEIGHTS)
