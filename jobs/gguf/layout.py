"""Whether the tensors of a header can lie in the file as it says; knows nothing of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.errors import BadGguf
from jobs.gguf import limits
from jobs.gguf.header import Tensor, Value
from jobs.gguf.tensor_types import TENSOR_TYPES
from jobs.terminal import printable

ALIGNMENT_KEY = "general.alignment"
USUAL_ALIGNMENT = 32


def alignment_of(keys: Mapping[str, Value]) -> int:
    """On which multiples data starts."""
    value = keys.get(ALIGNMENT_KEY, USUAL_ALIGNMENT)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadGguf("its alignment is no number")
    if not 0 < value <= limits.ALIGNMENT or value & (value - 1):
        raise BadGguf(f"its alignment {value} is no power of two up to {limits.ALIGNMENT}")
    return value


def data_start(keys: Mapping[str, Value], header_end: int) -> int:
    """The first byte of the tensors' data."""
    alignment = alignment_of(keys)
    return -(-header_end // alignment) * alignment


def verify_layout(tensors: Sequence[Tensor], data_offset: int, size_bytes: int | None) -> None:
    """Raise where two tensors share bytes, one is torn, or one ends behind the file.

    A tensor of an unknown type has no known end: only its start is checked.
    """
    end, before = 0, ""
    for tensor in sorted(tensors, key=lambda each: each.offset):
        name = printable(tensor.name)
        known = TENSOR_TYPES.get(tensor.type_id)
        if known and tensor.dims and tensor.dims[0] % known.block_elements:
            raise BadGguf(f"a row of {name!r} is no whole number of {known.name} blocks")
        if tensor.offset < end:
            raise BadGguf(f"the tensors {before!r} and {name!r} overlap")
        end, before = tensor.offset + (tensor.size_bytes or 0), name
        if size_bytes is not None and data_offset + end > size_bytes:
            raise BadGguf(
                f"the file is cut short: {name!r} reaches byte {data_offset + end}, "
                f"the file ends at {size_bytes}"
            )
