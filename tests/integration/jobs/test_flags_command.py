"""`forkscout flags` over a real repository, before a build and after it."""

from __future__ import annotations

import json

import pytest
from support import tiny_engine
from support.rows import Rows
from support.workshop import workshop
from typer.testing import CliRunner

from jobs import db
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.errors import UsageError

pytestmark = pytest.mark.needs("git")

SOURCE = """
    add_opt(common_arg(
        {"-m", "--model"}, "FNAME", "path\\x1b[2J of the model", [](common_params & p) {}
    ).set_env("LLAMA_ARG_MODEL"));
    add_opt(common_arg({"--new"}, "[a|b]", "what is new", [](common_params & p) {}));
"""


@pytest.fixture
def shop(tmp_path, monkeypatch, hub):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    repository = hub.add("owner/tiny")
    repository.commit(tiny_engine.files())
    repository.git("tag", "v1")
    repository.commit({"common/arg.cpp": SOURCE})
    repository.git("tag", "v2")
    repository.push("HEAD:refs/heads/main", "v1", "v2")
    return workshop(db.open_database(Settings()), tmp_path / "var", repository)


def run(*words: str) -> str:
    done = CliRunner().invoke(build_app("flags"), ["flags", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_before_a_build_the_source_tells(shop):
    """Read out of the mirror at that commit; what a terminal would obey is left out."""
    told = run("tiny@v2")
    assert "from the source" in told
    assert "-m, --model" in told
    assert "LLAMA_ARG_MODEL" in told
    assert "2 options, 3 spellings" in told
    assert "\x1b" not in told
    found = json.loads(run("tiny@v2", "--json"))
    assert (found["label"], found["build"]) == ("v2", None)
    assert found["options"][1]["values"] == ["a", "b"]


def test_a_commit_that_nothing_tells_of_has_to_be_built(shop):
    """The advice is the command that builds it."""
    with pytest.raises(UsageError, match="nothing tells what tiny understands") as caught:
        run("tiny@v1")
    assert "forkscout build --engine tiny --ref" in caught.value.advice


@pytest.mark.needs("bwrap", "cmake", "g++")
def test_a_build_goes_before_the_source(shop):
    """Its own help is what it understands; the difference tells one from the other."""
    shop.make("v1")
    told = run("tiny")
    assert "from build 1" in told
    assert "removed, an error where they are used: --draft-max" in told
    found = json.loads(run("tiny@v1", "--diff", "tiny@v2", "--json"))
    assert (found["from"]["build"], found["to"]["build"]) == (1, None)
    assert found["added"] == ["--new"]
    assert found["gone"] == ["--cache-type-k", "-ctk"]
    lines = run("tiny@v1", "--diff", "tiny@v2").splitlines()
    assert lines[2:] == ["+ --new", "- --cache-type-k", "- -ctk"]
    assert run("tiny@v1", "--diff", "tiny").splitlines()[2:] == ["both understand the same"]


@pytest.mark.parametrize("spec", ["tinny", "tiny@nothing", "tiny@--upload-pack=x", "wheels"])
def test_wrong_words_are_refused(shop, spec):
    """Unknown engines and refs, refs that would be options, a package that nobody built."""

    def fill(rows: Rows) -> None:
        wheels = rows.engine(name="wheels", repo=None, package="wheels", family="xllamacpp")
        rows.revision(wheels, commit="1" * 64)

    shop.rows(fill)
    with pytest.raises(UsageError):
        run(spec)
