"""The page of what fits as values, and the words that ask for it."""

from __future__ import annotations

import pytest
from support.shapes import dflash_drafter, mmproj, qwen36

from jobs.errors import UsageError
from jobs.fit.lessons import lessons
from jobs.fit.setup import Card, Setup
from jobs.fit_answers import answer
from jobs.known_engines import STATES
from jobs.store.memories import Heard, KnownModel
from web import fit_pages
from web.fit_wish import NAMES, Wish, wish_in


def model(name: str, role: str = "target", shape=None, fault: str = "") -> KnownModel:
    return KnownModel(name, role, name, "Q4_K_M", "0" * 64, 1000, None, shape, fault)


MODELS = (
    model("big", shape=qwen36()),
    model("draft", "drafter", dflash_drafter()),
    model("eyes", "mmproj", mmproj()),
    model("page", fault="an HTML page"),
)


def test_the_form_offers_files_by_role_and_only_those_that_were_read() -> None:
    """A drafter is no target, a projector no drafter, an unread file is nothing."""
    found = fit_pages.choices(MODELS, ["mine"])
    assert found.targets == ("big",)
    assert found.drafters == ("big", "draft")
    assert found.projectors == ("eyes",)
    assert found.engines == (*(state.title for state in STATES), "mine")


def test_where_nothing_was_measured_every_state_is_named() -> None:
    """Silence is not agreement."""
    page = fit_pages.fit(MODELS, [], Heard(()))
    assert page.values["subjects"] == ()
    assert page.values["unmeasured"] == [state.title for state in STATES]
    assert page.values["wish"] is None


def test_an_answer_has_its_lines_their_rivals_and_sums() -> None:
    """The larger of the rivals comes first, for it counts."""
    card = Card(total_bytes=24 * 2**30)
    given = answer(Setup(target=qwen36(), card=card, context=262_144, ubatch=2048))
    shown = fit_pages.shown(given)
    compute = next(row for row in shown.rows if row.name == "compute")
    assert [rival[::2] for rival in compute.rivals] == [
        ("mask + work", "the larger counts"),
        ("logits", "shares the buffer"),
    ]
    assert [row.name for row in shown.sums] == ["in all", "usable"]
    assert shown.mark == "bad"
    assert shown.sentence.startswith("Does not fit: ")
    assert "GiB" in shown.sentence


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([("tagret", "x")], "no parameter 'tagret'"),
        ([("target", "a"), ("target", "b")], "there twice"),
        ([("target", "a" * 201)], "201 characters long"),
        ([("target", "a\x00")], "signs that nobody sees"),
        ([("target", "a\u202eb")], "signs that nobody sees"),
        ([("raw", "yes")], "raw is either 1"),
        ([("target", "a")] * 41, "more is asked"),
        ([("<script>", "1")], "no parameter '<script>'"),
    ],
)
def test_odd_words_get_one_sentence(asked, words: str) -> None:
    """Each names what is odd."""
    with pytest.raises(UsageError, match=words):
        wish_in(asked)


def test_an_empty_field_is_as_good_as_none() -> None:
    """A browser sends every field of a form."""
    assert wish_in([(name, "") for name in NAMES]) == Wish()
    assert wish_in([("target", " big "), ("raw", "1")]) == Wish(target="big", raw="1")


def test_nothing_measured_gives_no_subject() -> None:
    """And no error of nothing."""
    assert fit_pages.subjects_of(lessons([])) == ()
