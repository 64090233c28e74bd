"""The values a GGUF header consists of; they hold what the file says and refuse to interpret it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from jobs.gguf.tensor_types import stored_bytes


class ValueType(IntEnum):
    """The type of a value, by its number in the file."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


Scalar = bool | int | float | str


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """The first items of an array, and how many there are in the file."""

    element: ValueType
    length: int
    items: tuple[Scalar, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every item was kept."""
        return len(self.items) == self.length


Value = Scalar | ArrayValue


@dataclass(frozen=True, slots=True)
class Tensor:
    """One line of the tensor table; `offset` counts from the start of the data."""

    name: str
    dims: tuple[int, ...]
    type_id: int
    offset: int

    @property
    def elements(self) -> int:
        """How many values it holds."""
        return math.prod(self.dims)

    @property
    def size_bytes(self) -> int | None:
        """Its bytes in the file; None where the type is not known."""
        return stored_bytes(self.type_id, self.elements)


@dataclass(frozen=True)
class Header:
    """What was read of one file's header.

    `tensors` and `data_offset` are None where reading stopped before the end of the tensor table;
    `complete` says that all of the header was read; `keys_end` and `table_end` are the first bytes
    behind the keys and behind the tensor table, where reading came so far. Text is as the file has
    it: show it to people through `jobs.terminal.printable` only.
    """

    version: int
    tensor_count: int
    kv_count: int
    keys: Mapping[str, Value]
    tensors: tuple[Tensor, ...] | None
    data_offset: int | None
    size_bytes: int | None
    bytes_read: int
    requests: int
    keys_end: int | None = None
    table_end: int | None = None

    @property
    def has_all_keys(self) -> bool:
        """Whether every key was read: only then does a missing one mean anything."""
        return len(self.keys) == self.kv_count

    @property
    def complete(self) -> bool:
        """Whether the header was read to its end."""
        return self.tensors is not None

    @property
    def data_bytes(self) -> int | None:
        """The bytes behind the header, padding among them, where both ends are known."""
        if self.size_bytes is None or self.data_offset is None:
            return None
        return max(self.size_bytes - self.data_offset, 0)

    @property
    def trailing_bytes(self) -> int | None:
        """What lies behind the last tensor; None where a size is not known."""
        if self.data_bytes is None or self.tensors is None:
            return None
        ends = [(each.offset, each.size_bytes) for each in self.tensors]
        if any(size is None for _, size in ends):
            return None
        return self.data_bytes - max((start + (size or 0) for start, size in ends), default=0)
