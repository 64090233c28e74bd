"""Where the command begins: Ctrl-C ends it quietly, also before everything is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STOP = """\
import os, signal, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
from jobs.cli.entry import main
main()
"""


@pytest.mark.parametrize("loaded", ["typer", "sqlalchemy", "jobs.cli.work"])
def test_it_leaves_quietly_while_it_is_loaded(loaded: str) -> None:
    """130 and not a word, whichever module is being read."""
    hearing = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{STOP}"
    done = subprocess.run(
        [sys.executable, "-c", hearing, loaded],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_loaded_it_is_the_command() -> None:
    """The module that people start says its version."""
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", "--version"],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.startswith("forkscout ")


def test_what_is_to_be_ignored_stays_ignored() -> None:
    """As a shell starts what it puts into the background."""
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{STOP}"
    done = subprocess.run(
        [sys.executable, "-c", ignoring, "typer", "--version"],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode != 130


@pytest.mark.parametrize(
    "words", [["queue", "pause", "build", "--why"], ["plan", "--dry-run"], ["events", "--kind"]]
)
def test_bytes_that_are_no_text_are_a_wrong_wish(words: list[str], tmp_path: Path) -> None:
    """Exit 2 and one sentence, for every command and before a database is opened."""
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", *words, b"half\xff"],
        cwd=ROOT,
        env={"FORKSCOUT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "no UTF-8" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
