"""A header's keys, asked for by name and kind; a value of another kind counts as not said."""

from __future__ import annotations

from jobs.gguf.facts import PerLayer
from jobs.gguf.header import ArrayValue, Header


class Keys:
    """The keys of one header; those of its architecture have `own` names."""

    def __init__(self, header: Header) -> None:
        self._keys = header.keys
        self.architecture = self.text("general.architecture")

    def own(self, name: str) -> str:
        """The full name of a key of this architecture."""
        return f"{self.architecture}.{name}"

    def has(self, name: str) -> bool:
        """Whether the key is there, whatever its value."""
        return name in self._keys

    def has_any(self, prefix: str) -> bool:
        """Whether a key starts so."""
        return any(key.startswith(prefix) for key in self._keys)

    def text(self, name: str) -> str:
        """The text of a key; empty where it has none."""
        value = self._keys.get(name)
        return value if isinstance(value, str) else ""

    def truth(self, name: str) -> bool | None:
        """The yes or no of a key."""
        value = self._keys.get(name)
        return value if isinstance(value, bool) else None

    def count(self, *names: str) -> int | None:
        """The first of these keys that is a number which counts something."""
        for name in names:
            value = self._keys.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                return value
        return None

    def counts(self, name: str) -> tuple[int, ...] | None:
        """The whole numbers of an array, where all of them were kept."""
        value = self._keys.get(name)
        if not isinstance(value, ArrayValue) or not value.is_whole:
            return None
        numbers = tuple(int(item) for item in value.items if isinstance(item, int))
        return numbers if len(numbers) == value.length else None

    def per_layer(self, name: str) -> PerLayer:
        """One number, or one for each layer."""
        return self.counts(name) if self.length(name) is not None else self.count(name)

    def length(self, name: str) -> int | None:
        """How many items an array has."""
        value = self._keys.get(name)
        return value.length if isinstance(value, ArrayValue) else None
