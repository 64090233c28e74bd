"""Reads llama-server's options out of the source that defines them, before anything is built.

It takes what stands there in plain words, and nothing that is put together when the server runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from jobs.dialect.helptext import REMOVED, values_of
from jobs.dialect.options import Option

ARGUMENTS = "common/arg.cpp"
TYPE_NAMES = "ggml/src/ggml.c"
SPECULATION = "common/speculative.cpp"
SOURCES = (ARGUMENTS, TYPE_NAMES, SPECULATION)
SPECULATION_OPTION = "--spec-type"

TEXT_LIMIT = 2**20  # the longest of them has 0.3 MB
LONGEST_OPTION = 20_000
MOST_OPTIONS = 5_000

# Each pattern takes an unclosed comment or string to its end, so that no text is read twice.
_TOKEN = re.compile(r'//[^\n]*|/\*(?:.*?\*/|.*)|"(?:[^"\\\n]|\\.)*"?', re.DOTALL)
_OPTION = re.compile(r"\badd_opt\(\s*common_arg\(")
_GROUP = re.compile(r"\s*,?\s*\{([^{}]{0,2000})\}")
_SPELLING = re.compile(r'"(--?[A-Za-z0-9][A-Za-z0-9_.-]{0,78})"')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_HINT = re.compile(r'\s*,\s*"((?:[^"\\\n]|\\.)*)"\s*,\s*(?=["A-Za-z])')
_COMPUTED_HINT = re.compile(r"\s*,\s*[a-z_]{1,60}\([^()]{0,60}\)(?:\.c_str\(\))?\s*,\s*(?=[\"s])")
_HANDLER = re.compile(r"\[[^\]]{0,80}\]\s*\(")
_END = re.compile(r";[ \t]*\n {0,4}[^\s]")
_EXAMPLES = re.compile(r"\.set_examples\(\s*\{([^}]{0,2000})\}")
_EXCLUDES = re.compile(r"\.set_excludes\(\s*\{([^}]{0,2000})\}")
_VARIABLE = re.compile(r'\.set_env\(\s*"([A-Z][A-Z0-9_]{1,79})"', re.ASCII)
_CACHE_TYPES = re.compile(r"kv_cache_types\s*=\s*\{([^}]{0,4000})\}")
_TYPE = re.compile(r"\bGGML_TYPE_([A-Z0-9_]{1,70})\b")
_TYPE_NAME = re.compile(
    r'\[GGML_TYPE_([A-Z0-9_]{1,70})\]\s*=\s*\{\s*\.type_name\s*=\s*"([a-z0-9_]{1,40})"'
)
_SPEC_NAMES = re.compile(r"common_speculative_type_from_name_map\s*=\s*\{([^;]{0,4000});")
_SPEC_NAME = re.compile(r'\{\s*"([a-z0-9_-]{1,60})"\s*,\s*COMMON_SPECULATIVE_TYPE_')
_SERVER = re.compile(r"\bLLAMA_EXAMPLE_(?:SERVER|COMMON)\b")


def read_source(texts: Mapping[str, str]) -> tuple[Option, ...]:
    """The server's options as its sources say, by path; a source that is not there says nothing."""
    arguments = _plain(texts.get(ARGUMENTS, ""))
    cache_types = _cache_types(arguments, _plain(texts.get(TYPE_NAMES, "")))
    named = _SPEC_NAMES.search(_plain(texts.get(SPECULATION, "")))
    kinds = tuple(dict.fromkeys(_SPEC_NAME.findall(named[1]))) if named else ()
    found = (_option(piece, cache_types, kinds) for piece in _pieces(arguments))
    return tuple(option for option in found if option is not None)


def _plain(text: str) -> str:
    """The source without comments; a marker inside a string is no comment."""
    return _TOKEN.sub(lambda m: m[0] if m[0].startswith('"') else " ", text[:TEXT_LIMIT])


def _pieces(text: str) -> Iterator[str]:
    """The words of each definition, from its first brace to its end."""
    starts = [found.end() for found in _OPTION.finditer(text)][:MOST_OPTIONS]
    for start, following in pairwise([*starts, len(text)]):
        piece = text[start : min(following, start + LONGEST_OPTION)]
        end = _END.search(piece)
        yield piece[: end.start()] if end else piece


def _option(piece: str, cache_types: tuple[str, ...], kinds: tuple[str, ...]) -> Option | None:
    spellings: list[str] = []
    place = 0
    while group := _GROUP.match(piece, place):
        spellings += _SPELLING.findall(group[1])
        place = group.end()
    if not spellings or not _is_servers(piece):
        return None
    hint = ""
    while found := _HINT.match(piece, place):
        hint = f"{hint} {found[1]}".strip()
        place = found.end() - 1
        if piece[place] != ",":
            place = _back_to_comma(piece, place)
    computed = _COMPUTED_HINT.match(piece, place)
    handler = _HANDLER.search(piece, place)
    words = " ".join(_STRING.findall(piece[place : handler.start() if handler else len(piece)]))
    values = values_of(hint, words)
    if not values and "allowed values: %s" in words:
        values = cache_types
    if not values and computed and SPECULATION_OPTION in spellings:
        values = kinds
    return Option(
        spellings=tuple(dict.fromkeys(spellings)),
        hint=hint,
        values=values,
        env=tuple(dict.fromkeys(_VARIABLE.findall(piece))),
        section=_section(piece),
        removed=REMOVED in words,
    )


def _back_to_comma(piece: str, place: int) -> int:
    return piece.rindex(",", 0, place + 1)


def _is_servers(piece: str) -> bool:
    """Whether the server prints it: all do, but where programs are named and it is not."""
    examples, excludes = _EXAMPLES.search(piece), _EXCLUDES.search(piece)
    if excludes and "LLAMA_EXAMPLE_SERVER" in excludes[1]:
        return False
    return examples is None or bool(_SERVER.search(examples[1]))


def _section(piece: str) -> str:
    if ".set_sparam(" in piece:
        return "sampling"
    if ".set_spec(" in piece:
        return "speculative"
    return "example-specific" if _EXAMPLES.search(piece) else "common"


def _cache_types(arguments: str, types: str) -> tuple[str, ...]:
    """Names of the cache types; none where the names of types are not known."""
    listed = _CACHE_TYPES.search(arguments)
    names = dict(_TYPE_NAME.findall(types))
    wanted = _TYPE.findall(listed[1]) if listed else []
    return tuple(names[each] for each in wanted) if all(w in names for w in wanted) else ()
