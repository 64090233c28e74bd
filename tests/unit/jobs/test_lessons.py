"""What stored boots teach, and what of them cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support import gguf_files as files
from support.shapes import MIB, qwen36

from jobs.errors import Permanent
from jobs.fit.estimate import estimate
from jobs.fit.lessons import HOST_ONLY, MeasuredBoot, corrections, lessons, taught_by
from jobs.fit.setup import Card, Setup
from jobs.fit.stored import (
    facts_stored,
    layout_in,
    memory_in,
    shape_in,
    shape_stored,
)
from jobs.fit_answers import answer, as_json
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of
from jobs.known_engines import state_named
from jobs.known_revisions import state_of_revision
from jobs.model import SILENT, BootMemory, Layout, MemoryLines

STATE = state_named("beellama@0.1")
LAYOUT = Layout(32_768, 2048, 512, "f16", "f16", gpu_layers=99)


def lines(compute: float = 505.0) -> BootMemory:
    return BootMemory(
        MemoryLines(
            weights=round(15_088.3 * MIB),
            cache=2048 * MIB,
            recurrent=round(149.62 * MIB),
            compute=round(compute * MIB),
        )
    )


def boot(**changes) -> MeasuredBoot:
    fixed = MeasuredBoot(
        result_id=1,
        label="v0.1.2",
        rig="h200",
        measured_at=datetime(2026, 11, 3, tzinfo=UTC),
        state=STATE,
        model="qwen",
        shape=qwen36(),
        layout=LAYOUT,
        memory=lines(),
        offloaded_layers=65,
        total_layers=65,
    )
    return replace(fixed, **changes)


def wish(**changes) -> Setup:
    given = {"context": 65_536, "state": STATE, **changes}
    return Setup(target=qwen36(), card=Card(total_bytes=24 * 2**30), **given)


def test_boots_that_repeat_each_other_are_one_lesson() -> None:
    """However often the same was heard; another figure or another layout is another lesson."""
    other = boot(layout=replace(LAYOUT, ubatch=256))
    found = lessons([boot(result_id=9), boot(), boot(), boot(memory=lines(510)), other])
    assert [each.boots for each in found] == [3, 1, 1]
    assert found[0].newest.result_id == 9
    assert {each.component for each in found[0].residuals} == {
        "weights",
        "KV cache",
        "recurrent state",
        "compute",
    }


def test_a_boot_on_the_host_teaches_its_caches_only() -> None:
    """No buffer of it lies on a card; the note says so."""
    memory = BootMemory(MemoryLines(cache=2048 * MIB, pinned=300 * MIB))
    [lesson] = lessons([boot(memory=memory, offloaded_layers=None)])
    assert [each.component for each in lesson.residuals] == ["KV cache"]
    assert lesson.note == HOST_ONLY


def test_what_a_process_holds_beyond_its_lines_is_its_context() -> None:
    """As measured: 18,126 MiB, of which 593 are the CUDA context and its kernels."""
    memory = replace(lines(247.5), process=18_126 * MIB)
    [lesson] = lessons([boot(layout=replace(LAYOUT, ubatch=256), memory=memory)])
    [context] = [each for each in lesson.residuals if each.component == "CUDA context"]
    assert context.measured / MIB == pytest.approx(592.6, abs=0.1)
    assert abs(context.off) < 2 * MIB


@pytest.mark.parametrize(
    "memory",
    [
        replace(SILENT, process=18_126 * MIB),
        replace(lines(), process=18_126 * MIB, drafter=MemoryLines(weights=1669 * MIB)),
        replace(lines(), process=18_126 * MIB, projector=251 * MIB),
    ],
    ids=["silent log", "drafter", "projector"],
)
def test_a_process_whose_lines_are_not_all_known_teaches_no_context(memory: BootMemory) -> None:
    """Nothing that another line may have taken is laid to the context."""
    [lesson] = lessons([boot(memory=memory)])
    assert "CUDA context" not in {each.component for each in lesson.residuals}


def test_a_partial_offload_teaches_nothing() -> None:
    """What lay on the card is not what the estimate is about."""
    [lesson] = lessons([boot(offloaded_layers=40)])
    assert lesson.residuals == ()
    assert "only 40 of 65 layers" in lesson.note


def test_a_wish_that_cannot_be_estimated_says_why() -> None:
    """Such as a cache type whose size nobody read."""
    [lesson] = lessons([boot(layout=replace(LAYOUT, cache_key="kvarn4"))])
    assert lesson.found is None
    assert "kvarn4" in lesson.note


def test_revisions_of_an_unread_engine_teach_together() -> None:
    """And a state that was read teaches about itself alone."""
    one, two = (state_of_revision("other", repo="o/other", label=label) for label in ("v1", "v2"))
    assert one.title != two.title
    assert one.learned_as == two.learned_as == "other"
    [lesson] = lessons([boot(state=one), boot(state=two)])
    assert taught_by([lesson], wish(state=two)) == 1
    assert taught_by([lesson], wish()) == 0


def test_no_lesson_judges_itself() -> None:
    """Corrected without the only lesson, an estimate stays as it is."""
    known = lessons([boot(memory=lines(990))])
    found = estimate(wish())
    assert corrections(known, without=known[0])(found) == found
    assert corrections(known)(found).loaded.likely > found.loaded.likely


def test_an_answer_is_corrected_and_says_so() -> None:
    """By lessons about its engine and architecture, and by no others."""
    known = lessons([boot(memory=lines(990))])
    raw, taught = answer(wish()), answer(wish(), known)
    assert taught.found.loaded.likely - raw.found.loaded.likely > 400 * MIB
    assert taught.taught == 1
    assert taught.found.notes[-1] == (
        "corrected by 1 measured boot of beellama@0.1 with qwen35: "
        "weights, KV cache, recurrent state, compute"
    )
    assert "corrected" not in " ".join(raw.found.notes)
    other = answer(wish(state=state_named("buun@2026-05")), known)
    assert other.taught == 0
    assert other.found.notes[-1] == (
        "not corrected: no boot of buun@2026-05 with qwen35 was measured, only of beellama@0.1; "
        "name that engine to be corrected by its boots"
    )
    assert as_json(taught)["corrected_by_boots"] == 1


def test_boots_that_cannot_be_compared_are_not_said_to_be_none() -> None:
    """The note counts them, and says that they taught nothing."""
    found = answer(wish(), lessons([boot(offloaded_layers=40)])).found
    assert found.notes[-1] == (
        "not corrected: 1 boot of beellama@0.1 with qwen35, none of them comparable"
    )
    silent = answer(wish(), lessons([])).found
    assert silent.notes[-1] == "not corrected: no boot of beellama@0.1 with qwen35 was measured"


def test_what_is_stored_comes_back() -> None:
    """A shape as JSON gives the same estimate again."""
    shape = qwen36(nextn_predict_layers=1)
    assert shape_in(shape_stored(shape)) == shape


@pytest.mark.parametrize("read", [shape_in, layout_in, memory_in])
def test_a_damaged_row_is_refused_with_our_own_error(read) -> None:
    """Whatever hand wrote it."""
    with pytest.raises(Permanent, match="not as it was written"):
        read({"layers": "many", "target": 3})


def test_stored_facts_are_bounded() -> None:
    """A stranger's text of any length takes little room, and holds nothing that breaks a row."""
    file = files.build({"general.architecture": "llama", "general.name": "n\0" + "x" * 100_000})
    header = read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)
    stored = facts_stored(facts_of(header))
    assert len(stored["name"]) <= 300
    assert "\0" not in stored["name"]
