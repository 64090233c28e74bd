"""Scenarios that a user writes: read whole, or refused with file, line and the nearest word."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import UsageError
from jobs.own_scenarios import KEYS, asked_by, faults, made, read, table_of
from jobs.scenarios import SCENARIOS, scenario_named

SOUND = """
[[scenario]]
name = "haiku"
version = 1
prompt = "Write forty haiku about rain."
tokens = 256
temperature = 0

[[scenario]]
name = "deep"
version = 3
endpoint = "filled"
depths = [1024, 8192]
tokens = 64
runs = 2

[[scenario]]
name = "sunset"
version = 1
prompt = "Which colour?"
picture = "red-gradient-64"
names = "red"
tokens = 32
thinking = true
"""
HEAD = '[[scenario]]\nname = "mine"\nversion = 1\nprompt = "Hello"\ntokens = 64\n'


def test_a_sound_file_gives_its_scenarios():
    """Each with its own digest in the key; what is left out has a stated default."""
    found = read(SOUND, "my.toml")
    assert list(found) == ["haiku", "deep", "sunset"]
    haiku = scenario_named("haiku", found)
    assert (haiku.endpoint, haiku.temperature, haiku.runs, haiku.boots) == ("chat", 0.0, 5, 3)
    assert haiku.key == f"haiku.v1-{haiku.digest[:12]}"
    assert found["deep"].depths == (1024, 8192)
    assert (found["sunset"].picture, found["sunset"].thinking) == ("red-gradient-64", True)


@pytest.mark.parametrize(
    ("text", "line", "says", "advice"),
    [
        (HEAD + "temprature = 1\n", 6, "unknown key 'temprature'", "'temperature'"),
        (HEAD.replace("64", "true"), 5, "tokens cannot be 'True'", "2 to 65536"),
        (HEAD.replace("= 1", "= 1.5"), 3, "version cannot be '1.5'", "whole number"),
        (HEAD.replace("Hello", " "), 4, "prompt cannot be", "1 to 200000"),
        (HEAD.replace("mine", "../x"), 2, "name cannot be '../x'", "letters"),
        (HEAD.replace("mine", "code"), 2, "'code' is a shipped scenario", "own"),
        (HEAD + 'endpoint = "chatt"\n', 6, "endpoint cannot be 'chatt'", "'chat'"),
        (HEAD + "temperature = nan\n", 6, "temperature cannot be 'nan'", "0 to 10"),
        (HEAD + "depths = [1, 2]\n", 6, "without a filled context", "endpoint"),
        (HEAD + 'picture = "red-gradient-64"\n', 6, "go together", "both"),
        (HEAD + 'endpoint = "filled"\n', 6, "needs its depth once", "filled_tokens"),
        (HEAD + 'endpoint = "completion"\nthinking = true\n', 7, "beside endpoint", "chat"),
        (HEAD + HEAD, 7, "a second scenario 'mine'", "keep one"),
        (HEAD.replace("tokens = 64\n", ""), 1, "'tokens' is missing", "add tokens"),
        ("[[scenarios]]\n", 1, "unknown table 'scenarios'", "[[scenario]]"),
        ("scenario = 3\n", 1, "no list", "[[scenario]]"),
        ("", 1, "no list", "[[scenario]]"),
        (HEAD + "x = [\n", 7, "not TOML", "close what is open"),
    ],
)
def test_a_wrong_word_is_named_with_its_line(text, line, says, advice):
    """The file as it was named, the line that is wrong, and what would be right."""
    with pytest.raises(UsageError) as caught:
        read(text, "my.toml")
    assert f"my.toml, line {line}: " in caught.value.detail
    assert says in caught.value.detail
    assert advice in caught.value.advice


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())


@given(st.dictionaries(st.sampled_from(sorted(KEYS)) | st.text(max_size=3), ANYTHING))
def test_whatever_stands_in_a_table_is_a_fault_or_a_scenario(table):
    """Nothing raises, and nothing without a fault fails to become a scenario."""
    if not list(faults(table)):
        assert made(table).own


def test_a_job_carries_the_whole_scenario():
    """What goes into a job comes out of it word for word, a temperature of zero too."""
    for scenario in read(SOUND, "my.toml").values():
        table = json.loads(json.dumps(table_of(scenario)))
        assert asked_by(scenario.name, table) == scenario
    assert table_of(SCENARIOS["code"]) == {}
    assert asked_by("code", {}) is SCENARIOS["code"]


def test_a_stored_scenario_survives_a_shipped_one_of_its_name():
    """A later release may ship the name; the words and the key stay the user's."""
    table = {"name": "code", "version": 1, "prompt": "x", "tokens": 8}
    assert asked_by("code", table).key.startswith("code.v1-")


def test_a_job_with_broken_words_is_refused():
    """Whoever wrote the row: nothing is guessed."""
    with pytest.raises(UsageError, match="tokens"):
        asked_by("mine", {"name": "mine", "version": 1, "prompt": "x", "tokens": -1})
