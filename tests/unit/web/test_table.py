"""The leaderboard in a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from support.entries import entry
from support.rows import NOON

from jobs.model import Validity
from web.ranking import boards
from web.redact import visible
from web.table import age, leaderboard


def _printed(*entries) -> str:
    found = boards(entries, lambda _l, _r: True)
    console = Console(file=StringIO(), width=80)
    console.print(leaderboard(found, now=NOON, clean=visible))
    return console.file.getvalue()


def test_eighty_columns_hold_all_columns() -> None:
    """Rank, speed with boots, distance, verdict, cage and age are all there."""
    text = _printed(
        entry(decode_tps=106.67, engine="beellama-with-name", sandbox="uncaged"), entry()
    )
    assert max(map(len, text.splitlines())) <= 80
    for part in ("106.7", "[66.2-67.0]", "leader", "37.8 %", "same", "uncaged", "bwrap", "now"):
        assert part in text


def test_strangers_markup_is_text() -> None:
    """Square brackets and colour codes of a name do not style the table."""
    text = _printed(entry(engine="[red]a[/red]", label="\x1b[31mb"))
    assert "[red]a[/red]" in text
    assert "\x1b" not in text


def test_what_does_not_rank_says_why() -> None:
    """An invalid result has its reason instead of a rank."""
    text = _printed(entry(validity=Validity.TAINTED, validity_reason="busy"))
    assert "tainted" in text
    assert "busy" in text


def test_an_empty_board_says_what_to_do() -> None:
    """Nothing measured is one sentence, not an empty table."""
    assert "make demo" in _printed()


def test_ages_are_whole_units() -> None:
    """The largest unit that fits."""
    assert [age(s) for s in (5, 120, 7300, 200_000)] == ["now", "2 min", "2 h", "2 d"]
