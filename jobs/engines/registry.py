"""Every engine family we can drive, by its name in a watch list; nothing is found by magic."""

from __future__ import annotations

from jobs.engines import llama_cpp, xllamacpp
from jobs.engines.base import Engine
from jobs.errors import UsageError

FAMILIES: dict[str, Engine] = {
    llama_cpp.FAMILY: llama_cpp,
    xllamacpp.FAMILY: xllamacpp,
}


def family(name: str) -> Engine:
    """The module of one family; an unknown name is the caller's mistake."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise UsageError(
            f"unknown engine family {name!r}", advice=f"Known: {', '.join(sorted(FAMILIES))}."
        ) from None
