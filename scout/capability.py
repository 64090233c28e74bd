"""What an engine can do, read out of four of its sources without building it; pure and bounded.

It knows names only. Type numbers are not compared: the same number, and the same name, means
another format in another fork.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

ARGUMENTS = "common/arg.cpp"
TYPES = "ggml/include/ggml.h"
ARCHITECTURES = "src/llama-arch.cpp"
SPECULATION = "common/speculative.cpp"
SOURCES = (ARGUMENTS, TYPES, ARCHITECTURES, SPECULATION)

TEXT_LIMIT = 2**20  # the longest of them has 0.2 MB
NAMES_LIMIT = 5_000
SHOWN_LIMIT = 200

# Each pattern takes an unclosed comment or string to its end, so that no text is read twice.
_TOKEN = re.compile(r'//[^\n]*|/\*(?:.*?\*/|.*)|"(?:[^"\\\n]|\\.)*"?', re.DOTALL)
_FLAG = re.compile(r'"(--?[A-Za-z][A-Za-z0-9_-]{0,78})"')
_SPEC_TYPES = re.compile(r'"--spec-type"[^;]{0,200}?"\[?([a-z0-9-]+(?:[|,] ?[a-z0-9-]+)+)\]?"')
_SPEC_NAMES = re.compile(r"common_speculative_type_from_name_map\s*=\s*\{([^;]{0,2000});")
_SPEC_NAME = re.compile(r'\{\s*"([a-z0-9_-]{1,60})"\s*,\s*COMMON_SPECULATIVE_TYPE_')
_CACHE_TYPES = re.compile(r"kv_cache_types\s*=\s*\{([^}]{0,4000})\}")
_TYPE = re.compile(r"\bGGML_TYPE_([A-Z0-9_]{1,70})\b")
_ENUMERATOR = re.compile(r"\bGGML_TYPE_([A-Z0-9_]{1,70})\s*[=,}]")
_ARCHITECTURE = re.compile(r'\{\s*LLM_ARCH_[A-Z0-9_]{1,70}\s*,\s*"([A-Za-z0-9._-]{1,80})"\s*\}')


@dataclass(frozen=True)
class Capability:
    """Names of what is understood; a set is empty where the source does not say it plainly."""

    flags: frozenset[str] = frozenset()
    ggml_types: frozenset[str] = frozenset()
    cache_types: frozenset[str] = frozenset()
    spec_types: frozenset[str] = frozenset()
    archs: frozenset[str] = frozenset()

    def beyond(self, base: Capability) -> Capability:
        """What is here and not in `base`; nothing of a kind of which `base` says nothing."""
        return Capability(
            **{
                name: mine - theirs if theirs else frozenset()
                for name, mine, theirs in _pairs(self, base)
            }
        )

    def added(self) -> dict[str, list[str]]:
        """Sorted names by kind, a bounded number of each."""
        return {
            f"{field.name}_added": sorted(getattr(self, field.name))[:SHOWN_LIMIT]
            for field in fields(self)
        }

    def words(self) -> list[str]:
        """Everything as one sorted list, each name with its kind."""
        return sorted(
            f"{field.name}:{name}" for field in fields(self) for name in getattr(self, field.name)
        )


def read_capability(texts: Mapping[str, str]) -> Capability:
    """What the sources say, by path; a source that is not there says nothing.

    Speculation types are the ones that the option itself lists. Where it lists none, because it
    puts the list together when it runs, they are the names which the source turns into a type.
    """
    arguments = _plain(texts.get(ARGUMENTS, ""))
    cache = _CACHE_TYPES.search(arguments)
    spec = _SPEC_TYPES.search(arguments)
    named = _SPEC_NAMES.search(_plain(texts.get(SPECULATION, "")))
    spec_types: frozenset[str] = frozenset()
    if spec is not None:
        spec_types = frozenset(re.split(r"[|,] ?", spec[1]))
    elif named is not None:
        spec_types = _names(_SPEC_NAME.finditer(named[1]))
    types = _names(_ENUMERATOR.finditer(_plain(texts.get(TYPES, ""))))
    return Capability(
        flags=_names(_FLAG.finditer(arguments)),
        ggml_types=types - {"COUNT"},
        cache_types=_names(_TYPE.finditer(cache[1])) if cache else frozenset(),
        spec_types=spec_types - {"none"},
        archs=_names(_ARCHITECTURE.finditer(_plain(texts.get(ARCHITECTURES, "")))),
    )


def _plain(text: str) -> str:
    """The source without comments; a marker inside a string is no comment."""
    return _TOKEN.sub(_string_or_space, text[:TEXT_LIMIT])


def _string_or_space(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else " "


def _names(found: Iterable[re.Match[str]]) -> frozenset[str]:
    names: set[str] = set()
    for match in found:
        names.add(match[1])
        if len(names) == NAMES_LIMIT:
            break
    return frozenset(names)


def _pairs(
    one: Capability, other: Capability
) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    for field in fields(one):
        yield field.name, getattr(one, field.name), getattr(other, field.name)
