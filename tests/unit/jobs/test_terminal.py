"""What strangers wrote never drives a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.terminal import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07after", "after"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("one\rtwo\x08\x9b2J", "onetwo2J"),
        ("user\u202egnp.exe\u2066", "usergnp.exe"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("Grüße, 世界", "Grüße, 世界"),
    ],
)
def test_only_what_is_read_stays(text: str, shown: str) -> None:
    """Colours, titles, links, cursor moves and marks that reorder are gone; words stay."""
    assert printable(text) == shown


@given(st.text())
def test_no_control_character_survives(text: str) -> None:
    """Whatever comes in, a terminal gets signs, tabs and line ends."""
    assert all(c.isprintable() or c in "\n\t" for c in printable(text))
