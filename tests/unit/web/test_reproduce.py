"""The text a reader copies to measure the same again."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web.reproduce import command_line


def test_placeholders_stay_readable() -> None:
    """`<artifact>/llama-server` is not quoted."""
    assert command_line(["<artifact>/llama-server", "-m", "<model>"]) == (
        "<artifact>/llama-server -m <model>"
    )


@pytest.mark.parametrize("word", ["a b", "a>b", "$(x)", "`x`", "a;b", "", "<a>>b", "x<y>"])
def test_a_hostile_word_is_quoted(word: str) -> None:
    """What a shell would act on is inside quotes."""
    assert command_line([word]) == shlex.quote(word)


@given(st.lists(st.text(max_size=20).filter(lambda word: not word.startswith("<")), max_size=5))
def test_a_line_reads_back_as_its_words(words: list[str]) -> None:
    """Whatever the words are, a shell gets them back unchanged."""
    assert shlex.split(command_line(words)) == words
