"""The page of a finished build as a value: where it is from, how it was made; pure, no markup."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from jobs.dialect.options import Option
from jobs.store.builds import KnownBuild
from web.pages import LogTail, Page


def build(found: KnownBuild, options: Sequence[Option] | None, log: LogTail | None) -> Page:
    """One build with its phases, its tools, what it understands and the end of its log."""
    sections = groupby(options or (), key=lambda option: option.section)
    return Page(
        f"builds/{found.id}.html",
        "build.html",
        f"Build {found.id}",
        {
            "build": found,
            "longest": max((each.seconds for each in found.phases), default=0.0),
            "sections": [(name or "other", list(group)) for name, group in sections],
            "kept": options is not None,
            "log": log,
        },
        uncaged=found.sandbox == "uncaged",
    )
