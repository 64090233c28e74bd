"""How much of a header we are willing to read; numbers only, each with its reason."""

from __future__ import annotations

FIRST_FETCH_BYTES = 64 * 2**10
"""Converters write the facts before the tokenizer, and these fit: one request is enough."""

FETCH_BYTES = 2 * 2**20
"""A vocabulary of 248,320 tokens takes about 10 MB: a handful of requests, little memory."""

HEADER_BYTES = 64 * 2**20
"""Six times the largest header seen; beyond it somebody wants our memory."""

KEYS = 4_096
"""Real files have fewer than a hundred."""

TENSORS = 65_536
"""The largest mixtures of experts have a few thousand per file."""

KEY_BYTES = 65_535
"""The format's own limit for a key."""

NAME_BYTES = 1_024
"""ggml stops at 64 (forks at 128); beyond this it is no name."""

STRING_BYTES = 2**20
"""Chat templates have 8 to 20 kB."""

ARRAY_ITEMS = 2_000_000
"""Eight times the largest vocabulary in use."""

DIMS = 8
"""ggml knows four."""

ELEMENTS = 2**62
"""No tensor has more, and sizes in bytes stay far from any overflow."""

ALIGNMENT = 2**20
"""32 is usual; a power of two is demanded."""

KEPT_ITEMS = 64
"""Of a vocabulary nobody needs more than a look."""

KEPT_NUMBERS = 1_024
"""An array of numbers up to this length is kept whole: one value for each layer."""

KEPT_TEXT_BYTES = 8 * 2**20
"""All text that is kept of one header, together."""

MOST_LAYERS = 4_096
"""Layers of a model; the deepest published one has 126."""

MOST_COUNT = 2**31
"""Heads, widths, tokens: the loaders keep them in 32 bits."""

MOST_PARTS = 65_535
"""Files of a set: the format keeps their number in 16 bits."""
