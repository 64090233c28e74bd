"""Text that fills a context to a depth, the same for the same salt; it tokenises nothing itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

from jobs.errors import JobFailure
from jobs.model import Blame

PIECE_WORDS = 16_384
"""As much text as is tokenised at once: the answer stays far below what a client reads."""

_SUBJECTS = (
    *("the old bridge", "a small harbour", "her brother", "the last train", "our neighbour"),
    *("the quiet street", "a young doctor", "the north wind", "his first letter", "the market"),
    *("an empty room", "the river", "a tall stranger", "the school", "my grandmother", "the night"),
)
_VERBS = (
    *("remembers", "follows", "leaves behind", "looks like", "carries", "waits for", "hides"),
    *("answers", "crosses", "builds", "forgets", "believes in", "asks about", "turns into"),
    *("listens to", "returns to"),
)
_OBJECTS = (
    *("a broken clock", "the first snow", "two green bottles", "an open window", "the garden"),
    *("a song nobody knows", "the price of bread", "some good advice", "a map of the coast"),
    *("the light on the hill", "a box of nails", "the other side", "an early spring", "the truth"),
    *("a promise", "the long way home"),
)
_TURNS = (
    *("and yet", "because", "while", "so that", "although", "before", "after", "until"),
    *("as if", "whenever", "and then", "but", "unless", "since", "where", "though"),
)


def sentences(salt: str) -> Iterator[str]:
    """Endless plain English that repeats no line soon; another salt begins differently."""
    number = 0
    while True:
        seed = hashlib.sha256(f"{salt}:{number}".encode()).digest()
        number += 1
        first = f"{_SUBJECTS[seed[0] % 16]} {_VERBS[seed[1] % 16]} {_OBJECTS[seed[2] % 16]}"
        second = f"{_SUBJECTS[seed[3] % 16]} {_VERBS[seed[4] % 16]} {_OBJECTS[seed[5] % 16]}"
        yield f"{first} {_TURNS[seed[6] % 16]} {second} {seed[7]}. "


def filled(
    tokens: int, salt: str, tokenise: Callable[[str], Sequence[int] | None]
) -> tuple[int, ...]:
    """Exactly so many token ids of the server's own vocabulary; raises where it gives none."""
    source, held = sentences(salt), list[int]()
    while len(held) < tokens:
        wanted = min(PIECE_WORDS, tokens - len(held) + 32)
        piece, words = [], 0
        while words < wanted:
            piece.append(next(source))
            words += len(piece[-1].split())
        ids = tokenise("".join(piece))
        if not ids or not all(type(each) is int and 0 <= each < 2**31 for each in ids):
            raise JobFailure(
                "the server does not tokenise: a context cannot be filled to a known depth",
                failure_class="no_tokenizer",
                blame=Blame.ENGINE,
                phase="fill",
                advice="Measure without filled depth, or look at the end of the log.",
            )
        held.extend(ids)
    return tuple(held[:tokens])
