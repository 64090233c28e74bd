"""Reads llama-server's `--help` into Flags; text of another shape gives none, no exception."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.model import Flags

LONGEST_HELP = 1_000_000  # characters; the largest known help text has 60,000
HELP_COLUMN = 40
SPELLING = re.compile(r"-{1,2}[A-Za-z0-9][A-Za-z0-9_.-]*")
REMOVED = "the argument has been removed"
BRACKETED = re.compile(r"^[\[{<]([a-z0-9_+-]+(?:[|,][a-z0-9_+-]+)+)[\]}>]")
LISTED = re.compile(r"^[a-z0-9_-]+(?:,[a-z0-9_-]+)+$")
LEVEL = re.compile(r"(?:^| )- ([0-9]{1,2}): ([a-z]{1,20})(?= |$)", re.ASCII)
VERBOSITY = frozenset({"-lv", "--verbosity", "--log-verbosity"})
ALLOWED = re.compile(r"allowed values: ([a-z0-9_.+-]+(?:, +[a-z0-9_.+-]+)*)")


def read_help(text: str) -> Flags:
    """Spellings, allowed values, removed spellings and log levels of a `--help` text."""
    names: set[str] = set()
    removed: set[str] = set()
    choices: dict[str, tuple[str, ...]] = {}
    levels: dict[str, str] = {}
    for spellings, hint, words in _options(text[:LONGEST_HELP]):
        if REMOVED in words:
            removed.update(spellings)
            continue
        names.update(spellings)
        if VERBOSITY.intersection(spellings):
            levels.update((word, number) for number, word in LEVEL.findall(words))
        values = _values(hint, words)
        if values:
            choices.update(dict.fromkeys(spellings, values))
    return Flags(frozenset(names), choices, frozenset(removed - names), levels)


def _options(text: str) -> Iterator[tuple[list[str], str, str]]:
    """Each option's spellings, its value hint and its help in one line."""
    option: tuple[list[str], str, list[str]] | None = None
    for line in text.splitlines():
        if line.startswith("-") and not line.startswith("-----"):
            if option:
                yield option[0], option[1], " ".join(option[2])
            left, right = line, ""
            if line[HELP_COLUMN - 1 : HELP_COLUMN] == " ":
                left, right = line[:HELP_COLUMN], line[HELP_COLUMN:]
            spellings, hint = _spellings(left)
            option = (spellings, hint, [right.strip()])
        elif option and line.startswith(" " * HELP_COLUMN):
            option[2].append(line.strip())
    if option:
        yield option[0], option[1], " ".join(option[2])


def _spellings(left: str) -> tuple[list[str], str]:
    spellings: list[str] = []
    rest = left
    while match := SPELLING.match(rest):
        spellings.append(match[0])
        rest = rest[match.end() :]
        following = rest.lstrip(", ")
        if not rest.startswith(",") or not following.startswith("-"):
            break
        rest = following
    return spellings, rest.strip()


def _values(hint: str, words: str) -> tuple[str, ...]:
    if match := BRACKETED.match(hint):
        return tuple(re.split(r"[|,]", match[1]))
    if LISTED.match(hint):
        return tuple(hint.split(","))
    if match := ALLOWED.search(words):
        return tuple(re.split(r", +", match[1]))
    return ()
