"""Reads a GGUF header through a callable, in bounded time and memory; trusts no length in it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from struct import Struct

from jobs.errors import BadGguf
from jobs.gguf import limits
from jobs.gguf.header import ArrayValue, Header, Scalar, Tensor, Value, ValueType
from jobs.gguf.layout import data_start, verify_layout
from jobs.gguf.sniffing import what_it_is
from jobs.gguf.window import Fetch, NoMore, Window
from jobs.terminal import printable

MAGIC = b"GGUF"
VERSIONS = (2, 3)
TOKENIZER = "tokenizer."
FACTS = ("block_count", "attention.head_count", "attention.key_length")
"""Keys of the architecture without which nobody can judge what a model takes."""

_NUMBERS = {
    ValueType.UINT8: Struct("<B"),
    ValueType.INT8: Struct("<b"),
    ValueType.UINT16: Struct("<H"),
    ValueType.INT16: Struct("<h"),
    ValueType.UINT32: Struct("<I"),
    ValueType.INT32: Struct("<i"),
    ValueType.FLOAT32: Struct("<f"),
    ValueType.BOOL: Struct("<?"),
    ValueType.UINT64: Struct("<Q"),
    ValueType.INT64: Struct("<q"),
    ValueType.FLOAT64: Struct("<d"),
}
_U32, _U64 = _NUMBERS[ValueType.UINT32], _NUMBERS[ValueType.UINT64]
_START = Struct("<4sI")
_COUNTS = Struct("<QQ")
_PLACE = Struct("<IQ")
_SHOWN_CHARACTERS = 80


class Depth(Enum):
    """How far to read."""

    FACTS = "facts"
    FULL = "full"


def read_header(
    fetch: Fetch,
    *,
    size_bytes: int | None = None,
    depth: Depth = Depth.FACTS,
    check: Callable[[], None] = lambda: None,
) -> Header:
    """The header of the file behind `fetch`, or `BadGguf`.

    With FACTS nothing more is fetched once a key of the tokenizer and those of the architecture
    that memory depends on were seen; what is in hand by then is still read. `size_bytes` is the
    size of the whole file where it is known: every length is held against it before a byte is
    asked for. `check` is called now and then and may raise to end the reading; what it and `fetch`
    raise passes through.
    """
    return _Reader(Window(fetch, size_bytes, check), depth, check).read()


class _Reader:
    def __init__(self, window: Window, depth: Depth, check: Callable[[], None]) -> None:
        self._window = window
        self._depth = depth
        self._check = check
        self._keys: dict[str, Value] = {}
        self._kept_bytes = 0
        self._saw_tokenizer = False

    def read(self) -> Header:
        version, tensor_count, kv_count = self._start()
        tensors: tuple[Tensor, ...] | None = None
        data_offset: int | None = None
        keys_end: int | None = None
        table_end: int | None = None
        try:
            for _ in range(kv_count):
                self._check()
                self._pair()
            keys_end = self._window.position
            if self._depth is Depth.FACTS:
                self._window.may_fetch = False
            tensors = self._tensors(tensor_count)
            table_end = self._window.position
            data_offset = data_start(self._keys, table_end)
            verify_layout(tensors, data_offset, self._window.size_bytes)
        except NoMore:
            pass
        return Header(
            version=version,
            tensor_count=tensor_count,
            kv_count=kv_count,
            keys=self._keys,
            tensors=tensors,
            data_offset=data_offset,
            size_bytes=self._window.size_bytes,
            bytes_read=self._window.bytes_read,
            requests=self._window.requests,
            keys_end=keys_end,
            table_end=table_end,
        )

    def _start(self) -> tuple[int, int, int]:
        window = self._window
        if window.size_bytes == 0:
            raise BadGguf("the file is empty")
        if window.size_bytes is not None and window.size_bytes < _START.size + _COUNTS.size:
            raise BadGguf(what_it_is(window.take(window.size_bytes, "the start"), whole=True))
        magic, version = _START.unpack(start := window.take(_START.size, "the start"))
        if magic != MAGIC:
            raise BadGguf(what_it_is(start + window.peek(), whole=False))
        if version not in VERSIONS:
            raise BadGguf(_refused_version(version))
        tensor_count, kv_count = _COUNTS.unpack(window.take(_COUNTS.size, "the counts"))
        if kv_count > limits.KEYS:
            raise BadGguf(f"it claims {kv_count} keys, the limit is {limits.KEYS}")
        if tensor_count > limits.TENSORS:
            raise BadGguf(f"it claims {tensor_count} tensors, the limit is {limits.TENSORS}")
        return version, tensor_count, kv_count

    def _pair(self) -> None:
        key = self._text(limits.KEY_BYTES, "a key")
        if key in self._keys:
            raise BadGguf(f"the key {_shown(key)} is there twice")
        self._watch_for_the_tokenizer(key)
        what = f"the value of {_shown(key)}"
        value_type = self._value_type(what)
        if value_type is ValueType.ARRAY:
            self._array(key, what)
        else:
            self._keys[key] = self._scalar(value_type, what)

    def _watch_for_the_tokenizer(self, key: str) -> None:
        architecture = self._keys.get("general.architecture")
        self._saw_tokenizer = self._saw_tokenizer or key.startswith(TOKENIZER)
        if self._depth is Depth.FACTS and self._saw_tokenizer:
            seen = (key == own or own in self._keys for own in _own_facts(architecture))
            self._window.may_fetch = not all(seen)

    def _array(self, key: str, what: str) -> None:
        element = self._value_type(what)
        length = _U64.unpack(self._window.take(8, what))[0]
        if element is ValueType.ARRAY:
            raise BadGguf(f"{what} is an array of arrays")
        if length > limits.ARRAY_ITEMS:
            raise BadGguf(f"{what} claims {length} items, the limit is {limits.ARRAY_ITEMS}")
        number = _NUMBERS.get(element)
        self._window.demand(length * (number.size if number else 8), what)
        items: list[Scalar] = []
        try:
            if number:
                kept = length if length <= limits.KEPT_NUMBERS else limits.KEPT_ITEMS
                packed = self._window.take(kept * number.size, what)
                items.extend(item for (item,) in number.iter_unpack(packed))
                self._window.skip((length - kept) * number.size, what)
            else:
                for _ in range(kept := min(length, limits.KEPT_ITEMS)):
                    items.append(self._kept_text(what))
                self._window.skip_strings(length - kept, what)
        finally:
            self._keys[key] = ArrayValue(element, length, tuple(items))

    def _scalar(self, value_type: ValueType, what: str) -> Scalar:
        if value_type is ValueType.STRING:
            return self._kept_text(what)
        number = _NUMBERS[value_type]
        value: Scalar = number.unpack(self._window.take(number.size, what))[0]
        return value

    def _value_type(self, what: str) -> ValueType:
        number = _U32.unpack(self._window.take(4, what))[0]
        try:
            return ValueType(number)
        except ValueError:
            raise BadGguf(f"{what} has the unknown type {number}") from None

    def _kept_text(self, what: str) -> str:
        return self._text(limits.STRING_BYTES, what)

    def _text(self, most_bytes: int, what: str) -> str:
        length = _U64.unpack(self._window.take(8, what))[0]
        if length > most_bytes:
            raise BadGguf(f"{what} has {length} bytes, the limit is {most_bytes}")
        self._kept_bytes += length
        if self._kept_bytes > limits.KEPT_TEXT_BYTES:
            raise BadGguf(f"its texts have more than {limits.KEPT_TEXT_BYTES} bytes together")
        return self._window.take(length, what).decode("utf-8", "replace")

    def _tensors(self, count: int) -> tuple[Tensor, ...]:
        self._window.demand(count * (8 + 4 + _PLACE.size), "the tensor table")
        found: dict[str, Tensor] = {}
        for _ in range(count):
            self._check()
            tensor = self._tensor()
            if tensor.name in found:
                raise BadGguf(f"the tensor {_shown(tensor.name)} is there twice")
            found[tensor.name] = tensor
        return tuple(found.values())

    def _tensor(self) -> Tensor:
        name = self._text(limits.NAME_BYTES, "the name of a tensor")
        what = f"the tensor {_shown(name)}"
        rank = _U32.unpack(self._window.take(4, what))[0]
        if rank > limits.DIMS:
            raise BadGguf(f"{what} has {rank} dimensions, the limit is {limits.DIMS}")
        place = self._window.take(8 * rank + _PLACE.size, what)
        dims = tuple(size for (size,) in _U64.iter_unpack(place[: 8 * rank]))
        type_id, offset = _PLACE.unpack_from(place, 8 * rank)
        tensor = Tensor(name, dims, type_id, offset)
        if tensor.elements > limits.ELEMENTS or max(dims, default=0) > limits.ELEMENTS:
            raise BadGguf(f"{what} has impossible dimensions {dims}")
        return tensor


def _own_facts(architecture: Value | None) -> list[str]:
    return [f"{architecture}.{name}" for name in FACTS]


def _shown(text: str) -> str:
    return repr(printable(text)[:_SHOWN_CHARACTERS])


def _refused_version(version: int) -> str:
    if version & 0xFFFF == 0 and version:
        return "it is written big-endian, which no engine here loads"
    known = " and ".join(map(str, VERSIONS))
    return f"it has version {version}, readable are {known}"
