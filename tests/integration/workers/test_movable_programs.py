"""A program that CMake made with our definitions starts from any folder; one without is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from jobs.engines.llama_cpp import DEFINITIONS
from jobs.errors import JobFailure
from workers import programs

pytestmark = pytest.mark.needs("cmake", "ninja", "cc")
PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(movable C)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_library(answer SHARED answer.c)
add_executable(llama-server main.c)
target_link_libraries(llama-server answer)
"""


def _build(folder: Path, *definitions: str) -> Path:
    source = folder / "source"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "answer.c").write_text("int answer(void) { return 42; }\n")
    (source / "main.c").write_text("int answer(void);\nint main(void) { return answer(); }\n")
    work = folder / "work"
    for words in (
        ("-S", source, "-B", work, "-G", "Ninja", "-Wno-dev", *definitions),
        ("--build", work),
    ):
        subprocess.run(["cmake", *words], check=True, capture_output=True)
    return work / "bin"


def test_our_builds_start_from_another_path(tmp_path: Path) -> None:
    """With CMAKE_BUILD_RPATH_USE_ORIGIN the program finds its library beside itself, wherever."""
    made = _build(tmp_path, *DEFINITIONS)
    programs.check(made)
    moved = shutil.move(made, tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "work")
    assert subprocess.run([f"{moved}/llama-server"]).returncode == 42
    found = programs.read(Path(moved) / "llama-server")
    assert found.library_paths[0] == "$ORIGIN"


def test_a_build_with_an_absolute_path_is_refused(tmp_path: Path) -> None:
    """Moved, it would load whatever lies at the old path, or nothing."""
    made = _build(tmp_path)
    with pytest.raises(JobFailure, match="looks for its libraries") as caught:
        programs.check(made)
    assert caught.value.failure_class == "library_path"
