"""Advice for a word nobody knows."""

from __future__ import annotations

import pytest

from jobs.errors import did_you_mean

FAMILIES = ["llama.cpp", "xllamacpp", "vllm", "lucebox", "ik_llama.cpp"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("llamacpp", "llama.cpp"),
        ("LLAMA.CPP", "llama.cpp"),
        ("llama_cpp", "llama.cpp"),
        ("ik-llama-cpp", "ik_llama.cpp"),
        ("xlamacpp", "xllamacpp"),
        ("vlm", "vllm"),
    ],
)
def test_the_nearest_word_is_named(word: str, meant: str) -> None:
    """Punctuation and case count less than letters."""
    assert did_you_mean(word, FAMILIES) == f"did you mean {meant!r}?"


def test_many_words_end_with_a_command_that_lists_all() -> None:
    """A list that was cut says how to see the rest."""
    words = [f"word{number:02d}" for number in range(20)]
    advice = did_you_mean("?", words, listed_by="forkscout forks")
    assert advice.endswith("word11 and 8 more: forkscout forks")
    assert did_you_mean("?", words, most=20).endswith("word18, word19")


def test_where_no_word_is_known_there_is_a_next_step() -> None:
    """Nothing to choose from is no dead end."""
    assert "forkscout" in did_you_mean("x", [])
    assert did_you_mean("x", [], none="add one") == "add one"
