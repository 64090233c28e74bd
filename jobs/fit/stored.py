"""Shapes, header facts and boots' memory as stored JSON and back; what is damaged is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from jobs.dialect.wire import storable
from jobs.errors import Permanent
from jobs.fit.shape import Shape
from jobs.gguf.facts import ModelFacts
from jobs.model import BootMemory, Layout

Value = TypeVar("Value")

LONGEST_TEXT = 300
LONGEST_LIST = 4096
"""As many layers as a shape may have; no fact has a longer list worth storing."""

_SHAPE = TypeAdapter(Shape)
_FACTS = TypeAdapter(ModelFacts)
_LAYOUT = TypeAdapter(Layout)
_MEMORY = TypeAdapter(BootMemory)


def shape_stored(shape: Shape) -> dict[str, Any]:
    """A shape as JSON."""
    return {**_bounded(_SHAPE.dump_python(shape, mode="json"))}


def facts_stored(facts: ModelFacts) -> dict[str, Any]:
    """Facts as JSON, long texts and lists cut."""
    return {**_bounded(_FACTS.dump_python(facts, mode="json"))}


def shape_in(stored: Mapping[str, Any]) -> Shape:
    """The shape that was stored; raises Permanent where it is none."""
    return _value(_SHAPE, stored)


def layout_in(stored: Mapping[str, Any]) -> Layout:
    """The layout that was stored; raises Permanent where it is none."""
    return _value(_LAYOUT, stored)


def memory_in(stored: Mapping[str, Any]) -> BootMemory:
    """What a boot said; raises Permanent where it is none."""
    return _value(_MEMORY, stored)


def _value(adapter: TypeAdapter[Value], stored: Mapping[str, Any]) -> Value:
    try:
        return adapter.validate_python(stored)
    except ValidationError as fault:
        raise Permanent(
            "a stored row is not as it was written", advice="Fetch or bench the model again."
        ) from fault


def _bounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_bounded(item) for item in value[:LONGEST_LIST]]
    return storable(value[:LONGEST_TEXT] if isinstance(value, str) else value)
