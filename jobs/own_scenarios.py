"""Scenarios that a user writes as `[[scenario]]` in TOML; one wrong word refuses all of them."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobs import prompts
from jobs.errors import UsageError, did_you_mean
from jobs.scenarios import SHIPPED, Scenario, scenario_named
from jobs.toml_lines import Lines, syntax_fault

MOST_SCENARIOS = 100
MOST_BYTES = 2**20
MOST_TOKENS = 65_536
MOST_FILLED = 2_000_000
LONGEST_PROMPT = 200_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)
NAMED_WORD = re.compile(r"\w{1,40}")
ENDPOINTS = ("chat", "completion", "filled")
TABLE = "scenario"


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a table: at which key, and what would be right."""

    key: str
    says: str
    advice: str


@dataclass(frozen=True)
class _Whole:
    """A whole number from `least` to `most`."""

    least: int
    most: int

    def wrong(self, value: Any) -> str:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if is_whole and self.least <= value <= self.most:
            return ""
        return f"write a whole number from {self.least} to {self.most}"


@dataclass(frozen=True)
class _Number:
    """A finite number from 0 to `most`."""

    most: float

    def wrong(self, value: Any) -> str:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and math.isfinite(value) and 0 <= value <= self.most:
            return ""
        return f"write a number from 0 to {self.most:g}"


@dataclass(frozen=True)
class _Text:
    """A text that fits a pattern, or any of at most `most` characters."""

    pattern: re.Pattern[str] | None = None
    most: int = 200

    def wrong(self, value: Any) -> str:
        if not isinstance(value, str):
            return "write a text in quotes"
        if self.pattern is not None:
            fits = self.pattern.fullmatch(value)
            return "" if fits else "write letters, digits and . _ -, 40 at most"
        if not value.strip() or len(value) > self.most or "\x00" in value:
            return f"write a text of 1 to {self.most} characters"
        return ""


@dataclass(frozen=True)
class _OneOf:
    """One of these words."""

    words: tuple[str, ...]

    def wrong(self, value: Any) -> str:
        if not isinstance(value, str):
            return "write a text in quotes"
        return "" if value in self.words else did_you_mean(value[:80], self.words)


@dataclass(frozen=True)
class _Switch:
    """Yes or no."""

    def wrong(self, value: Any) -> str:
        return "" if isinstance(value, bool) else "write true or false"


@dataclass(frozen=True)
class _Depths:
    """The rungs of a ladder."""

    def wrong(self, value: Any) -> str:
        one = _Whole(1, MOST_FILLED)
        if isinstance(value, list) and 1 <= len(value) <= 32 and not any(map(one.wrong, value)):
            return "" if len(set(value)) == len(value) else "write each depth once"
        return f"write a list of whole numbers from 1 to {MOST_FILLED}"


KEYS: Mapping[str, Any] = {
    "name": _Text(NAME),
    "version": _Whole(1, 1_000_000),
    "endpoint": _OneOf(ENDPOINTS),
    "prompt": _Text(most=LONGEST_PROMPT),
    "tokens": _Whole(2, MOST_TOKENS),
    "runs": _Whole(1, 1000),
    "boots": _Whole(1, 100),
    "temperature": _Number(10.0),
    "top_k": _Whole(0, 1_000_000),
    "top_p": _Number(1.0),
    "min_p": _Number(1.0),
    "seed": _Whole(0, 2**31 - 1),
    "filled_tokens": _Whole(1, MOST_FILLED),
    "depths": _Depths(),
    "thinking": _Switch(),
    "picture": _OneOf(prompts.PICTURES),
    "names": _Text(NAMED_WORD),
}
LEFT_OUT = ("prompt", "filled_tokens", "depths", "thinking", "picture", "names")
"""Keys that stand in no table where they say nothing."""
NEEDED = ("name", "version", "tokens")
DEFAULTS: Mapping[str, Any] = {"endpoint": "chat", "prompt": "", "runs": 5, "boots": 3}


def faults(
    table: Mapping[str, Any], *, taken: Collection[str] = frozenset(SHIPPED)
) -> Iterator[Fault]:
    """Everything that is wrong with one `[[scenario]]`, key by key and then together.

    `taken` are names it may not have.
    """
    found = False
    for key, value in table.items():
        if key not in KEYS:
            found = True
            yield Fault(key, f"unknown key {key[:80]!r}", did_you_mean(key, KEYS))
        elif advice := KEYS[key].wrong(value):
            found = True
            yield Fault(key, f"{key} cannot be {str(value)[:80]!r}", advice)
    for key in NEEDED:
        if key not in table:
            found = True
            yield Fault(key, f"{key!r} is missing", f"add {key} = ...")
    if not found:
        yield from _together(table, taken)


