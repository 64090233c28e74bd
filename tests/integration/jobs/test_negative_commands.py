"""Commands about negatives, over a real database."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from support.fit_rows import shaped_file
from support.one_stack import DRAFTER, RIG, TARGET, Bench, crash
from support.rows import Rows
from support.shapes import dflash_drafter
from typer.testing import CliRunner

from jobs import clock, db
from jobs.cli.root import build_app
from jobs.config import Settings
from jobs.errors import UsageError
from jobs.fit.stored import shape_stored
from jobs.tables import ModelFileRow

HOSTILE = "\x1b]0;owned\x07evil\u202e\nfake line"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    database = db.open_database(Settings())
    yield Bench(database, clock.now() - timedelta(days=1))
    database.dispose()


def run(*words: str) -> str:
    done = CliRunner().invoke(build_app(words[0]), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def add(*words: str, **changes: str) -> str:
    given = {
        "engine": "buun",
        "rig": RIG,
        "target": TARGET,
        "drafter": DRAFTER,
        "context": "8192",
        "class": "does_not_fit",
        "why": "28 GB on a card of 24",
    } | changes
    options = [word for name, value in given.items() for word in (f"--{name}", value)]
    return run("negatives", "add", *options, *words)


def test_nothing_is_told_as_nothing(bench) -> None:
    """With what to do next."""
    assert "forkscout negatives --all" in run("negatives")
    assert run("negatives", "--json") == "[]\n"
    assert "no negative was ever stored" in run("negatives", "--all")


def test_one_by_hand_is_listed_shown_forgotten_and_stands_again(bench) -> None:
    """With its days, its grounds and its state."""
    assert "negative 1: qwen-dflash on olares at 8,192 tokens stands until" in add("--days", "3")
    (found,) = json.loads(run("negatives", "--engine", "buun", "--json"))
    assert (found["failure_class"], found["days"], found["source"]) == ("does_not_fit", 3, "hand")
    assert found["grounds"]["commit"] == "1" * 40
    shown = run("negatives", "show", "1")
    assert "28 GB on a card of 24" in shown
    assert "depended on memory: 24.0 GiB" in shown
    assert "--undo" in run("negatives", "forget", "1")
    assert json.loads(run("negatives", "--json")) == []
    assert "forgotten" in run("negatives", "--all")
    assert "stands again" in run("negatives", "forget", "1", "--undo")
    assert len(json.loads(run("negatives", "--standing", "--json"))) == 1


def test_the_list_says_at_which_context_and_why(bench) -> None:
    """Impossible at one context says nothing of another; `negatives list` is the same list."""
    add(context="32768")
    add(context="65536", why="twice as much\nof it")
    said = run("negatives", "list")
    assert said == run("negatives")
    words = " ".join(said.split())
    for word in ("32,768", "65,536", "does_not_fit", "28 GB", "twice"):
        assert word in words
    kept = json.loads(run("negatives", "list", "--json"))
    assert [each["what"] for each in kept] == [
        "qwen-dflash on olares at 32,768 tokens",
        "qwen-dflash on olares at 65,536 tokens",
    ]


def test_a_class_that_nobody_knows_is_refused_with_the_nearest(bench) -> None:
    """The help lists them all."""
    with pytest.raises(UsageError) as refused:
        add(**{"class": "oom_kvs"})
    assert "did you mean 'oom_kv'?" in refused.value.advice
    said = " ".join(run("negatives", "add", "--help").replace("│", " ").split())
    for name in ("does_not_fit", "unstable", "crash_load", "fattn"):
        assert name in said


@pytest.mark.parametrize("context", ["255", "2097153", "99999999999999999999"])
def test_a_context_that_no_bench_may_ask_for_is_refused(bench, context) -> None:
    """A retest of it could never be queued."""
    with pytest.raises(AssertionError, match=r"should be (less|greater) than"):
        add(context=context)
    assert bench.negatives() == []


def test_a_pre_flight_that_could_not_be_asked_says_so(bench) -> None:
    """Nobody takes its silence for consent."""
    says = f"could not be asked: the header of {DRAFTER} was not read"
    assert f"the pre-flight: {says}" in add()
    (found,) = json.loads(run("negatives", "--json"))
    assert (found["preflight"], found["moves"]) == (says, [])


def test_the_pre_flight_says_at_once_that_it_disagrees(bench) -> None:
    """And a trial is queued."""
    bench.change(ModelFileRow, DRAFTER, shape=shape_stored(dflash_drafter()))
    said = add()
    assert "the pre-flight disagrees: fits" in said
    assert "bench buun master@1" in said
    assert "nobody serves" in said


def test_it_agrees_where_the_card_is_too_small(bench) -> None:
    """Then there is nothing to try."""
    bench.change(ModelFileRow, DRAFTER, shape=shape_stored(dflash_drafter()))
    said = json.loads(add("--json", context="262144"))
    assert said["jobs"] == []
    assert said["preflight"].startswith("does not fit")


def test_a_retry_queues_and_says_what(bench) -> None:
    """The second one says that it is under way."""
    add()
    assert "bench buun master@1" in run("negatives", "retry", "1")
    with pytest.raises(UsageError, match="is being tried again already"):
        run("negatives", "retry", "1")


def test_overturned_ones_are_listed_with_how_long_they_stood(bench) -> None:
    """Both answers are kept."""
    bench.ask()
    bench.work_off(failure=crash())
    bench.later(hours=5)
    bench.push("2")
    bench.work_off(70.0, 71.0, 70.5)
    (found,) = json.loads(run("negatives", "--overturned", "--json"))
    assert (found["stood"], found["result_tps"]) == ("5 h 0 min", 70.5)
    assert "overturned at" in run("negatives", "show", "1")
    with pytest.raises(UsageError, match="stands no longer"):
        run("negatives", "retry", "1")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"engine": "nobody"}, "nobody"),
        ({"target": "nothing"}, "nothing"),
        ({"rig": "elsewhere"}, "elsewhere"),
        ({"class": "Does not fit!"}, "no class of failure"),
        ({"class": "nonsense"}, "no class of failure"),
        ({"why": "  "}, "needs a reason"),
        ({"days": "0"}, "out of range"),
        ({"days": "nan"}, "out of range"),
        ({"days": "29"}, "out of range"),
        ({"scenario": "no-such"}, "unknown scenario"),
        ({"revision": "v9"}, "no known revision"),
        ({"kv": "x" * 5000}, "cache type"),
    ],
)
def test_a_wrong_wish_leaves_nothing_written(bench, changes, why) -> None:
    """And names what was wrong."""
    with pytest.raises(UsageError, match=why):
        add(**changes)
    assert bench.negatives() == []


@pytest.mark.parametrize("number", ["0", "7", "99999999999999999999"])
def test_a_number_that_is_none_is_said_so(bench, number) -> None:
    """By every command that takes one."""
    for command in ("show", "retry", "forget"):
        with pytest.raises(UsageError, match=f"there is no negative {number}"):
            run("negatives", command, number)


def test_two_wishes_at_once_are_refused(bench) -> None:
    """They contradict each other."""
    with pytest.raises(UsageError, match="one of --all"):
        run("negatives", "--all", "--overturned")


def test_a_strangers_words_do_nothing_to_the_terminal(bench) -> None:
    """Not in the list, not in the chain."""
    with db.writing(bench.database) as session:
        shaped_file(Rows(session), HOSTILE, dflash_drafter(), role="drafter")
    add(why=HOSTILE, drafter=HOSTILE)
    for words in (("negatives",), ("negatives", "show", "1")):
        said = run(*words)
        assert "\x1b" not in said
        assert "\u202e" not in said
        assert not any(line.startswith("fake line") for line in said.splitlines())
