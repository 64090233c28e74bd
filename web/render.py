"""Page values to HTML through Jinja2; every text is escaped, and nothing private passes."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeGuard

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from web import words
from web.pages import Page

FOLDER = Path(__file__).parent
NO_DATA = "no data"
# Beyond three times, percent mislead: a factor is told, too.
FACTOR_FROM = 3.0


class Renderer:
    """Turns pages into HTML; `clean` sees every text before it is escaped."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        def finalize(value: Any) -> Any:
            if value is None:
                return NO_DATA
            if isinstance(value, str) and not isinstance(value, Markup):
                return clean(str(value))
            return value

        self._environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=finalize,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(FILTERS)

    def html(self, page: Page, *, now: datetime) -> str:
        """The page as a complete document."""
        return self._environment.get_template(page.template).render(
            page=page, root=page.root, now=now, **page.values
        )


def tps(value: float | None) -> str:
    """Tokens per second."""
    return _number(value, "t/s", digits=1)


def milliseconds(value: float | None) -> str:
    return _number(value, "ms", digits=1)


def seconds(value: float | None) -> str:
    """Seconds, and minutes where there are many."""
    if not _is_number(value):
        return NO_DATA
    if value < 120:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def size(value: float | None) -> str:
    """Bytes in decimal units."""
    if not _is_number(value):
        return NO_DATA
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def share(value: float | None) -> str:
    """A fraction as percent."""
    return NO_DATA if not _is_number(value) else f"{value * 100:.1f} %"


def change(value: float | None) -> str:
    """A relative change, signed; a large one is a factor first."""
    if not _is_number(value):
        return NO_DATA
    percent = f"{value * 100:+.1f} %".replace("-", "\N{MINUS SIGN}")
    if value + 1 >= FACTOR_FROM:
        return f"{value + 1:.1f}\N{MULTIPLICATION SIGN} ({percent})"
    return percent


def moment(value: datetime | None) -> str:
    """A moment in UTC, readable by people and programs."""
    if value is None:
        return NO_DATA
    return Markup('<time datetime="{}">{} UTC</time>').format(
        value.isoformat(timespec="seconds"), value.strftime("%Y-%m-%d %H:%M")
    )


def day(value: datetime | None) -> str:
    """The day of a moment in UTC."""
    if value is None:
        return NO_DATA
    return Markup('<time datetime="{}">{}</time>').format(
        value.isoformat(timespec="seconds"), value.strftime("%Y-%m-%d")
    )


def counted(value: int | None, noun: str, nouns: str = "") -> str:
    """`1 run`, `3 runs`; `nouns` where an s alone makes no plural."""
    if value is None:
        return NO_DATA
    return f"{value} {noun}" if value == 1 else f"{value} {nouns or f'{noun}s'}"


def short(digest: str) -> str:
    """The first ten signs of a digest."""
    return digest[:10]


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _number(value: float | None, unit: str, *, digits: int) -> str:
    return f"{value:.{digits}f} {unit}" if _is_number(value) else NO_DATA


FILTERS: dict[str, Callable[..., str]] = {
    "tps": tps,
    "milliseconds": milliseconds,
    "seconds": seconds,
    "size": size,
    "share": share,
    "change": change,
    "moment": moment,
    "counted": counted,
    "day": day,
    "short": short,
    "spoken": words.spoken,
}
