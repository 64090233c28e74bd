"""Real builds of a tiny engine in a real cage, from the wish to the row, over both databases."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from support import tiny_engine
from support.workshop import workshop

from jobs import clock, db
from jobs.build_tables import BuildFlagsRow
from jobs.dialect.options import from_stored
from jobs.model import State, Trust
from jobs.store import approvals, results
from workers import artifacts
from workers.compiler_cache import layer_key

pytestmark = pytest.mark.needs("bwrap", "cmake", "g++", "git")


@pytest.fixture
def repository(hub):
    made = hub.add("owner/tiny")
    made.commit(tiny_engine.files())
    made.push()
    return made


@pytest.fixture
def shop(database, tmp_path, repository):
    return workshop(database, tmp_path / "home", repository)


def test_a_build_is_kept_with_phases_provenance_and_options(shop):
    """Everything that a person may ask of it later is in its rows."""
    job = shop.make()
    assert job.state == State.SUCCEEDED, job.message
    [row] = shop.builds()
    names = [each["name"] for each in row.provenance["phases"]]
    assert names == ["fetch", "configure", "compile", "install", "store", "describe"]
    assert all(each["seconds"] >= 0 for each in row.provenance["phases"])
    assert [each["name"] for each in job.progress["phases"]] == names
    assert row.provenance["commit"] == shop.repository.git("rev-parse", "HEAD").strip()
    assert row.provenance["tools"]["cmake"].startswith("cmake version")
    with db.reading(shop.database) as session:
        options = from_stored(session.get_one(BuildFlagsRow, row.id).options)
    assert [each.name for each in options] == ["--model", "--cache-type-k", "--draft-max"]
    assert options[0].env == ("LLAMA_ARG_MODEL",)
    assert options[1].values == ("f16", "q8_0")
    assert options[2].removed


@pytest.mark.parametrize(
    ("path", "text", "failure_class", "phase", "line"),
    [
        ("src/words.cpp", "int words( {", "compile_error", "compile", "error: "),
        (
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.16)\nproject(x CXX)\nadd_subdirectory(vendor)\n",
            "submodule_missing",
            "configure",
            "does not contain a CMakeLists.txt",
        ),
        (
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.16)\nproject(x CXX)\n"
            "file(DOWNLOAD https://example.org/x x STATUS s)\nmessage(FATAL_ERROR ${s})\n",
            "network_refused",
            "configure",
            "resolve host",
        ),
    ],
)
def test_a_build_that_fails_names_class_and_line(shop, path, text, failure_class, phase, line):
    """The job keeps the first line that says why, how long each phase took, and what to do."""
    files = tiny_engine.files()
    if "vendor" in text:
        files["vendor/README"] = "a submodule that was left empty"
    shop.repository.commit({**files, path: text})
    shop.repository.push()
    job = shop.make("main")
    assert (job.state, job.failure_class) == (State.FAILED, failure_class), job.message
    assert line.lower() in job.message.lower()
    assert job.progress["phases"][-1]["name"] == phase
    assert job.advice
    assert shop.builds() == []


def test_a_build_whose_artifact_is_there_is_not_made(shop):
    """The second wish needs no job."""
    shop.make()
    assert shop.ask().jobs == ()
    assert shop.ask().done == 1


def test_a_push_that_touches_nothing_that_is_built_is_not_built(shop):
    """Documents and tests are not even checked out: the artifact is that of the commit before."""
    shop.make("main")
    shop.repository.commit({"README.md": "more words", "tests/CMakeLists.txt": "other"})
    shop.repository.push()
    job = shop.make(shop.repository.git("rev-parse", "HEAD").strip())
    first, second = shop.builds()
    assert job.message.startswith("not built again: every file that it is built from")
    assert [each["name"] for each in job.progress["phases"]] == ["fetch"]
    assert (second.artifact, second.provenance["same_as"]) == (first.artifact, first.id)
    assert second.provenance["commit"] != first.provenance["commit"]
    with db.reading(shop.database) as session:
        assert session.get_one(BuildFlagsRow, second.id).options


@pytest.mark.needs("ccache")
def test_a_pull_request_shares_nothing_with_the_branches(shop):
    """Neither its compiler's cache nor its artifacts are read by what needs no person's word."""
    settings = shop.station.settings.model_copy(update={"compiler_cache_base": "tiny"})
    shop.station = replace(shop.station, settings=settings)
    cache = settings.compiler_cache

    def written():
        """Which trust has a layer, and whether anything lies in the base of all."""
        key = partial(layer_key, "tiny", "owner/tiny", cage="bubblewrap")
        found = {trust for trust in Trust if (cache / "layers" / key(trust)).exists()}
        return found, any((cache / "base").rglob("*"))

    shop.repository.commit({"README.md": "from a stranger"})
    shop.repository.push("HEAD:refs/pull/5/head")
    job = shop.ask("pull/5").jobs[0]
    with db.writing(shop.database) as session:
        sha = shop.repository.git("rev-parse", "HEAD").strip()
        approvals.approve(session, f"tiny@{sha}", by="ann", now=clock.now())
    shop.work()
    assert shop.job(job.id).state == State.SUCCEEDED, shop.job(job.id).message
    assert written() == ({Trust.APPROVE}, False)
    assert shop.make("main").message.startswith("artifact")
    assert written() == ({Trust.APPROVE, Trust.AUTO}, True)


def test_a_push_that_touches_the_source_is_built(shop):
    """And a push that takes it back is the first build again."""
    shop.make("main")
    shop.repository.commit({"src/words.cpp": tiny_engine.WORDS.format(help="--other N\n")})
    shop.repository.push()
    shop.make(shop.repository.git("rev-parse", "HEAD").strip())
    shop.repository.commit(tiny_engine.files())
    shop.repository.push()
    shop.make(shop.repository.git("rev-parse", "HEAD").strip())
    first, second, third = shop.builds()
    assert first.artifact != second.artifact
    assert third.provenance["same_as"] == first.id


def test_the_same_files_in_another_fork_are_built_there(shop, hub):
    """What a stranger's compiler left behind is not taken over; the same commit is one build."""
    shop.make("main")
    other = hub.add("owner/other")
    other.commit(tiny_engine.files(), message="another history")
    other.push()
    shop.rows(lambda rows: rows.engine(name="other", repo="owner/other"))
    shop.make("main", engine="other")
    first, second = shop.builds()
    assert first.source_tree == second.source_tree
    assert "same_as" not in second.provenance


@pytest.mark.parametrize("state", ["gone", "damaged", "whole"])
def test_an_artifact_that_is_lost_is_made_again(shop, state):
    """An equal source is no artifact; one that is whole after all is not lost any more."""
    shop.make("main")
    [build] = shop.builds()
    store = shop.station.settings.artifacts
    if state == "gone":
        artifacts.discard(store, build.artifact)
    if state == "damaged":
        server = artifacts.find(store, build.artifact) / "llama-server"
        server.chmod(0o755)
        server.write_text("#!/bin/sh\n")
    with db.writing(shop.database) as session:
        results.lose_build(session, build.identity)
    job = shop.make("main")
    assert job.message.startswith("already built" if state == "whole" else "artifact")
    [again] = shop.builds()
    assert (again.lost, again.artifact) == (False, build.artifact)
    assert artifacts.is_whole(store, build.artifact)
    assert shop.ask("main").jobs == ()
