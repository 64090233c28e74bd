"""How a state of an engine is named, and that no state is guessed."""

from __future__ import annotations

from datetime import date

import pytest

from jobs.errors import UsageError
from jobs.known_engines import STATES, state_at, state_named, states_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("beellama@v0.1.2", "beellama@0.1"),
        ("beellama@0.1", "beellama@0.1"),
        ("beellama@633cd34fb", "beellama@0.1"),
        ("beellama@633cd34", "beellama@0.1"),
        ("beellama@v0.4", "beellama@0.4"),
        ("BeeLlama", "beellama@0.4"),
        ("Anbeeld/beellama.cpp@v0.3.2", "beellama@0.3"),
        ("buun@2026-05-10", "buun@2026-04"),
    ],
)
def test_a_state_is_named_by_version_commit_or_day(text: str, title: str) -> None:
    """Or by nothing, which means the newest."""
    assert state_named(text).title == title


def test_a_bare_name_means_the_newest_state_that_has_the_cache_types() -> None:
    """turbo3 left beellama with 0.4."""
    assert state_named("beellama", cache_types=("turbo3",)).title == "beellama@0.3"


@pytest.mark.parametrize(
    "text", ["beellama@v0.10.0", "beellama@", "beellama@2026-06-15", "beellama@633", "vllm", "@"]
)
def test_what_was_not_read_is_refused_with_what_was(text: str) -> None:
    """v0.10 is not v0.1."""
    with pytest.raises(UsageError) as caught:
        state_named(text)
    assert caught.value.advice


def test_days_between_two_states_belong_to_none() -> None:
    """What nobody read stays unknown."""
    assert state_at("turboquant", day=date(2026, 6, 1)) is None
    assert state_at("beellama", label="main", commit="0" * 40) is None


def test_an_impossible_day_is_no_day() -> None:
    """The 39th of a month names no state and raises nothing strange."""
    with pytest.raises(UsageError):
        state_named("buun@2026-05-39")


def test_each_state_has_a_source_and_a_name_of_its_own() -> None:
    """Titles are what people type."""
    titles = [state.title for state in STATES]
    assert len(set(titles)) == len(titles)
    assert all(state.source for state in STATES)
    assert {state.engine for state in STATES} == {"upstream", "turboquant", "buun", "beellama"}
    assert states_of("nobody") == ()
