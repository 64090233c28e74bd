"""Wishes of a person over both databases: all of it is queued, or nothing is written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlmodel import SQLModel, select
from support.rows import Rows

from jobs import db, submit
from jobs.config import Settings
from jobs.errors import ScoutError, UsageError
from jobs.lifecycle import NOT_APPROVED
from jobs.model import Kind, Lane, State, Trust
from jobs.own_scenarios import asked_by
from jobs.resolving import Desk
from jobs.scenarios import SCENARIOS, scenario_named
from jobs.store import catalog, needs, results, scenarios, work
from jobs.tables import JobRow, RevisionRow, StackRow

SCENARIO = SCENARIOS["decode-128"]


@pytest.fixture
def desk(database, tmp_path, hub):
    """A packaged engine with two releases, a fork with one commit, a rig, two models, a stack."""
    fork = hub.add("owner/fork")
    fork.commit({"CMakeLists.txt": "one"})
    fork.git("tag", "v0.1")
    fork.push("HEAD:refs/heads/main", "v0.1")
    with db.writing(database) as session:
        rows = Rows(session)
        wheel = rows.engine(
            name="wheels",
            family="xllamacpp",
            repo=None,
            package="wheels",
            trust=Trust.PACKAGE,
            targets=[{"rig": "cpu", "via": "wheel"}],
        )
        rows.revision(wheel, label="1.0", commit="1" * 64)
        rows.revision(wheel, label="2.0", commit="2" * 64)
        rows.engine(name="fork", repo="owner/fork")
        rows.engine(name="evil", trust=Trust.NEVER)
        rows.engine(name="strange", family="vllm")
        rows.rig(name="cpu")
        rows.model_file(name="gemma:q4", stored_in=None)
        rows.model_file(name="other:q8", stored_in=None)
        values = {"intent": {"context": 4096, "kv": "q8_0"}, "scenarios": ["decode-128"]}
        session.add(
            StackRow(
                name="gemma-cpu",
                engine_id=wheel.id,
                target="gemma:q4",
                created_at=wheel.created_at,
                **values,
            )
        )
    settings = Settings(home=tmp_path / "home")
    settings.prepare()
    return Desk(settings, database)


def bench(desk, **changes):
    wish = {
        "engine_name": "wheels",
        "ref": None,
        "rig": "cpu",
        "target": None,
        "scenario": SCENARIO,
        "context_tokens": None,
    }
    return submit.submit_bench(desk, **(wish | changes))


def written(database):
    """Everything in the database."""
    with db.reading(database) as session:
        return {
            name: session.connection().execute(table.select()).all()
            for name, table in SQLModel.metadata.tables.items()
        }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"engine_name": "wheel"}, "'wheels'"),
        ({"engine_name": "'; drop table job; --"}, "known are"),
        ({"ref": "2.1"}, "2.0"),
        ({"ref": "9" * 64}, "2.0"),
        ({"rig": "cpi"}, "'cpu'"),
        ({"target": "gemma:q8"}, "'gemma:q4'"),
        ({"engine_name": "fork", "target": "gemma:q4", "ref": "v0.2"}, "v0.1"),
        ({"engine_name": "fork", "target": "gemma:q4", "ref": "--upload-pack=x"}, ""),
        ({"engine_name": "fork"}, "--target"),
        ({"engine_name": "evil", "target": "gemma:q4"}, "trust"),
        ({"engine_name": "strange", "target": "gemma:q4"}, "xllamacpp"),
        ({"engine_name": "", "stack_name": "nobody's"}, "known are"),
        ({"engine_name": "fork", "stack_name": "second"}, "is of wheels, not of fork"),
    ],
)
def test_an_unknown_name_is_refused_and_nothing_written(desk, changes, words):
    """One sentence, the nearest right word, and not a single row more."""
    second_stack(desk)
    before = written(desk.database)
    with pytest.raises(UsageError) as caught:
        bench(desk, **changes)
    assert words in f"{caught.value.message} {caught.value.advice}"
    assert "\n" not in caught.value.message
    assert written(desk.database) == before


def second_stack(desk):
    """A second stack of the wheels, by name after the first."""
    with db.writing(desk.database) as session:
        first = session.exec(select(StackRow)).one()
        values = first.model_dump(exclude={"id", "name"}) | {"intent": {"context": 4096}}
        session.add(StackRow(name="second", **values))


def test_a_stack_names_engine_files_and_intents(desk):
    """Not the engine's first, and also where a file is changed by hand."""
    second_stack(desk)
    for more in ({}, {"target": "gemma:q4"}, {"engine_name": "wheels"}):
        done = bench(desk, **({"engine_name": "", "stack_name": "second"} | more))
        assert done.last.payload["stack"] == "second"
        assert done.last.payload["context_tokens"] == 4096
    assert bench(desk).last.payload["stack"] != "second"


