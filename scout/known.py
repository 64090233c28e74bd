"""What a watch list may name because it is known here already; it reads no file and no row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Known:
    """Names of the database: engines with their parents and with the rigs that they are built for,
    model files with their roles, stacks with their engines, rigs, and classes of models."""

    parents: Mapping[str, str | None] = field(default_factory=dict)
    built: Mapping[str, frozenset[str]] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    stacks: Mapping[str, str] = field(default_factory=dict)
    rigs: frozenset[str] = frozenset()
    model_classes: frozenset[str] = frozenset()


NOTHING = Known()
