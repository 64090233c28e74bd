"""Reads a watch list whole or not at all: the first wrong word is named with file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from jobs.errors import UsageError, did_you_mean
from jobs.toml_lines import Lines, syntax_fault
from scout.impossible import Beside, impossible
from scout.known import NOTHING, Known
from scout.problem import Problem
from scout.watchlist import (
    BudgetEntry,
    BuildEntry,
    EngineEntry,
    GoldenEntry,
    HubWatchEntry,
    ModelEntry,
    RigEntry,
    RuleEntry,
    StackEntry,
    WatchList,
)

SHIPPED = Path(__file__).parent / "watchlists"
SIZE_LIMIT_BYTES = 1024 * 1024
MOST_TOLD = 20
SEE_GUIDE = "docs/watchlist.md says what each key takes"

_TABLES: dict[tuple[str, ...], type[BaseModel]] = {
    (): WatchList,
    ("engine",): EngineEntry,
    ("engine", "build"): BuildEntry,
    ("model",): ModelEntry,
    ("models",): HubWatchEntry,
    ("stack",): StackEntry,
    ("golden",): GoldenEntry,
    ("rig",): RigEntry,
    ("rule",): RuleEntry,
    ("budget",): BudgetEntry,
}


def shipped(name: str) -> Path:
    """A watch list that comes with forkscout."""
    return SHIPPED / f"{name}.toml"


def load(path: Path, known: Known = NOTHING) -> WatchList:
    """The watch list in a file; a bare word such as `demo` names a shipped one.

    What is `known` here already the list may name without an entry of its own.
    """
    bare = path.name == str(path)
    if bare and (path.is_dir() or not path.exists()) and shipped(path.name).exists():
        path = shipped(path.name)
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT_BYTES + 1)
        if len(content) > SIZE_LIMIT_BYTES:
            raise UsageError(
                f"{path} is no watch list: it is larger than 1 MiB",
                advice="split it: several lists add up",
            )
        text = content.decode("utf-8")
    except OSError as error:
        names = [found.stem for found in SHIPPED.glob("*.toml")]
        raise UsageError(
            f"the watch list {path} cannot be read: {error.strerror}",
            advice=_nearest_list(path, names),
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is no watch list: not UTF-8 text", advice="save it as UTF-8"
        ) from error
    return parse(text, str(path), known)


def parse(text: str, name: str, known: Known = NOTHING) -> WatchList:
    """The watch list in `text`; `name` stands in the message of what is wrong."""
    text = text.replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise syntax_fault(text, name, error) from error
    details: list[ErrorDetails] = []
    try:
        sound, beside = WatchList.model_validate(data), Beside(known)
        problems = list(impossible(sound, beside))
        if not problems:
            return sound
    except ValidationError as error:
        details = error.errors()
        problems = list(_further(data, known))
    raise _told(text, name, details, problems)


def _told(
    text: str, name: str, details: Sequence[ErrorDetails], problems: Sequence[Problem]
) -> UsageError:
    """What is wrong, by line; to find a line takes time, so that only some are looked for."""
    room = max(MOST_TOLD - len(problems), MOST_TOLD // 2)
    shown = [*map(_problem, details[:room]), *problems][:MOST_TOLD]
    left = len(details) + len(problems) - len(shown)
    lines = Lines(text)
    placed = sorted(((lines.of(p.path), p) for p in shown), key=lambda pair: pair[0])
    line, first = placed[0]
    others = {number: problem for number, problem in reversed(placed) if number != line}
    count = len(others) + left
    more = f" (and {count} more)" if count else ""
    told = [f"{name}, line {line}: {first.says}{more}"]
    told += [
        f"  line {at}: {each.says}; {each.advice or SEE_GUIDE}"
        for at, each in sorted(others.items())
    ]
    return UsageError("\n".join(told), advice=first.advice or SEE_GUIDE)


def _further(data: Mapping[str, Any], known: Known) -> Iterator[Problem]:
    """What is impossible among the entries that are sound, where others are not."""
    sound: dict[str, dict[int, Any]] = {}
    names: dict[str, set[str]] = {}
    for table in ("engine", "model", "models", "stack", "golden", "rig", "rule", "budget"):
        kept, listed = sound.setdefault(table, {}), data.get(table)
        for at, entry in enumerate(listed if isinstance(listed, list) else ()):
            with suppress(ValidationError):
                kept[at] = _TABLES[(table,)].model_validate(entry)
            named = entry.get("name") if isinstance(entry, dict) else None
            names.setdefault(table, set()).update([named] if isinstance(named, str) else [])
    own = data.get("scenario")
    written = enumerate(own if isinstance(own, list) else ())
    sound["scenario"] = {at: table for at, table in written if isinstance(table, dict)}
    beside = Beside(known, *(frozenset(names.get(t, ())) for t in ("engine", "model", "stack")))
    entries = {table: tuple(kept.values()) for table, kept in sound.items()}
    places = {table: tuple(kept) for table, kept in sound.items()}
    for each in impossible(WatchList.model_construct(**_by_field(entries)), beside):
        table, at = str(each.path[0]), int(each.path[1])
        yield replace(each, path=(table, places[table][at], *each.path[2:]))


def _by_field(entries: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    fields = WatchList.model_fields.items()
    return {name: entries[field.alias or name] for name, field in fields}


def _nearest_list(path: Path, names: Sequence[str]) -> str:
    shipped_ones = f"shipped lists are {', '.join(sorted(names))}"
    if path.name != str(path):
        return f"check the path; {shipped_ones}"
    near = did_you_mean(path.name, names)
    return f"{near} {shipped_ones}" if near.startswith("did you") else shipped_ones


def _problem(detail: ErrorDetails) -> Problem:
    loc = detail["loc"]
    tables = tuple(step for step in loc[:-1] if isinstance(step, str))
    key = str(loc[-1]) if loc else "file"
    if detail["type"] == "extra_forbidden":
        fields = _TABLES[tables].model_fields
        words = [field.alias or name for name, field in fields.items()]
        return Problem(loc, f"unknown key {key[:80]!r}", did_you_mean(key, words))
    if detail["type"] == "missing":
        return Problem(loc, f"{key!r} is missing", f"add {key} = ...")
    if detail["type"] == "literal_error":
        words = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
        given = str(detail["input"])[:80]
        return Problem(loc, f"{_where(loc)} cannot be {given!r}", did_you_mean(given, words))
    if detail["type"] in ("less_than_equal", "greater_than_equal"):
        says = f"{_where(loc)} cannot be {str(detail['input'])[:80]}"
        return Problem(loc, says, _range_of(tables, key))
    says = str(detail["ctx"]["error"]) if detail["type"] == "value_error" else detail["msg"]
    advice = getattr(detail.get("ctx", {}).get("error"), "advice", "")
    return Problem(loc, f"{_where(loc)}: {says[:1].lower()}{says[1:]}", advice)


def _range_of(tables: tuple[str, ...], key: str) -> str:
    """Both ends of what a number may be, as far as its key has them."""
    fields = _TABLES[tables].model_fields if tables in _TABLES else {}
    bounds = fields[key].metadata if key in fields else []
    low = [each.ge for each in bounds if hasattr(each, "ge")]
    high = [each.le for each in bounds if hasattr(each, "le")]
    return f"write a number from {low[0]} to {high[0]}" if low and high else ""


def _where(loc: Sequence[str | int]) -> str:
    words = [str(step) for step in loc if isinstance(step, str) and step.isidentifier()]
    return ".".join(words) or "the file"
