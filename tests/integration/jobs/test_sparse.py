"""What a recipe uses of a repository, judged by us and by git."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import git
from jobs.dialect.sparse import is_used, none_used
from jobs.engines.registry import FAMILIES
from jobs.git_history import paths_between

PATTERNS = FAMILIES["llama.cpp"].SPARSE_PATTERNS
PATHS = [
    "CMakeLists.txt",
    "README.md",
    "LICENSE",
    "src/llama.cpp",
    "src/README.md",
    "src/models/qwen.cpp",
    "models/vocab.gguf",
    "docs/build.md",
    "docs/x/deep.txt",
    "tests/test.cpp",
    "testsuite/test.cpp",
    "tools/server/server.cpp",
    "tools/server/public/index.html",
    "tools/server/public_legacy/index.html",
    "tools/ui/app.ts",
    ".github/workflows/build.yml",
    ".devops/cuda.Dockerfile",
    "ci/run.sh",
    "cicada/run.cpp",
    "ggml/src/ggml-cuda/fattn.cu",
    "common/models/x.cpp",
    "a.md/inside.cpp",
    "x.MD",
]


@pytest.fixture
def mirror(tmp_path, hub) -> Path:
    repository = hub.add("a/engine")
    repository.commit(dict.fromkeys(PATHS, "one"))
    repository.push()
    git.update_mirror(tmp_path / "mirror.git", git.repo_url("a/engine"))
    return tmp_path / "mirror.git"


@pytest.mark.needs("git")
def test_what_we_call_used_is_what_git_checks_out(mirror, tmp_path):
    """File by file: a path called unused cannot be read by any build."""
    sha = git.resolve(mirror, "main").sha
    git.check_out(mirror, sha, tmp_path / "tree", PATTERNS)
    there = {
        path.relative_to(tmp_path / "tree").as_posix()
        for path in (tmp_path / "tree").rglob("*")
        if path.is_file()
    }
    assert {path for path in PATHS if is_used(path, PATTERNS)} == there
    assert "src/llama.cpp" in there
    assert "docs/build.md" not in there


def test_without_patterns_all_is_used():
    """A family that says nothing uses everything."""
    assert is_used("docs/x", ())
    assert none_used([], ())
    with pytest.raises(ValueError, match="not a form of pattern"):
        is_used("x", ("src",))


@pytest.mark.needs("git")
def test_paths_between_two_commits_are_read_from_trees(hub, tmp_path):
    """A rename is two paths; a name that cannot be shown as it is makes the answer unknown."""
    repository = hub.add("a/engine")
    first = repository.commit({"src/a.cpp": "one", "docs/x.md": "one"})
    second = repository.commit({"docs/x.md": "two", "docs/y.md": "new"})
    third = repository.commit({" models/odd\x01": "x"})
    repository.push()
    mirror = tmp_path / "m.git"
    git.update_mirror(mirror, git.repo_url("a/engine"))
    assert paths_between(mirror, first, second) == {"docs/x.md", "docs/y.md"}
    assert paths_between(mirror, second, first) == {"docs/x.md", "docs/y.md"}
    assert paths_between(mirror, first, first) == set()
    assert paths_between(mirror, first, third) is None
    assert paths_between(mirror, first, "main") is None
