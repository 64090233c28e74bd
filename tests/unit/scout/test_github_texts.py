"""Strangers' words become harmless values."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.github.texts import moment, number, part, plain, repo_name


@given(st.text() | st.none() | st.integers(), st.integers(1, 50))
def test_plain_text_is_one_short_line_of_visible_characters(value: object, most: int) -> None:
    """Whatever comes in, no control character and no line end comes out."""
    text = plain(value, most)
    assert len(text) <= most
    assert text.isprintable()


def test_terminal_codes_and_direction_marks_are_taken_out() -> None:
    """They could rewrite what a person reads."""
    assert plain("a\x1b[31mred\x00\u202egnp.exe\u200b") == "a [31mred gnp.exe"
    assert plain("x" * 200, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    "name",
    ["../etc", "a/..", "-a/b", "a/b/c", "a/b.git", "a b/c", "ä/b", "a/--upload-pack=x", "", 7, None,
     "a/b\n", "https://x/y"],
)  # fmt: skip
def test_names_git_could_not_be_asked_for_are_refused(name: object) -> None:
    """The same pattern as for git itself."""
    assert repo_name(name) is None


def test_good_values_pass() -> None:
    """And what only looks like them does not."""
    assert repo_name("Anbeeld/beellama.cpp") == "Anbeeld/beellama.cpp"
    assert number(2**70) is None
    assert number(True) is None
    assert number(-1) is None
    assert number(5) == 5
    assert moment("2026-05-01T00:00:00Z") is not None
    assert moment("2026-05-01T00:00:00") is None
    assert moment("soon") is None
    assert moment("2026-05-01T00:00:00+02:00") == datetime(2026, 4, 30, 22, tzinfo=UTC)
    assert part({"owner": None}, "owner", "login") is None


@pytest.mark.parametrize(
    "text",
    ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+14:00", "2026-13-45T00:00:00Z",
     "2026-05-01T00:00:00." + "1" * 5000 + "Z", "\ud800"],
)  # fmt: skip
def test_a_time_that_no_calendar_holds_is_none(text: str) -> None:
    """Also one that leaves the calendar only once its zone is taken away."""
    assert moment(text) is None
