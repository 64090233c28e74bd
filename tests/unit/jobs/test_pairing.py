"""Who loads with whom: each named reason, for and against and not known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.shapes import dflash_drafter, gemma3_270m, llama_8b, mmproj, qwen36

from jobs.fit.shape import Shape, TensorBytes
from jobs.fit.shape_reading import shape_of
from jobs.known_engines import ANY_ENGINE, STATES, state_named
from jobs.pairing import SHARED_ARCHITECTURES, Answer, Finding, pair

YES, NO, OPEN = Answer.COMPATIBLE, Answer.INCOMPATIBLE, Answer.CANNOT_TELL


def finding(name: str, **wish) -> Finding:
    found = pair(**wish)
    return next(each for each in found.findings if each.name == name)


@pytest.mark.parametrize(
    ("engine", "form", "answer"),
    [
        ("beellama@v0.1.1", "dflash-draft", YES),
        ("beellama@v0.1.1", "dflash", NO),
        ("beellama@v0.2.0", "dflash-draft", YES),
        ("beellama@v0.3.1", "dflash", YES),
        ("beellama@v0.4.7", "dflash-draft", NO),
        ("beellama@v0.4.7", "dflash", YES),
        ("buun@2026-05-18", "dflash-draft", YES),
        ("buun@2026-05-18", "dflash", NO),
        ("buun@2026-08", "dflash", OPEN),
        ("turboquant@69d8e4be4", "dflash", NO),
        ("turboquant@2026-07", "dflash", YES),
        ("upstream@2026-05", "dflash", NO),
        ("upstream@dflash", "dflash", YES),
        ("ggml-org/llama.cpp@dflash", "dflash-draft", NO),
    ],
)
def test_which_engine_takes_which_form_of_drafter(engine: str, form: str, answer: Answer) -> None:
    """The table of forms and engines."""
    found = finding(
        "drafter_form", target=qwen36(), drafter=dflash_drafter(form), state=state_named(engine)
    )
    assert found.answer is answer
    assert bool(found.would_tell) is (answer is OPEN)


@pytest.mark.parametrize(
    ("engine", "answer"),
    [
        ("beellama@v0.1.1", NO),
        ("beellama@v0.2.0", OPEN),
        ("beellama@v0.3.0", YES),
        ("buun@2026-05-16", NO),
        ("buun@2026-05-17", YES),
        ("turboquant@2026-05-04", NO),
        ("upstream@2026-05-16", YES),
    ],
)
def test_mtp_heads_inside_a_target_need_a_loader_that_creates_them(
    engine: str, answer: Answer
) -> None:
    """866 tensors expected, 862 made: decided by the key, the count is only a hint."""
    target = qwen36(block_count=65, nextn_predict_layers=1)
    found = finding("mtp_heads", target=target, state=state_named(engine))
    assert found.answer is answer
    assert "866 tensors; the count alone is only a hint" in found.sentence


def test_a_target_without_heads_loads_whatever_its_count() -> None:
    """The count decides nothing."""
    found = pair(qwen36(), state=state_named("beellama@v0.1.1"))
    assert found.answer is YES


@pytest.mark.parametrize(
    "keys",
    [
        {"target_layers": None, "target_layer_ids": [1, 2]},
        {"target_layers": None, "dflash.block_size": 16},
        {"target_layers": None, "dflash.target_layer_ids": [1, 2]},
    ],
)
def test_stale_converter_forms_are_refused_by_all(keys: dict) -> None:
    """Even by engines that load the right form of the same name."""
    drafter = dflash_drafter("dflash", **keys)
    for state in (*STATES, ANY_ENGINE):
        found = pair(qwen36(), drafter=drafter, state=state)
        assert found.answer is NO
        assert found.findings[0].name == "stale_converter"


def test_a_drafter_of_another_width_is_refused() -> None:
    """A 27B drafter on a 9B target asserts in the graph."""
    found = finding(
        "embedding_width",
        target=qwen36(embedding_length=4096),
        drafter=dflash_drafter(),
        state=state_named("beellama@v0.1.1"),
    )
    assert found.answer is NO
    assert found.sentence == "the drafter is 5120 wide, the target 4096"


def test_layers_a_drafter_reads_must_be_there() -> None:
    """MTP layers do not count among them; features must match layers times width."""
    target = qwen36(block_count=62, nextn_predict_layers=1)
    wish = {"target": target, "drafter": dflash_drafter(), "state": state_named("buun@2026-05")}
    assert finding("target_layers", **wish).answer is NO
    assert finding("target_features", **wish).answer is YES
    wish["drafter"] = dflash_drafter(**{"dflash.n_target_features": 1024})
    assert finding("target_features", **wish).answer is NO


def test_a_drafter_that_does_not_say_its_layers_cannot_be_judged() -> None:
    """Not known, with what would tell."""
    drafter = dflash_drafter(**{"dflash.target_layer_ids": None})
    found = pair(qwen36(), drafter=drafter, state=state_named("beellama@v0.1.1"))
    assert found.answer is OPEN
    assert found.findings[0].name == "target_layers"
    assert found.findings[0].would_tell


@pytest.mark.parametrize(
    ("vocabulary", "tokenizer", "answer"),
    [
        (248_320, "qwen35", YES),
        (248_192, "qwen35", YES),
        (248_191, "qwen35", NO),
        (248_320, "qwen2", NO),
        (None, "qwen35", OPEN),
        (248_320, None, OPEN),
    ],
)
def test_a_plain_drafter_shares_the_vocabulary(
    vocabulary: int | None, tokenizer: str | None, answer: Answer
) -> None:
    """Within 128 tokens, and the same tokenizer."""
    keys = {
        "general.architecture": "qwen3",
        "qwen3.block_count": 28,
        "qwen3.embedding_length": 1024,
        "qwen3.attention.head_count": 16,
        "tokenizer.ggml.pre": tokenizer,
    }
    drafter = shape_of(keys, tensors=TensorBytes(600_000_000), vocabulary=vocabulary)
    found = pair(qwen36(), drafter=drafter, state=state_named("upstream@dflash"))
    assert found.answer is answer


def test_a_projector_must_give_what_the_target_takes() -> None:
    """projection_dim against embedding_length; silent headers cannot be judged."""
    state = state_named("beellama@v0.1.1")
    assert pair(qwen36(), projector=mmproj(), state=state).answer is YES
    assert pair(qwen36(), projector=mmproj(4096), state=state).answer is NO
    silent = mmproj(**{"clip.vision.projection_dim": None})
    assert pair(qwen36(), projector=silent, state=state).answer is OPEN


def test_files_in_the_wrong_place_are_named() -> None:
    """A projector is no drafter, a drafter no target, a model no projector."""
    state = state_named("beellama@v0.1.1")

    def first(**wish: Shape) -> str:
        found = pair(**wish, state=state)
        assert found.answer is NO
        return found.findings[0].name

    assert first(target=qwen36(), drafter=mmproj()) == "drafter_role"
    assert first(target=dflash_drafter()) == "target_role"
    assert first(target=qwen36(), projector=llama_8b()) == "projector_role"


@pytest.mark.parametrize(
    ("engine", "answer"), [("beellama@0.1", YES), ("buun@2026-05", NO), ("beellama@0.4", OPEN)]
)
def test_some_engines_silently_stop_drafting_beside_a_projector(
    engine: str, answer: Answer
) -> None:
    """buun drafts nothing then; beellama 0.1 does with DFlash."""
    form = "dflash" if engine == "beellama@0.4" else "dflash-draft"
    found = finding(
        "vision_with_drafter",
        target=qwen36(),
        drafter=dflash_drafter(form),
        projector=mmproj(),
        state=state_named(engine),
    )
    assert found.answer is answer


def test_architectures_come_from_the_sources_where_they_were_read() -> None:
    """Names of the revision's own sources beat what is common to the chain."""
    state = state_named("buun@2026-05")
    assert "gemma3" in SHARED_ARCHITECTURES
    assert pair(gemma3_270m(), state=state).answer is YES
    assert pair(gemma3_270m(), state=state, archs=frozenset({"llama"})).answer is NO
    assert pair(qwen36(), state=ANY_ENGINE).answer is OPEN


