"""Two questions are the same only where everything that decides the answer is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.model import BuildTarget, Revision
from jobs.payloads import BenchPayload
from jobs.planner import bench_identity, build_identity, context_words, digest, series_key
from jobs.scenarios import SCENARIOS

REVISION = Revision("buun", "llama.cpp", "a" * 40, "version 1.2.0", "owner/name")
TARGET = BuildTarget("cpu", "cmake")
PAYLOAD = BenchPayload(
    revision_id=1,
    build_identity="b" * 64,
    model_file_id=1,
    scenario="decode-128",
    rig="cpu",
    stack="a",
    context_tokens=2048,
    runs=5,
    boots=3,
)


def test_a_frozen_version_string_does_not_merge_two_revisions() -> None:
    """Both call themselves version 1.2.0; the commit tells them apart (case C117)."""
    other = replace(REVISION, commit="c" * 40)
    assert build_identity(REVISION, TARGET) != build_identity(other, TARGET)


def test_a_new_label_of_the_same_commit_is_the_same_build() -> None:
    """A tag that is added, and a fork at the same commit, cost no second build."""
    other = replace(REVISION, label="v2", engine="beellama", source="another/name")
    assert build_identity(REVISION, TARGET) == build_identity(other, TARGET)


@pytest.mark.parametrize(
    "target",
    [
        replace(TARGET, name="other"),
        replace(TARGET, cuda_arch="120"),
        replace(TARGET, options=("-DGGML_NATIVE=OFF",)),
    ],
)
def test_another_target_is_another_build(target: BuildTarget) -> None:
    """What was built for one machine is never benched as another's."""
    assert build_identity(REVISION, TARGET) != build_identity(REVISION, target)


@pytest.mark.parametrize(
    "change",
    [
        {"build_identity": "c" * 64},
        {"rig": "other"},
        {"context_tokens": 4096},
        {"intent": {"kv": "q8_0"}},
        {"flags": ("--no-mmap",)},
        {"env": {"A": "1"}},
        {"runs": 6},
        {"boots": 4},
    ],
)
def test_another_setting_is_another_bench(change: dict) -> None:
    """Nothing that could change the number is left out of what a bench is known by."""
    scenario = SCENARIOS["decode-128"]
    ours = bench_identity(PAYLOAD, weights_sha256="d" * 64, scenario=scenario)
    changed = PAYLOAD.model_copy(update=change)
    assert bench_identity(changed, weights_sha256="d" * 64, scenario=scenario) != ours
    assert bench_identity(PAYLOAD, weights_sha256="e" * 64, scenario=scenario) != ours
    other = SCENARIOS["decode-800"]
    assert bench_identity(PAYLOAD, weights_sha256="d" * 64, scenario=other) != ours


def test_who_asks_does_not_matter() -> None:
    """The same question under another stack's name is not measured twice."""
    scenario = SCENARIOS["decode-128"]
    renamed = PAYLOAD.model_copy(update={"stack": "b"})
    assert bench_identity(renamed, weights_sha256="d" * 64, scenario=scenario) == bench_identity(
        PAYLOAD, weights_sha256="d" * 64, scenario=scenario
    )


def test_what_runs_beside_the_target_is_part_of_the_question() -> None:
    """Another drafter is another bench on another series; its row's number says nothing."""
    scenario = SCENARIOS["decode-128"]
    keys = set()
    for sha256, number in (("", None), ("1" * 64, 7), ("1" * 64, 8), ("2" * 64, 7)):
        payload = PAYLOAD.model_copy(update={"drafter_sha256": sha256, "drafter_file_id": number})
        weights = {"weights_sha256": "d" * 64, "scenario": scenario, "payload": payload}
        keys.add(
            (
                bench_identity(payload, weights_sha256="d" * 64, scenario=scenario),
                series_key(engine="buun", target="cpu", **weights),
            )
        )
    assert len(keys) == 3


def test_a_target_that_runs_alone_keeps_its_series() -> None:
    """Digests of results that were stored before drafters could be benched."""
    scenario = SCENARIOS["decode-128"]
    found = bench_identity(PAYLOAD, weights_sha256="d" * 64, scenario=scenario)
    parts = ("bench", "b" * 64, "d" * 64, scenario.key, "cpu", 2048, {}, [], {}, 5, 3)
    assert found == digest(*parts)


def test_the_title_of_a_bench_says_its_context() -> None:
    """Two questions that differ in nothing else are told apart; no title is an identity."""
    assert [context_words(tokens) for tokens in (2048, 32768, 3000)] == [
        "2k",
        "32k",
        "3000 tokens",
    ]
