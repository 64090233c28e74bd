"""What `forkscout fit` and `forkscout pair` say of the models of one autumn, as commands say it.

Run from the top folder: `.venv/bin/python tests/benchmarks/show_models.py`. It writes headers of
the public shapes and sizes (the data are holes) into a folder of its own, serves the one that is
asked over HTTP on loopback, and prints each command with its answer, exit code and what was read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import gguf_files as files  # noqa: E402
from support.one_autumn import BAKED, OUTCOMES, models  # noqa: E402
from support.range_server import RangeServer  # noqa: E402


def write_models(folder: Path) -> None:
    """All four, with holes for data."""
    for name, file in models().items():
        (folder / name).write_bytes(file.header)
        os.truncate(folder / name, file.size_bytes)


def shown(folder: Path, *words: str) -> None:
    """One command as a person types it, and all it says."""
    program = Path(sys.executable).with_name("forkscout")
    environment = {
        **os.environ, "FORKSCOUT_HOME": str(folder / "var"), "NO_PROXY": "127.0.0.1",
        "COLUMNS": "100",
    }  # fmt: skip
    done = subprocess.run(
        [program, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    say(f"$ forkscout {' '.join(words)}\n{done.stdout}{done.stderr}exit {done.returncode}\n")


def say(words: str) -> None:
    """One line or more, at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main() -> None:
    """Four outcomes, then the pair that was refused."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_models(folder)
        for name, words in OUTCOMES.items():
            say(f"== {name}")
            shown(folder, "fit", *words)
        say("== a target with MTP heads baked in, over HTTP")
        with RangeServer(files.qwen36(heads=1)) as server:
            shown(
                folder, "pair", "--target", f"{server.url}/{BAKED}", "--engine", "beellama@v0.1.2"
            )
        ranges = [headers["Range"] for _, headers in server.asked]
        say(f"asked of the server: {ranges}")


if __name__ == "__main__":
    main()