def test_an_unread_architecture_of_a_drafter_cannot_be_judged() -> None:
    """eagle3 has no row in what was read."""
    drafter = shape_of(
        {"general.architecture": "eagle3", "eagle3.embedding_length": 5120},
        tensors=TensorBytes(1),
    )
    found = pair(qwen36(), drafter=drafter, state=state_named("upstream@dflash"))
    assert found.answer is OPEN


def test_a_silent_header_cannot_be_judged() -> None:
    """No width of the drafter; a target with heads and no count."""
    drafter = dflash_drafter(embedding_length=None)
    found = pair(qwen36(), drafter=drafter, state=state_named("beellama@v0.1.1"))
    assert found.answer is OPEN
    assert found.findings[0].name == "embedding_width"
    heads = replace(qwen36(block_count=65, nextn_predict_layers=1), tensor_count=None)
    assert "tensors;" not in pair(heads, state=state_named("buun@2026-05")).findings[0].sentence


def test_sources_that_name_the_architecture_are_enough() -> None:
    """Whatever is common to the chain."""
    strange = replace(qwen36(), architecture="brandnew")
    state = state_named("buun@2026-05")
    assert pair(strange, state=state).answer is OPEN
    assert pair(strange, state=state, archs=frozenset({"brandnew"})).answer is YES


def test_dspark_loads_in_its_own_fork_only() -> None:
    """Its form is stale for every engine of the chain."""
    keys = {"general.architecture": "dspark", "dspark.embedding_length": 5120}
    drafter = shape_of(keys, tensors=TensorBytes(1))
    found = pair(qwen36(), drafter=drafter, state=state_named("upstream@dflash"))
    assert found.answer is NO


def test_a_header_not_read_to_its_end_is_no_evidence_of_absence() -> None:
    """Neither of MTP heads nor of a stale converter; keys that were seen count all the same."""
    state = state_named("beellama@0.1")
    found = pair(replace(qwen36(), keys_read=False), state=state)
    assert found.answer is Answer.CANNOT_TELL
    assert found.findings[0].name == "mtp_heads"
    seen = replace(qwen36(block_count=65, nextn_predict_layers=1), keys_read=False)
    assert pair(seen, state=state).answer is Answer.INCOMPATIBLE
    keys = {"general.architecture": "dflash", "dflash.block_count": 5}
    cut = shape_of(keys, tensors=TensorBytes(1000), keys_read=False)
    assert cut.drafter is not None
    assert not cut.drafter.stale
    assert not cut.can_be_paired