def test_an_unknown_scenario_is_refused(desk):
    """With the nearest there is; those of a stack's own list are known too."""
    with db.writing(desk.database) as session:
        stack = session.exec(select(StackRow)).one()
        stack.own_scenarios = {"haiku": {"name": "haiku", "version": 1, "prompt": "x", "tokens": 8}}
        session.add(stack)
    with db.reading(desk.database) as session:
        with pytest.raises(UsageError) as caught:
            scenarios.named(session, "decode-129")
        own = scenarios.named(session, "haiku")
    assert "decode-128" in caught.value.advice
    assert (own.tokens, own.own) == (8, True)


def test_a_wish_becomes_fetch_build_and_bench(desk):
    """The bench waits for the other two; the stack's settings and the newest release are taken."""
    done = bench(desk)
    assert [job.kind for job in done.jobs] == [Kind.FETCH_MODEL, Kind.BUILD, Kind.BENCH]
    assert {job.lane for job in done.jobs} == {Lane.ON_DEMAND}
    fetch, build, last = done.jobs
    assert (fetch.state, build.state, last.state) == (State.QUEUED, State.QUEUED, State.BLOCKED)
    assert last.queue == "bench.cpu"
    assert "2.0" in last.title
    assert last.payload["context_tokens"] == 4096
    assert last.payload["intent"] == {"kv": "q8_0"}
    with db.reading(desk.database) as session:
        assert [need.id for need in needs.needs_of(session, last.id)] == [fetch.id, build.id]


def test_a_job_carries_the_whole_of_an_own_scenario(desk):
    """A list that changes later leaves it as it is; other words are another question."""
    own = replace(SCENARIO, name="mine", own=True)
    asked = bench(desk, scenario=own).jobs[-1].payload
    assert asked_by(asked["scenario"], asked["own_scenario"]) == own
    other = bench(desk, scenario=replace(own, prompt="Say no.")).jobs[-1]
    assert other.payload["own_scenario"]["prompt"] == "Say no."
    assert bench(desk).jobs[-1].payload["own_scenario"] == {}
    with db.reading(desk.database) as session:
        benches = session.exec(select(JobRow).where(JobRow.kind == Kind.BENCH)).all()
    assert len(benches) == 3


def test_a_picture_without_a_projector_is_refused_before_anything_is_built(desk):
    """It could only be answered by a guess."""
    before = written(desk.database)
    with pytest.raises(UsageError, match="no projector"):
        bench(desk, scenario=SCENARIOS["vision"])
    assert written(desk.database) == before


