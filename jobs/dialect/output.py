"""Tells broken output from text by the text itself; knows nothing of how fast it came."""

from __future__ import annotations

from collections import Counter

SHORTEST_JUDGED = 16  # characters; less is too little to call a repetition
LONGEST_CYCLE = 4  # characters; a whole text of one such cycle is no language
DOMINANT_SHARE = 0.9  # of all visible characters
UNREADABLE_SHARE = 0.3  # of characters that were no valid UTF-8
SAME_WORDS = 12  # in a row, and nothing else


def brokenness(text: str) -> str:
    """Why `text` is not language, or the empty string where it may be."""
    visible = "".join(text.split())
    if not visible:
        return "tokens were counted but no visible text came"
    unreadable = text.count("\ufffd")
    if unreadable > UNREADABLE_SHARE * len(visible):
        return f"{unreadable} of {len(visible)} characters are unreadable"
    if len(visible) < SHORTEST_JUDGED:
        return ""
    for length in range(1, LONGEST_CYCLE + 1):
        cycle = visible[:length]
        if (cycle * (len(visible) // length + 1))[: len(visible)] == visible:
            return f"the output only repeats {cycle!r}"
    character, times = Counter(visible).most_common(1)[0]
    if times > DOMINANT_SHARE * len(visible):
        return f"{times} of {len(visible)} characters are {character!r}"
    words = text.split()
    if len(words) >= SAME_WORDS and len(set(words)) == 1:
        return f"the output only repeats the word {words[0][:40]!r}"
    return ""
