"""The page of what fits as values, and the words that ask for it."""

from __future__ import annotations

import pytest
from support.rows import NOON
from support.shapes import dflash_drafter, mmproj, qwen36

from jobs.errors import UsageError
from jobs.fit.lessons import MeasuredBoot, lessons
from jobs.fit.setup import Card, Setup
from jobs.fit_answers import answer
from jobs.known_engines import STATES, state_named
from jobs.model import BootMemory, Layout, MemoryLines
from jobs.store.known_models import KnownModel
from jobs.store.memories import Heard
from web import fit_pages
from web.fit_wish import NAMES, Wish, wish_in


def model(name: str, role: str = "target", shape=None, fault: str = "") -> KnownModel:
    return KnownModel(name, role, name, "Q4_K_M", "0" * 64, 1000, None, shape, fault)


def measured_boot(*, context: int, memory: BootMemory) -> MeasuredBoot:
    return MeasuredBoot(
        result_id=1,
        label="v1",
        rig="rig",
        measured_at=NOON,
        state=state_named("beellama@v0.1.2"),
        model="big",
        shape=qwen36(),
        layout=Layout(context, 2048, 512, "f16", "f16"),
        memory=memory,
    )


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


def test_a_boot_on_the_host_shows_its_cache_and_nothing_of_a_card() -> None:
    """No weights on a card, no buffer, no CUDA context; the mean says which line it is of."""
    boots = [
        measured_boot(context=context, memory=BootMemory(MemoryLines(cache=cache * 2**20)))
        for context, cache in ((32_768, 2048), (65_536, 4096))
    ]
    [subject] = fit_pages.subjects_of(lessons(boots))
    assert [[line.name for line in each.lines] for each in subject.layouts] == [["KV cache"]] * 2
    assert [name for name, _ in subject.errors] == ["KV cache"]
    assert {"weights", "compute", "CUDA context"} <= set(subject.unmeasured)
    assert subject.error == dict(subject.errors)["KV cache"]


def test_the_error_of_each_line_is_its_own() -> None:
    """One line that is off does not hide behind others that are right."""
    boots = [
        measured_boot(
            context=context,
            memory=BootMemory(
                MemoryLines(weights=15_088 * 2**20, cache=cache * 2**20, compute=5000 * 2**20)
            ),
        )
        for context, cache in ((32_768, 2048), (65_536, 4096))
    ]
    [subject] = fit_pages.subjects_of(lessons(boots))
    errors = dict(subject.errors)
    assert errors["KV cache"].before < 0.01
    assert errors["compute"].before > 0.5
    assert errors["compute"].after < 0.1


def test_nothing_measured_gives_no_subject() -> None:
    """And no error of nothing."""
    assert fit_pages.subjects_of(lessons([])) == ()
