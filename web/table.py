"""The leaderboard as text for a terminal; strangers' text is never read as markup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jobs.model import Validity
from web.ranking import Board, Ranked
from web.render import change
from web.words import spoken

EMPTY = (
    "Nothing has been measured yet. Run `make demo`, or ask for a result: "
    "forkscout submit bench --engine ENGINE --ref REF --rig cpu"
)


def leaderboard(
    boards: Sequence[Board], *, now: datetime, clean: Callable[[str], str]
) -> RenderableType:
    """One table for each group; readable in 80 columns."""
    if not boards:
        return Text(EMPTY)
    return Group(*(_table(board, now=now, clean=clean) for board in boards))


def _table(board: Board, *, now: datetime, clean: Callable[[str], str]) -> Table:
    group = board.group
    filled = f", {group.filled_tokens} filled" if group.filled_tokens else ""
    title = (
        f"{group.model_class} on {group.rig}, "
        f"context {group.context_tokens} tokens{filled}, {group.scenario}"
    )
    table = Table(
        title=Text(clean(title)),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("#", no_wrap=True)
    table.add_column("engine, revision", overflow="fold", min_width=15)
    table.add_column("t/s [boots]", justify="right", min_width=9)
    table.add_column("to leader", justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold", min_width=11)
    table.add_column("sandbox", min_width=8, no_wrap=True)
    table.add_column("age", justify="right", no_wrap=True)
    for line in board.lines:
        entry = line.entry
        table.add_row(
            Text(line.place or "-"),
            Text(clean(f"{entry.engine} {entry.label}")),
            Text(_speed(line)),
            Text(_distance(line)),
            Text(clean(_says(line))),
            Text(_cage(entry.sandbox), style="yellow" if entry.uncaged else ""),
            Text(age((now - entry.measured_at).total_seconds())),
        )
    return table


def age(seconds: float) -> str:
    """The largest whole unit: `3 h`, `12 d`."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return "now"


def _speed(line: Ranked) -> str:
    entry = line.entry
    if not entry.decode_tps:
        return "no data"
    if entry.spread is None:
        return f"{entry.decode_tps:.1f}"
    low, high = entry.spread
    return f"{entry.decode_tps:.1f} [{low:.1f}-{high:.1f}]"


def _distance(line: Ranked) -> str:
    if line.rank is None:
        return "-"
    return "leader" if line.against_leader is None else change(line.against_leader)


def _says(line: Ranked) -> str:
    entry = line.entry
    if entry.validity is not Validity.OK:
        reason = f": {entry.validity_reason}" if entry.validity_reason else ""
        return f"not ranked, {spoken(entry.validity)}{reason}"
    return spoken(entry.verdict.kind) if entry.verdict else "not judged"


def _cage(sandbox: str) -> str:
    return {"bubblewrap": "bwrap"}.get(sandbox, sandbox or "none")
