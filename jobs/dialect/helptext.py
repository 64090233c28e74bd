"""Reads llama-server's `--help` into options; text of another shape gives none, no exception."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.dialect.options import Option, flags_of
from jobs.model import Flags

LONGEST_HELP = 1_000_000  # characters; the largest known help text has 60,000
HELP_COLUMN = 40
SPELLING = re.compile(r"-{1,2}[A-Za-z0-9][A-Za-z0-9_.-]*")
REMOVED = "the argument has been removed"
SECTION = re.compile(r"-----\s+([a-z][a-z -]{0,40}?)(?: params)?\s+-----")
BRACKETED = re.compile(r"^[\[{<]([a-z0-9_+-]+(?:[|,][a-z0-9_+-]+)+)[\]}>]")
LISTED = re.compile(r"^[a-z0-9_-]+(?:,[a-z0-9_-]+)+$")
LEVEL = re.compile(r"(?:^| )- ([0-9]{1,2}): ([a-z]{1,20})(?= |$)", re.ASCII)
VERBOSITY = frozenset({"-lv", "--verbosity", "--log-verbosity"})
ALLOWED = re.compile(r"allowed values: ([a-z0-9_.+-]+(?:, +[a-z0-9_.+-]+)*)")
VARIABLE = re.compile(r"\(env: ([A-Z][A-Z0-9_]{1,79})\)", re.ASCII)
DEFAULT = re.compile(r"\(default: ([^()]{1,80})\)")


def read_help(text: str) -> Flags:
    """Spellings, allowed values, removed spellings and log levels of a `--help` text."""
    found = list(_options(text[:LONGEST_HELP]))
    levels: dict[str, str] = {}
    for option, words in found:
        if not option.removed and VERBOSITY.intersection(option.spellings):
            levels.update((word, number) for number, word in LEVEL.findall(words))
    return flags_of((option for option, _ in found), log_levels=levels)


def read_options(text: str) -> tuple[Option, ...]:
    """All that a `--help` text says of each option."""
    return tuple(option for option, _ in _options(text[:LONGEST_HELP]))


def _options(text: str) -> Iterator[tuple[Option, str]]:
    """Each option with its help in one line."""
    for section, spellings, hint, words in _entries(text):
        default = DEFAULT.search(words)
        yield (
            Option(
                spellings=tuple(spellings),
                hint=hint,
                values=values_of(hint, words),
                env=tuple(dict.fromkeys(VARIABLE.findall(words))),
                section=section,
                default=default[1].strip("'\"") if default else "",
                removed=REMOVED in words,
            ),
            words,
        )


def _entries(text: str) -> Iterator[tuple[str, list[str], str, str]]:
    """Section, spellings, value hint and help of each option."""
    section = ""
    option: tuple[str, list[str], str, list[str]] | None = None
    for line in text.splitlines():
        if line.startswith("-----"):
            heading = SECTION.fullmatch(line.rstrip())
            section = heading[1] if heading else section
        elif line.startswith("-"):
            if option:
                yield (*option[:3], " ".join(option[3]))
            left, right = line, ""
            if line[HELP_COLUMN - 1 : HELP_COLUMN] == " ":
                left, right = line[:HELP_COLUMN], line[HELP_COLUMN:]
            spellings, hint = _spellings(left)
            option = (section, spellings, hint, [right.strip()])
        elif option and line.startswith(" " * HELP_COLUMN):
            option[3].append(line.strip())
    if option:
        yield (*option[:3], " ".join(option[3]))


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


def values_of(hint: str, words: str) -> tuple[str, ...]:
    """Every value that the option takes; empty where neither hint nor help lists them."""
    if match := BRACKETED.match(hint):
        return tuple(re.split(r"[|,]", match[1]))
    if LISTED.match(hint):
        return tuple(hint.split(","))
    if match := ALLOWED.search(words):
        return tuple(re.split(r", +", match[1]))
    return ()
