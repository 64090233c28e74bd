"""What makes a negative, how long it stands, and what moves it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from support.rows import NOON, digest

from jobs import failure_classes, negatives
from jobs.model import Blame, Kind, State, Validity
from jobs.negatives import Grounds, Past, Question, bench_question

QUESTION = Question(
    Kind.BENCH,
    "buun",
    "olares",
    scenario="decode-800",
    target_sha256=digest("target"),
    drafted=True,
    context_tokens=32768,
    intent={"kv": "turbo3", "speculation": "dflash"},
)
GROUNDS = Grounds(
    commit="1" * 40,
    label="master@1",
    order="2026-04-29",
    revision_id=3,
    flags=("--a",),
    driver="570.1",
    vram_bytes=24 * 2**30,
    fingerprint="f1",
    sandbox="bubblewrap",
)


@pytest.mark.parametrize(
    ("kind", "state", "blame", "failure_class", "is_one"),
    [
        (Kind.BENCH, State.FAILED, Blame.ENGINE, "fattn", True),
        (Kind.BUILD, State.FAILED, Blame.ENGINE, "exit", True),
        (Kind.BENCH, State.FAILED, Blame.CONFIGURATION, "unsupported", True),
        (Kind.BENCH, State.DEAD, Blame.INFRASTRUCTURE, "disk_full", False),
        (Kind.BENCH, State.FAILED, Blame.INFRASTRUCTURE, "bug", False),
        (Kind.BENCH, State.FAILED, Blame.ENVIRONMENT, "no_sandbox", False),
        (Kind.BENCH, State.QUEUED, Blame.ENGINE, "fattn", False),
        (Kind.BENCH, State.CANCELLED, None, "", False),
        (Kind.FETCH_MODEL, State.FAILED, Blame.CONFIGURATION, "hub_gone", False),
        (Kind.BENCH, State.FAILED, Blame.CONFIGURATION, "weights_sha256", False),
        (Kind.BENCH, State.FAILED, Blame.CONFIGURATION, "refused", False),
        (Kind.BUILD, State.FAILED, Blame.CONFIGURATION, "not_trusted", False),
    ],
)
def test_only_what_the_engine_or_the_wish_is_blamed_for_is_negative(
    kind, state, blame, failure_class, is_one
) -> None:
    """Infrastructure, environment, our stores and our trust say nothing of a stack."""
    assert negatives.failed_as_negative(kind, state, blame, failure_class) is is_one


def test_a_result_is_negative_where_it_tells_of_the_stack() -> None:
    """Not where it tells of the machine, of a cache or of our own measuring."""
    assert {each.value for each in Validity if negatives.measured_as_negative(each)} == {
        "unstable",
        "spec_inactive",
        "broken_output",
        "partial_offload",
        "config_mismatch",
        "degraded",
        "too_short",
        "empty",
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"intent": {"kv": "turbo3", "speculation": "mtp"}},
        {"intent": {"kv": "turbo3"}},
        {"intent": {"kv": "turbo3", "speculation": "dflash", "context": 32768}},
    ],
)
def test_a_question_leaves_out_what_moves_with_a_drafter(changed) -> None:
    """Another drafter may draft in another way, and it is the same question."""
    assert replace(QUESTION, **changed).key == QUESTION.key


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": Kind.BUILD},
        {"engine": "beellama"},
        {"rig": "other"},
        {"scenario": "decode-128"},
        {"target_sha256": digest("another")},
        {"projector_sha256": digest("projector")},
        {"drafted": False},
        {"context_tokens": 65536},
        {"intent": {"kv": "f16", "speculation": "dflash"}},
    ],
)
def test_a_question_is_all_that_a_series_is_but_for_what_moves(changed) -> None:
    """Change one part and it is another question."""
    assert replace(QUESTION, **changed).key != QUESTION.key


def test_without_a_drafter_the_way_of_drafting_is_asked_for() -> None:
    """Heads of the target and a table of words are no files that could be another."""
    alone = replace(QUESTION, drafted=False)
    assert replace(alone, intent={"kv": "turbo3"}).key != alone.key


def test_a_question_is_answered_by_a_negative_of_any_scenario() -> None:
    """Memory does not depend on what is asked of the server."""
    wide = replace(QUESTION, scenario=negatives.ANY_SCENARIO)
    assert QUESTION.keys == (QUESTION.key, wide.key)
    assert wide.keys == (wide.key,)


@pytest.mark.parametrize(
    ("previous", "days"),
    [
        (None, 7),
        (Past("fattn", 7), 14),
        (Past("fattn", 14), 28),
        (Past("fattn", 28), 28),
        (Past("oom_kv", 28), 7),
    ],
)
def test_the_same_failure_again_stands_twice_as_long(previous, days) -> None:
    """Up to four weeks; another class of failure is news and begins anew."""
    assert negatives.days_for(previous, "fattn", default=7.0) == days


def test_a_negative_expires_on_its_date_once_a_day() -> None:
    """So that a retest that was lost to a dead machine is asked for again on the next day."""
    assert negatives.expired(NOON, 7.0, NOON - timedelta(seconds=1)) is None
    first = negatives.expired(NOON, 7.0, NOON)
    assert first is not None
    assert first.says == "expired after 7 days"
    assert negatives.expired(NOON, 7.0, NOON + timedelta(hours=3)) == first
    assert negatives.expired(NOON, 7.0, NOON + timedelta(days=1)) != first


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"driver": "580.2"}, "the driver went from 570.1 to 580.2"),
        ({"vram_bytes": 32 * 2**30}, "32.0 GiB of memory, it was 24.0 GiB"),
        ({"fingerprint": "f2"}, "the rig is another: f2, it was f1"),
        ({"sandbox": "uncaged"}, "the sandbox is uncaged, it was bubblewrap"),
        ({"flags": ("--b",), "env": {"X": "1"}}, "the watch list asks for other flags: X=1 --b"),
    ],
)
def test_what_changed_on_the_rig_or_in_the_watch_list_is_named(changed, says) -> None:
    """With what it was and what it is."""
    (move,) = negatives.changed(GROUNDS, replace(GROUNDS, **changed))
    assert move.says == says


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (GROUNDS, GROUNDS),
        (GROUNDS, replace(GROUNDS, driver="", vram_bytes=None, fingerprint="", sandbox="")),
        (replace(GROUNDS, driver="", vram_bytes=None, fingerprint="", sandbox=""), GROUNDS),
        (GROUNDS, replace(GROUNDS, vram_bytes=16 * 2**30)),
    ],
)
def test_what_is_not_known_did_not_move_and_less_memory_helps_nobody(then, now) -> None:
    """Doubt keeps the state."""
    assert list(negatives.changed(then, now)) == []


def test_a_revision_that_came_is_counted_in_commits_where_they_are_known() -> None:
    """And names the one it takes the place of."""
    now = replace(GROUNDS, commit="2" * 40, label="master@2", order="2026-05-01", revision_id=4)
    said = negatives.advanced("buun", GROUNDS, now, commits=8).says
    assert said == "buun moved 8 commits to master@2, it was master@1"
    assert negatives.advanced("buun", Grounds(), now).says == "buun moved to master@2"


def test_an_older_revision_tells_nothing_of_a_newer_one() -> None:
    """A backfill that fails renews nothing, and one that works overturns nothing."""
    older = replace(GROUNDS, order="2026-04-01", revision_id=9, commit="9" * 40)
    assert negatives.tells_more(GROUNDS, older)
    assert negatives.tells_more(GROUNDS, GROUNDS)
    assert not negatives.tells_more(older, GROUNDS)
    assert negatives.tells_more(older, Grounds())
    assert negatives.tells_more(older, None)


@pytest.mark.parametrize(
    ("length", "says"),
    [
        (timedelta(days=3, hours=4, minutes=59), "3 days 4 h"),
        (timedelta(days=1), "1 day"),
        (timedelta(hours=2, minutes=5), "2 h 5 min"),
        (timedelta(seconds=59), "0 min"),
        (timedelta(days=-1), "0 min"),
    ],
)
def test_a_span_is_said_in_its_two_largest_units(length, says) -> None:
    """As people say it."""
    assert negatives.span(length) == says


@pytest.mark.parametrize(
    ("failure_class", "is_one"),
    [
        ("does_not_fit", True),
        ("oom_kv", True),
        ("ring_oom", True),
        ("zoom", False),
        ("fattn", False),
    ],
)
def test_the_pre_flight_is_asked_about_memory(failure_class, is_one) -> None:
    """It has no opinion on anything else."""
    assert negatives.is_about_memory(failure_class) is is_one


@pytest.mark.parametrize(
    "moved",
    [
        {"driver": "580.2"},
        {"sandbox": "landlock"},
        {"fingerprint": "f2"},
        {"vram_bytes": 32 * 2**30},
        {"flags": ("--b",)},
        {"env": {"A": "1"}},
    ],
)
def test_what_stood_in_an_earlier_answer_is_no_news(moved) -> None:
    """It is news once; then it was tried."""
    now = replace(GROUNDS, **moved)
    assert len(list(negatives.changed(GROUNDS, now))) == 1
    assert list(negatives.changed(GROUNDS, now, failed=[now])) == []


def test_a_success_weighs_as_much_as_what_it_was_asked_with() -> None:
    """Boots and runs are both counted; what asked for nothing weighs nothing."""
    then = {"boots": 3, "runs": 5}
    assert negatives.measures_enough(then, {"boots": 3, "runs": 6})
    assert not negatives.measures_enough(then, {"boots": 4, "runs": 4})
    assert not negatives.measures_enough(then, {"boots": 2, "runs": 9})
    assert not negatives.measures_enough(then, {})
    assert negatives.measures_enough({}, {})
    less = negatives.measured_less(7, then, {"boots": 1, "runs": 1})
    assert less.says == "job 7 worked in 1 boot of 1 run: it takes 3 boots of 5 runs"
    assert less.kind in negatives.HINTS


def test_a_person_may_name_every_class_that_a_log_a_result_or_a_worker_has() -> None:
    """And no validity of the machine."""
    known = failure_classes.known()
    assert {"does_not_fit", "oom_kv", "unstable", "crash_load", "crash_depth", "unknown"} <= set(
        known
    )
    assert not {"ok", "tainted", "cached"} & set(known)


def test_each_depth_of_a_ladder_is_a_question_of_its_own():
    """What dies at one depth says nothing of a shallower one."""
    shallow, deep = (
        bench_question({"rig": "big", "scenario": word}, engine="buun", target_sha256="a" * 64)
        for word in ("ladder@4096", "ladder@65536")
    )
    assert set(shallow.keys) & set(deep.keys) == {shallow.keys[1]}
    assert shallow.key != deep.key
