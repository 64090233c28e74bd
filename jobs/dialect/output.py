"""Tells broken output from text by the text itself; knows nothing of how fast it came."""

from __future__ import annotations

from collections import Counter

SHORTEST_JUDGED = 16  # characters; less is too little to call a repetition
LONGEST_CYCLE = 24  # characters; a whole text of one such cycle is no language
LONGEST_RUN_CYCLE = 4  # characters; a long run of such a cycle inside a text is no language either
LEAST_REPEATS = 4  # of a cycle, before it is called a run
RUN_SHARE = 0.5  # of all visible characters that one run may take
DOMINANT_SHARE = 0.9  # of all visible characters
UNREADABLE_SHARE = 0.3  # of characters that were no valid UTF-8
SAME_WORDS = 12  # in a row
JUDGED_CHARACTERS = 65_536


def brokenness(text: str) -> str:
    """Why `text` is not language, or the empty string where it may be."""
    text = text[:JUDGED_CHARACTERS]
    visible = "".join(text.split())
    if not visible:
        return "tokens were counted but no visible text came"
    unreadable = text.count("\ufffd")
    if unreadable > UNREADABLE_SHARE * len(visible):
        return f"{unreadable} of {len(visible)} characters are unreadable"
    if len(visible) < SHORTEST_JUDGED:
        return ""
    for length in range(1, min(LONGEST_CYCLE, len(visible) // LEAST_REPEATS) + 1):
        cycle = visible[:length]
        if (cycle * (len(visible) // length + 1))[: len(visible)] == visible:
            return f"the output only repeats {cycle!r}"
    character, times = Counter(visible).most_common(1)[0]
    if times > DOMINANT_SHARE * len(visible):
        return f"{times} of {len(visible)} characters are {character!r}"
    run, cycle = _longest_run(visible)
    if run > RUN_SHARE * len(visible):
        return f"{run} of {len(visible)} characters only repeat {cycle!r}"
    word, times = _most_in_a_row(text.split())
    if times >= SAME_WORDS and times * len(word) > RUN_SHARE * len(visible):
        return f"the output repeats the word {word[:40]!r} {times} times in a row"
    return ""


def sanity(text: str) -> float | None:
    """1 for text without a run of repetition, 0 for nothing but one; None for too little text."""
    text = text[:JUDGED_CHARACTERS]
    visible = "".join(text.split())
    if len(visible) < SHORTEST_JUDGED:
        return None
    if brokenness(text).startswith("the output only repeats"):
        return 0.0
    run, _ = _longest_run(visible)
    word, times = _most_in_a_row(text.split())
    unreadable = text.count("\ufffd")
    worst = max(run, times * len(word) if times >= LEAST_REPEATS else 0, unreadable)
    return round(max(0.0, 1 - worst / len(visible)), 4)


def _longest_run(visible: str) -> tuple[int, str]:
    """The longest stretch in which one short cycle repeats, and the cycle."""
    best, best_cycle = 0, ""
    for length in range(1, LONGEST_RUN_CYCLE + 1):
        same = 0
        for at in range(length, len(visible)):
            same = same + 1 if visible[at] == visible[at - length] else 0
            if same + length > max(best, LEAST_REPEATS * length - 1):
                best, best_cycle = same + length, visible[at - length + 1 : at + 1]
    return best, best_cycle


def _most_in_a_row(words: list[str]) -> tuple[str, int]:
    """The word that follows itself most often, and how often it stands there."""
    best, best_word, times, before = 0, "", 0, ""
    for word in words:
        times = times + 1 if word == before else 1
        before = word
        if times > best:
            best, best_word = times, word
    return best_word, best