def test_a_ladder_is_a_job_for_each_depth(desk):
    """All wait for the same build; what the context has no room for is said and left out."""
    ladder = scenario_named("ladder")
    done = bench(desk, scenario=ladder, context_tokens=40_000)
    benches = [job for job in done.jobs if job.kind == Kind.BENCH]
    assert [job.payload["scenario"] for job in benches] == ["ladder@4096", "ladder@32768"]
    assert len(done.jobs) == 4
    assert len(done.left_out) == 3
    assert done.left_out[0].startswith("ladder@65536 is left out: it fills 65536 tokens")
    deep = bench(desk, scenario=ladder, context_tokens=40_000, depths=(32_768, 1000, 1000))
    words = [job.payload["scenario"] for job in deep.jobs if job.kind == Kind.BENCH]
    assert (words, deep.left_out) == (["ladder@1000", "ladder@32768"], ())
    assert benches[1].id in deep.joined
    one = bench(desk, scenario=scenario_named("ladder@1000"), context_tokens=40_000)
    assert one.last.id in {job.id for job in deep.jobs}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"depths": (4096,)}, "is no ladder"),
        ({"scenario": "ladder", "depths": (9000,)}, "the context has 4096"),
        ({"scenario": "ladder", "context_tokens": 300}, "the context has 300"),
    ],
)
def test_a_depth_that_cannot_be_is_refused_and_nothing_written(desk, changes, words):
    """A depth that was asked for by name must have room."""
    wish = {"scenario": "decode-128"} | changes
    named = scenario_named(wish.pop("scenario"))
    before = written(desk.database)
    with pytest.raises(UsageError, match=words):
        bench(desk, scenario=named, **wish)
    assert written(desk.database) == before


def test_a_bench_against_another_revision_waits_for_both_builds(desk):
    """One job with both builds as its needs; alone it is another question."""
    done = bench(desk, against="1.0")
    assert [job.kind for job in done.jobs] == [
        Kind.FETCH_MODEL,
        Kind.BUILD,
        Kind.BUILD,
        Kind.BENCH,
    ]
    theirs, ours, last = done.jobs[1:]
    assert ("1.0" in theirs.title, "2.0" in ours.title) == (True, True)
    assert "wheels 2.0 against wheels 1.0" in last.title
    assert last.payload["against"] == {
        "revision_id": theirs.payload["revision_id"],
        "build_identity": theirs.payload["build_identity"],
    }
    with db.reading(desk.database) as session:
        waits = {need.id for need in needs.needs_of(session, last.id)}
    assert waits == {job.id for job in done.jobs[:-1]}
    assert bench(desk).last.id != last.id
    assert bench(desk, against="1.0").last.id == last.id


def test_a_baseline_may_be_named_by_its_result(desk):
    """Also one of another engine."""
    with db.writing(desk.database) as session:
        rows = Rows(session)
        engine = rows.engine(name="beside", repo=None, package="beside", family="xllamacpp")
        revision = rows.revision(engine, label="5.0", commit="3" * 64)
        number = rows.result(revision).id
    done = bench(desk, against=f"result:{number}")
    assert "against beside 5.0" in done.last.title


@pytest.mark.parametrize(
    ("against", "words"),
    [("2.0", "against itself"), ("result:99", "no result 99"), ("9.9", "no known revision")],
)
def test_a_baseline_that_cannot_be_is_refused_and_nothing_written(desk, against, words):
    """Not a row more."""
    before = written(desk.database)
    with pytest.raises(UsageError, match=words):
        bench(desk, against=against)
    assert written(desk.database) == before


def test_the_same_wish_twice_is_one_job(desk):
    """Nothing is queued that is queued already; another number of runs is another question."""
    first, second = bench(desk), bench(desk)
    assert [job.id for job in first.jobs] == [job.id for job in second.jobs]
    other = bench(desk, runs=7)
    assert [job.id for job in other.jobs[:2]] == [job.id for job in first.jobs[:2]]
    assert other.last.id != first.last.id


@pytest.mark.parametrize("ref", ["1.0", "1" * 64, "1" * 12])
def test_a_release_is_named_by_label_or_digest(desk, ref):
    """All of these mean the older release."""
    assert "1.0" in bench(desk, ref=ref).last.title


@pytest.mark.needs("git")
@pytest.mark.parametrize("ref", [None, "v0.1", "main"])
def test_a_fork_is_looked_up_with_git(desk, ref):
    """Tag, branch and nothing at all lead to the same full commit, stored with its job."""
    done = bench(desk, engine_name="fork", target="gemma:q4", ref=ref)
    assert len(done.jobs) == 3
    with db.reading(desk.database) as session:
        row = session.get(RevisionRow, done.last.payload["revision_id"])
    assert len(row.commit) == 40
    again = bench(desk, engine_name="fork", target="gemma:q4", ref=row.commit[:10])
    assert again.last.id == done.last.id


