"""What strangers wrote never drives a terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.terminal import counted, json_text, printable


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


def test_one_is_singular() -> None:
    """Whatever is counted; a plural without s is given."""
    assert [counted(n, "fork") for n in (0, 1, 2)] == ["0 forks", "1 fork", "2 forks"]
    assert [counted(n, "patch", "patches") for n in (1, 2)] == ["1 patch", "2 patches"]


def test_moments_have_a_t_in_json_and_no_number_is_none() -> None:
    """What every `--json` prints is strict JSON."""
    moment = datetime(2026, 4, 21, 14, 24, 55, tzinfo=UTC)
    assert json.loads(json_text({"at": moment})) == {"at": "2026-04-21T14:24:55+00:00"}
    with pytest.raises(ValueError, match="JSON compliant"):
        json_text(float("nan"))
