"""Stored memory of boots and shapes of model files, on both databases."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from sqlmodel import col, select
from support.fit_rows import said, shaped_file
from support.rows import NOON, Rows
from support.shapes import MIB, qwen36

from jobs import db
from jobs.errors import UsageError
from jobs.fit.lessons import lessons
from jobs.model import SILENT, Boot, BootFacts, BootMemory, Effective, Layout, MemoryLines, Validity
from jobs.store import known_models, memories, results
from jobs.tables import BootRow, ModelFileRow

LAYOUT = Layout(32_768, 2048, 512, "f16", "f16", gpu_layers=99)


def _finished(rows: Rows, model: ModelFileRow, boots: list[Boot]) -> results.Finished:
    revision = rows.revision()
    return results.Finished(
        build_id=rows.build(revision).id or 0,
        revision_id=revision.id or 0,
        engine_id=revision.engine_id,
        model_file_id=model.id or 0,
        rig_id=rows.rig().id or 0,
        series="series",
        cell="cell",
        stack="stack",
        scenario="decode-128.v2",
        context_tokens=32_768,
        sandbox="bubblewrap",
        validity=Validity.OK,
        validity_reason="",
        summary={},
        boots=boots,
    )


def test_a_boot_keeps_what_was_asked_and_what_was_said(database: Engine) -> None:
    """A boot whose log says nothing, and an old one, keep nothing and are not asked."""
    memory = BootMemory(MemoryLines(cache=21 * MIB))
    with db.writing(database) as session:
        rows = Rows(session)
        boots = [
            Boot(
                number=number,
                load_seconds=1.0,
                facts=BootFacts(offloaded_layers=65, total_layers=65),
                effective=Effective(),
                props={},
                slots=(),
                measurements=(),
                layout=LAYOUT if kept else None,
                memory=kept,
            )
            for number, kept in enumerate((memory, SILENT, None), start=1)
        ]
        finished = _finished(rows, shaped_file(rows, "qwen", qwen36()), boots)
        results.record_result(session, rows.job().id or 0, finished, NOON)
    with db.reading(database) as session:
        stored = [row.memory for row in session.exec(select(BootRow).order_by(col(BootRow.number)))]
        found = memories.heard(session)
    assert [bool(each) for each in stored] == [True, False, False]
    [boot] = found.boots
    assert (boot.layout, boot.memory, boot.total_layers) == (LAYOUT, memory, 65)
    assert boot.shape == qwen36()
    assert boot.model == "qwen"


def test_boots_of_an_unread_model_are_counted_and_teach_nothing(database: Engine) -> None:
    """The newest come first; an engine's name stands for revisions nobody read."""
    with db.writing(database) as session:
        rows = Rows(session)
        wheel = rows.engine(name="wheel", repo=None)
        said(rows, rows.result(rows.revision(wheel)), LAYOUT, cache=MIB)
        known = shaped_file(rows, "qwen", qwen36())
        for _ in range(2):
            result = rows.result(rows.revision(wheel), model_file=known)
            said(rows, result, LAYOUT, cache=2048 * MIB)
    with db.reading(database) as session:
        found = memories.heard(session)
    assert found.shapeless == 3
    assert len(found.boots) == 6
    assert found.boots[0].result_id > found.boots[-1].result_id
    [lesson] = lessons(found.boots)
    assert (lesson.subject, lesson.boots) == (("wheel", "qwen35"), 6)


def test_a_model_is_found_by_its_name_or_refused(database: Engine) -> None:
    """An unread header, a fault and a strange name each have their sentence."""
    with db.writing(database) as session:
        rows = Rows(session)
        shaped_file(rows, "qwen", qwen36())
        rows.model_file(name="unread")
        rows.model_file(name="page", header_fault="an HTML page")
        rows.model_file(name="hand", shape={"layers": 3})
    with db.reading(database) as session:
        assert known_models.shape_named(session, "qwen", what="target") == qwen36()
        for name, words in (
            ("unread", "not read yet"),
            ("page", "an HTML page"),
            ("hand", "not as it was written"),
            ("qwne", "no known model file"),
        ):
            with pytest.raises(UsageError, match=words):
                known_models.shape_named(session, name, what="target")
        assert [each.name for each in known_models.known_models(session)] == [
            "hand",
            "page",
            "qwen",
            "unread",
        ]


def test_a_watched_engine_means_its_state_or_its_name(database: Engine) -> None:
    """A repository that was read has the state of the version; another has no state."""
    with db.writing(database) as session:
        rows = Rows(session)
        rows.revision(rows.engine(name="bee", repo="Anbeeld/beellama.cpp"), label="v0.1.2")
        rows.engine(name="mine", repo="o/mine")
    with db.reading(database) as session:
        found = memories.watched_state(session, "bee@v0.1.2")
        assert found is not None
        assert found.state.title == "beellama@0.1"
        mine = memories.watched_state(session, "mine")
        assert mine is not None
        assert (mine.state.title, mine.state.unread) == ("mine", True)
        assert memories.watched_state(session, "nobody") is None