def test_a_known_commit_needs_no_network(desk):
    """What was seen once is named by its full sha, also where no mirror holds it."""
    commit = "a" * 40
    with pytest.raises(ScoutError):
        bench(desk, engine_name="fork", target="gemma:q4", ref=commit)
    with db.writing(desk.database) as session:
        fork = catalog.engine_named(session, "fork")
        Rows(session).revision(fork, label="seen", commit=commit)
    assert "seen" in bench(desk, engine_name="fork", target="gemma:q4", ref=commit).last.title


@pytest.mark.needs("git")
def test_the_head_of_a_pull_request_is_benched_by_its_number(desk, hub):
    """No branch or tag reaches it; the mirror fetches it by itself, for the builder too."""
    stranger = hub.repositories["owner/fork"]
    head = stranger.commit({"new": "1"})
    stranger.push("HEAD:refs/pull/3/head")
    done = bench(desk, engine_name="fork", target="gemma:q4", ref="pull/3")
    with db.reading(desk.database) as session:
        row = session.get(RevisionRow, done.last.payload["revision_id"])
    assert (row.commit, row.label) == (head, "pull/3")


@pytest.mark.needs("git")
def test_what_only_a_pull_request_has_waits_for_a_person(desk, hub):
    """It is anybody's code, whatever the engine's trust and by whatever name it is asked for."""
    stranger = hub.repositories["owner/fork"]
    first = stranger.commit({"new": "1"})
    head = stranger.commit({"new": "2"})
    stranger.push("HEAD:refs/pull/3/head")

    def ask(ref):
        [job] = submit.submit_build(desk, engine_name="fork", ref=ref, target="cpu").jobs
        return job.state, job.blocked_by

    assert ask("pull/3") == (State.BLOCKED, NOT_APPROVED)
    assert ask(head) == (State.BLOCKED, NOT_APPROVED)
    assert ask(first) == (State.BLOCKED, NOT_APPROVED)
    assert ask("main") == (State.QUEUED, None)


@pytest.mark.needs("git")
def test_a_pull_request_that_was_merged_is_the_branch(desk, hub):
    """The branch has the commit by then: its maintainers took it in."""
    stranger = hub.repositories["owner/fork"]
    stranger.commit({"new": "1"})
    stranger.push("HEAD:refs/pull/3/head", "HEAD:refs/heads/main")
    [job] = submit.submit_build(desk, engine_name="fork", ref="pull/3", target="cpu").jobs
    assert job.state == State.QUEUED


def test_what_is_built_is_not_built_again_until_its_artifact_is_lost(desk):
    """A known build needs no job; one whose artifact is gone is made again."""
    wish = {"engine_name": "wheels", "ref": "2.0", "target": "cpu"}
    first = submit.submit_build(desk, **wish)
    identity = first.last.payload["build_identity"]
    with db.writing(desk.database) as session:
        row = work.job(session, first.last.id)
        row.state = State.SUCCEEDED
        rows = Rows(session)
        revision = session.get(RevisionRow, row.payload["revision_id"])
        rows.build(revision, identity=identity)
    known = submit.submit_build(desk, **wish)
    assert (known.jobs, known.done) == ((), 1)
    with db.writing(desk.database) as session:
        results.lose_build(session, identity)
    again = submit.submit_build(desk, **wish)
    assert again.last.state == State.QUEUED
    assert again.last.id != first.last.id


def test_publishing_twice_is_one_job(desk):
    """A waiting export will show what the second wish wants shown."""
    assert submit.submit_publish(desk).last.id == submit.submit_publish(desk).last.id


def test_a_ref_with_no_release_known_says_what_to_do(desk):
    """An engine nobody has looked at yet has nothing to bench."""
    with db.writing(desk.database) as session:
        Rows(session).engine(name="new", family="xllamacpp", repo=None, package="new")
    with pytest.raises(ScoutError) as caught:
        bench(desk, engine_name="new", target="gemma:q4")
    assert "scout run" in caught.value.advice
    with db.reading(desk.database) as session:
        assert session.exec(select(JobRow)).all() == []