def _together(table: Mapping[str, Any], taken: Collection[str]) -> Iterator[Fault]:
    name = table["name"]
    if name in taken:
        yield Fault("name", f"{name!r} is a shipped scenario", "give yours a name of its own")
    if table.get("endpoint", "chat") == "filled":
        if ("filled_tokens" in table) == ("depths" in table):
            yield Fault(
                "endpoint",
                "a filled context needs its depth once",
                "give filled_tokens, or depths for a ladder",
            )
        for key in ("prompt", "picture", "names", "thinking"):
            if key in table:
                says = f"{key!r} beside endpoint = 'filled', whose text is made at run time"
                yield Fault(key, says, "leave it out")
        return
    for key in ("filled_tokens", "depths"):
        if key in table:
            yield Fault(key, f"{key!r} without a filled context", "add endpoint = 'filled'")
    if "prompt" not in table:
        yield Fault("prompt", "'prompt' is missing", "add prompt = ...")
    if table.get("endpoint") == "completion":
        for key in ("picture", "thinking"):
            if key in table:
                yield Fault(key, f"{key!r} beside endpoint = 'completion'", "use endpoint = 'chat'")
    if ("picture" in table) != ("names" in table):
        says = "a picture and the word its answer must hold go together"
        yield Fault("picture" if "picture" in table else "names", says, "give both, or neither")


def made(table: Mapping[str, Any]) -> Scenario:
    """The scenario of a table without faults."""
    values = {**DEFAULTS, **table}
    values["depths"] = tuple(values.get("depths", ()))
    for key in ("temperature", "top_p", "min_p"):
        if key in values:
            values[key] = float(values[key])
    return Scenario(**values, own=True)


def table_of(scenario: Scenario) -> dict[str, Any]:
    """What `made` turns back into this scenario; empty for a shipped one."""
    if not scenario.own:
        return {}
    values = {**asdict(scenario), "depths": list(scenario.depths)}
    return {
        key: value
        for key, value in values.items()
        if key in KEYS and (value or key not in LEFT_OUT)
    }


def asked_by(name: str, table: Mapping[str, Any]) -> Scenario:
    """The scenario of a job: a shipped one by its name, an own one by all of its words.

    A later release may ship one of the same name: the stored words stay what they were.
    """
    if not table:
        return scenario_named(name)
    fault = next(faults(table, taken=()), None)
    if fault is not None:
        raise UsageError(f"scenario {name[:80]!r}: {fault.says}", advice=fault.advice)
    return made(table)


def load(path: Path) -> dict[str, Scenario]:
    """The scenarios of a file on disk, as `read`."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise UsageError(f"{path} is larger than 1 MiB", advice="Split it.")
        return read(content.decode("utf-8"), str(path))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", advice="Name a TOML file."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text", advice="Save it as UTF-8.") from error


def read(text: str, name: str) -> dict[str, Scenario]:
    """The scenarios of a file by name; `name` is the file's. Raises UsageError with the line."""
    text = text.replace("\r\n", "\n")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise syntax_fault(text, name, error) from error
    lines = Lines(text)
    for key in data:
        if key != TABLE:
            at = lines.of([key])
            raise UsageError(
                f"{name}, line {at}: unknown table {key[:80]!r}",
                advice=f"a file of scenarios holds [[{TABLE}]] alone",
            )
    tables = data.get(TABLE)
    is_list = isinstance(tables, list) and all(isinstance(each, dict) for each in tables)
    if not tables or not is_list or len(tables) > MOST_SCENARIOS:
        raise UsageError(
            f"{name}, line 1: it holds no list of 1 to {MOST_SCENARIOS} scenarios",
            advice=f"begin each with [[{TABLE}]]",
        )
    known: dict[str, Scenario] = {}
    for at, table in enumerate(tables):
        fault = next(faults(table), None)
        if fault is None and table["name"] in known:
            fault = Fault("name", f"a second scenario {table['name']!r}", "keep one of them")
        if fault is not None:
            line = lines.of([TABLE, at, fault.key])
            raise UsageError(f"{name}, line {line}: {fault.says}", advice=fault.advice)
        known[table["name"]] = made(table)
    return known
