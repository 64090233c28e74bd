"""Result files of other machines: stored once, shown as what they are, refused where doubtful."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlmodel import select
from support import result_files
from support.result_files import DEEP, SHORT, document

from jobs import db, importing
from jobs.arm_tables import ArmRow
from jobs.errors import UsageError
from jobs.imported import MOST_BYTES, read
from jobs.negative_tables import NegativeRow
from jobs.store import board
from jobs.tables import (
    BuildRow,
    EngineRow,
    JobRow,
    ModelFileRow,
    ResultRow,
    RigRow,
    SampleRow,
    VerdictRow,
)

NOW = datetime(2026, 11, 30, 21, 0, tzinfo=UTC)


def dumped(value):
    return json.dumps(value, default=str).encode()


def bring(engine, value, *, rig="h200", sha="f" * 64):
    with db.writing(engine) as session:
        return importing.store(session, read(dumped(value)), file_sha256=sha, rig=rig, now=NOW)


def rows(engine, table):
    with db.reading(engine) as session:
        return list(session.exec(select(table)))


def changed(path, value, base=None):
    """The document with one value replaced; `path` are its keys."""
    result = copy.deepcopy(base or document())
    place = result
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return result


def test_every_scenario_of_a_boot_becomes_a_result_of_its_own(database):
    """Allocated and filled stand apart: the context in its column, the depth in the series."""
    stored = bring(database, document(scenarios=(SHORT, DEEP)))
    assert [each.scenario for each in stored] == ["decode-128.v2", "ladder.v1@32768"]
    found = rows(database, ResultRow)
    assert {row.context_tokens for row in found} == {65_536}
    assert len({row.series for row in found}) == 2
    assert {row.sandbox for row in found} == {"uncaged"}
    assert [row.validity for row in found] == ["ok", "ok"]
    assert found[0].environment["imported"]["file_sha256"] == "f" * 64
    assert len(rows(database, SampleRow)) == 8
    assert rows(database, SampleRow)[0].after["card"]["process_bytes"] == 2**30
    assert [row.name for row in rows(database, EngineRow)] == ["beellama"]
    assert len(rows(database, BuildRow)) == 1
    with db.reading(database) as session:
        detail = board.result(session, found[0].id)
    assert detail.boots[0].samples[0].after["host_bytes"] == 10


def test_the_same_file_twice_is_one_result(sqlite):
    """Also in another file with the same boots."""
    first = bring(sqlite, document())
    again = bring(sqlite, document(made_at="later"), sha="0" * 64)
    assert [each.is_new for each in first + again] == [True, False]
    assert first[0].result_id == again[0].result_id
    assert len(rows(sqlite, ResultRow)) == 1
    assert [row.state for row in rows(sqlite, JobRow) if row.queue == "import"] == ["succeeded"]


def test_a_twin_never_ranks_beside_real_weights(sqlite):
    """It has its own class of models, its own validity, and its speed is still there to see."""
    bring(sqlite, document(twin=True))
    [row], [model] = rows(sqlite, ResultRow), rows(sqlite, ModelFileRow)
    assert row.validity == "twin"
    assert row.decode_tps == 52.0
    assert model.model_class == "twin of real.gguf"
    assert row.environment["imported"]["twin_of"] == "real.gguf"


def test_what_does_not_work_elsewhere_stands_until_it_does(database):
    """An imported result is born as a negative and overturns one, as one of our own does."""
    silent = document()
    for each in silent["combinations"][0]["boots"][0]["measurements"]:
        each["validity"] = "spec_inactive"
    bring(database, silent)
    [row] = rows(database, NegativeRow)
    assert (row.outcome, row.failure_class, row.state) == ("measured", "spec_inactive", "standing")
    bring(database, document(made_at="a week later"), sha="0" * 64)
    [row] = rows(database, NegativeRow)
    assert row.state == "overturned"


def test_a_drafter_makes_another_series(sqlite):
    """What ran beside the target belongs to the question."""
    drafting = document()
    drafting["models"]["drafter"] = drafting["models"]["target"] | {
        "name": "draft.gguf",
        "sha256": "b" * 64,
    }
    bring(sqlite, document())
    bring(sqlite, drafting, sha="0" * 64)
    assert len({row.series for row in rows(sqlite, ResultRow)}) == 2
    payload = rows(sqlite, JobRow)[-1].payload
    assert payload["drafter_sha256"] == "b" * 64
    assert {row.id: row.name for row in rows(sqlite, ModelFileRow)}[
        payload["drafter_file_id"]
    ] == "draft.gguf"


def test_a_twin_that_calls_itself_ok_is_marked_all_the_same(sqlite):
    """What decides is the tag of the weights."""
    value = document(twin=True)
    for m in value["combinations"][0]["boots"][0]["measurements"]:
        m["validity"] = "ok"
    bring(sqlite, value)
    assert [row.validity for row in rows(sqlite, ResultRow)] == ["twin"]


def test_other_hardware_under_a_known_name_is_refused(sqlite):
    """A rig is a machine; another one needs another name."""
    bring(sqlite, document())
    other = document(card={"name": "Stub 1", "memory_bytes": 1}, made_at="x")
    with pytest.raises(UsageError, match="other hardware"):
        bring(sqlite, other)
    assert [row.device for row in rows(sqlite, RigRow)] == ["Stub 9000"]


def test_another_family_under_a_known_engine_is_refused(sqlite):
    """Results of two code bases would share one line."""
    bring(sqlite, document())
    with pytest.raises(UsageError, match="of family llama"):
        bring(sqlite, document(family="vllm"))


SAMPLE = ("combinations", 0, "boots", 0, "measurements", 1)
BOOT = ("combinations", 0, "boots", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), "other"),
        (("version",), 2),
        (("version",), "1"),
        (("build", "commit"), "main"),
        (("build", "artifact"), "../x"),
        (("build", "engine"), '"><script>'),
        (("models",), {}),
        (("models", "target", "sha256"), "D" * 64),
        (("models", "target", "facts"), {}),
        (("combinations",), [{}]),
        (("combinations",), []),
        (("combinations", 0, "asked", "context_tokens"), 2**40),
        (("combinations", 0, "asked", "scenarios", 0, "key"), "decode-128.v9"),
        ((*SAMPLE, "decode_tps"), 5000.0),
        ((*SAMPLE, "predicted_n"), 2**40),
        ((*SAMPLE, "predicted_n"), -1),
        ((*SAMPLE, "prompt_ms"), 1e300),
        ((*SAMPLE, "run"), 2),
        ((*SAMPLE, "validity"), "splendid"),
        ((*SAMPLE, "text_head"), "x" * 30_000),
        ((*BOOT, "number"), 0),
        ((*BOOT, "load_seconds"), -1),
        ((*BOOT, "started_at"), "2026-11-30T20:00:00"),
        ((*BOOT, "peak_memory_bytes"), 2**70),
        ((*BOOT, "measurements"), "none"),
        (BOOT, None),
    ],
)
def test_a_file_that_cannot_be_true_is_refused_and_leaves_nothing(sqlite, path, value):
    """One sentence, and no row of it stays."""
    with pytest.raises(UsageError) as caught:
        bring(sqlite, changed(path, value))
    assert "\n" not in caught.value.message
    assert caught.value.advice
    for table in (ResultRow, JobRow, EngineRow, ModelFileRow, RigRow):
        assert rows(sqlite, table) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"format": "forkscout-bench", "version": NaN}',
        b" " * (MOST_BYTES + 1),
    ],
    ids=["empty", "cut", "list", "binary", "deep", "nan", "huge"],
)
def test_what_is_no_result_file_is_refused(content):
    """Whatever it is instead."""
    with pytest.raises(UsageError):
        read(content)


def test_hostile_text_is_stored_as_text(sqlite):
    """Also what no database takes as it is."""
    value = document()
    value["combinations"][0]["boots"][0]["measurements"][1]["text_head"] = "<script>\x00\ud800"
    bring(sqlite, value)
    assert rows(sqlite, SampleRow)[1].text_head == "<script>\ufffd\ufffd"


def test_a_boot_twice_is_refused(sqlite):
    """Numbers name boots."""
    value = document()
    value["combinations"][0]["boots"] *= 2
    with pytest.raises(UsageError, match="twice"):
        bring(sqlite, value)


def test_a_name_that_other_bytes_have_gets_the_digest(sqlite):
    """Identity is the sha256; two files may be called the same."""
    bring(sqlite, document())
    bring(sqlite, changed(("models", "target", "sha256"), "9" * 64))
    names = [row.name for row in rows(sqlite, ModelFileRow)]
    assert names == ["small.gguf", f"small.gguf@{'9' * 12}"]


def test_factory_files_are_read(tmp_path):
    """As the command reads them: by path, with the digest of the file."""
    path = tmp_path / "r.json"
    path.write_bytes(dumped(result_files.document()))
    found, sha256 = importing.load(path)
    assert found.build.engine == "beellama"
    assert len(sha256) == 64
    with pytest.raises(UsageError, match="cannot be read"):
        importing.load(tmp_path / "none.json")


def test_a_prompt_of_somebody_elses_does_not_get_into_our_series(sqlite):
    """A shipped name with another prompt is refused; an own scenario has a series of its own."""
    forged = replace(SHORT, prompt="Say yes.")
    with pytest.raises(UsageError, match="none of ours"):
        bring(sqlite, document(scenarios=(forged,)))
    [stored] = bring(sqlite, document(scenarios=(replace(forged, own=True),)))
    assert stored.scenario.startswith("decode-128.v2-")


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_two_arms_leave_the_rows_of_a_job_in_turns(database, order):
    """Whichever file comes first: the candidate is judged against its partner."""
    artifacts = {"A": "a" * 64, "B": "e" * 64}
    for arm in order:
        told = document(pairing={"id": "1" * 32, "arm": arm, "artifacts": artifacts})
        told["build"] |= {"artifact": artifacts[arm], "commit": ("6" if arm == "A" else "7") * 40}
        [each] = told["combinations"]
        if arm == "B":
            for sample in each["boots"][0]["measurements"]:
                sample |= {"decode_tps": 25.0, "predicted_ms": 128 / 25.0 * 1000}
        bring(database, told)
    arms = {row.arm: row.result_id for row in rows(database, ArmRow)}
    assert set(arms) == {"A", "B"}
    judged = [row for row in rows(database, VerdictRow) if row.result_id == arms["A"]]
    assert judged[-1].baseline_id == arms["B"]
    assert judged[-1].sentence.startswith("in turns: looks 10")
    with db.reading(database) as session:
        assert board.result(session, arms["B"]).beside_id == arms["A"]


def test_a_file_that_grew_takes_the_place_of_its_arm(sqlite):
    """It was imported half done and again when it was whole."""
    pairing = {"id": "1" * 32, "arm": "A", "artifacts": {"A": "a" * 64, "B": "e" * 64}}
    told = document(pairing=pairing)
    bring(sqlite, told)
    [each] = told["combinations"]
    each["boots"].append({**each["boots"][0], "number": 2})
    bring(sqlite, told)
    [arm] = rows(sqlite, ArmRow)
    assert arm.result_id == max(row.id for row in rows(sqlite, ResultRow))


def test_builds_that_were_booted_in_turns_stay_paired(sqlite):
    """The result knows its arm and the other build's digest."""
    pairing = {"id": "1" * 32, "arm": "B", "artifacts": {"A": "e" * 64, "B": "a" * 64}}
    bring(sqlite, document(pairing=pairing))
    [row] = rows(sqlite, ResultRow)
    assert row.environment["imported"]["pairing"] == pairing
    with pytest.raises(UsageError, match="pairing"):
        bring(sqlite, document(pairing=pairing | {"arm": "C"}))
