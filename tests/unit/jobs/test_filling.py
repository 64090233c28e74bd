"""A context is filled with exactly as many tokens as were asked for."""

from __future__ import annotations

from itertools import islice

import pytest

from jobs.dialect.filling import PIECE_WORDS, filled, sentences
from jobs.errors import JobFailure


def by_word(text):
    """A tokenizer with one token per word."""
    return [len(word) for word in text.split()]


@pytest.mark.parametrize("tokens", [1, 31, 4096, 3 * PIECE_WORDS + 5])
def test_exactly_as_many_tokens_as_asked(tokens):
    """Whatever pieces the text is tokenised in."""
    assert len(filled(tokens, "salt", by_word)) == tokens


def test_the_same_salt_gives_the_same_tokens_another_gives_others():
    """Both arms of a comparison see one prompt; no run can use what a cache kept of another."""
    first = filled(500, "a:1", by_word)
    assert first == filled(500, "a:1", by_word)
    assert first[:40] != filled(500, "a:2", by_word)[:40]


def test_text_does_not_repeat_itself():
    """A drafter that copies would otherwise look better than it is."""
    lines = list(islice(sentences("x"), 2000))
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("answer", [None, [], ["a"], [1.5], [-1], [True], [2**31]])
def test_a_server_that_gives_no_tokens_is_refused(answer):
    """Ids of any other kind are no prompt."""
    with pytest.raises(JobFailure) as caught:
        filled(8, "x", lambda _text: answer)
    assert caught.value.failure_class == "no_tokenizer"
