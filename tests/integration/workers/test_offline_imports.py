"""The offline bench as a small folder: three packages and our own modules, nothing more."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CARRIED = ("httpx", "psutil", "nvidia-ml-py")
OF_HTTPX = ("httpcore", "h11", "anyio", "idna", "certifi", "sniffio", "typing_extensions")


@pytest.fixture(scope="module")
def carried(tmp_path_factory):
    """A folder with those packages, httpx's own needs among them, and two of our rooms."""
    folder = tmp_path_factory.mktemp("carried")
    for name in (*CARRIED, *OF_HTTPX):
        try:
            found = distribution(name)
        except Exception:  # noqa: S112 - not every release of httpx needs all of them
            continue
        for top in {Path(each).parts[0] for each in found.files or () if ".." not in str(each)}:
            source = Path(str(found.locate_file(top)))
            if source.exists() and not (folder / top).exists():
                (folder / top).symlink_to(source)
    for room in ("jobs", "workers"):
        (folder / room).symlink_to(ROOT / room)
    return folder


def run(carried, *words):
    """A process that finds the standard library and the carried folder alone."""
    program = f"import sys; sys.path.append({str(carried)!r}); import runpy; "
    program += (
        f"sys.argv[1:] = {list(words[1:])!r}; runpy.run_module({words[0]!r}, run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("module", "word"), [("workers.offline_command", "--scenario"), ("jobs.twin_file", "--out")]
)
def test_the_carried_commands_need_nothing_else(carried, module, word):
    """Neither typer nor pydantic nor the database are there, and the help is printed."""
    done = run(carried, module, "--help")
    assert done.returncode == 0, done.stderr
    assert word in done.stdout


def test_a_wrong_wish_ends_with_one_sentence_and_exit_two(carried, tmp_path):
    """As everywhere: no traceback."""
    words = ["--build", str(tmp_path), "--model", "none.gguf", "--out", str(tmp_path / "r.json")]
    done = run(carried, "workers.offline_command", *words)
    assert done.returncode == 2
    assert "holds no build" in done.stderr
    assert "Traceback" not in done.stderr
