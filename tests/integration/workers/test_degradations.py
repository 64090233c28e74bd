"""A healthy server whose numbers are wrong: every silent degradation has its named state."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from support.offline_stub import SpokenCard
from support.stub_bench import failure, scenario

from jobs.errors import JobFailure
from jobs.model import Blame, Validity
from jobs.prompts import GRADIENT

DRAFTING = {"intent": {"speculation": "ngram"}, "drafts": [40, 20]}
ON_CARD = {"gpu_layers": 99}
VISION = {"projector": True, "intent": {"vision": "on"}}


def only_run(boots):
    """The measured run of the only boot."""
    [boot] = boots
    return boot.measurements[-1]


SILENT = {
    "S1": (
        {"say": "speculative decoding is not supported by multimodal, it will be disabled"},
        Validity.SPEC_INACTIVE,
        "is off",
    ),
    "S2": (
        {"say": "speculative decoding not supported by this context"},
        Validity.SPEC_INACTIVE,
        "is off",
    ),
    "S3": (
        {"say": "auto-asymmetric: GQA ratio 6:1 is high, upgrading K from turbo3 to q8_0"},
        Validity.CONFIG_MISMATCH,
        "K cache",
    ),
    "S4": (
        {"say": "turbo KV cache falling back to q8_0 for CPU-bound layers"},
        Validity.CONFIG_MISMATCH,
        "part of the cache",
    ),
    "S5 batch": (
        {"say": "dflash: capped -b/-ub to 256/64"},
        Validity.CONFIG_MISMATCH,
        "capped batch",
    ),
    "S5 drafter": ({"say": "dflash: setting -cd to 256"}, Validity.CONFIG_MISMATCH, "-cd 256"),
    "S6": (
        {
            "say": "draft model is specified but 'draft' speculative type is not explicitly "
            "enabled - enabling it"
        },
        Validity.CONFIG_MISMATCH,
        "drafts plainly where ngram was asked",
    ),
    "S7 ring": (
        {"say": "dflash: GPU cross ring unavailable; using CPU hidden capture"},
        Validity.DEGRADED,
        "slow path",
    ),
    "S7 cache": (
        {"say": "drafter K/V projection cache unavailable"},
        Validity.DEGRADED,
        "slow path",
    ),
    "S8": (
        {"say": "W failed to fit params to free device memory"},
        Validity.CONFIG_MISMATCH,
        "failed to fit",
    ),
    "S9 line": (
        {"say_on_post": "E invalid reduced-logits token 7"},
        Validity.BROKEN_OUTPUT,
        "tokens that are none",
    ),
    "S9 text": ({"text": "slashes"}, Validity.BROKEN_OUTPUT, "only repeats"),
    "S10 timings": ({"drafts": [], "speculative": True}, Validity.SPEC_INACTIVE, "was drafted"),
    "S10 slots": ({"speculative": False}, Validity.SPEC_INACTIVE, "is off"),
    "S11": (
        {"say": "load_tensors: offloaded 41/49 layers to GPU", **ON_CARD},
        Validity.PARTIAL_OFFLOAD,
        "41/49 layers",
    ),
    "splits": (
        {
            "say": "offloaded 49/49 layers to GPU\nsched_reserve: graph splits = 37 (with bs=512)",
            **ON_CARD,
        },
        Validity.PARTIAL_OFFLOAD,
        "37 graph splits",
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_every_silent_degradation_has_its_state(bench, name):
    """The server is healthy, the speed is high, and the run is not `ok`; its numbers are kept."""
    behaviour, validity, words = SILENT[name]
    run = only_run(bench(runs=1, **(DRAFTING | behaviour)))
    assert run.validity is validity
    assert words in run.reason
    assert run.decode_tps > 0


def test_the_same_bench_without_a_degradation_is_ok(bench):
    """What the tests above change is all that is wrong with them."""
    run = only_run(bench(runs=1, **DRAFTING))
    assert (run.validity, run.reason, run.draft_n) == (Validity.OK, "", 40)
    told = "offloaded 49/49 layers to GPU\ngraph splits = 2"
    run = only_run(bench(runs=1, say=told, **DRAFTING, **ON_CARD))
    assert run.validity is Validity.OK


def test_a_plain_drafter_that_the_engine_enables_itself_is_as_asked(bench):
    """S6 is no degradation where plain drafting is what was asked."""
    told = SILENT["S6"][0]["say"]
    drafting = {"extra_flags": ("--spec-type", "draft"), "drafts": [40, 20]}
    assert only_run(bench(runs=1, say=told, **drafting)).validity is Validity.OK


@pytest.mark.parametrize(
    ("say", "held_mib", "validity"),
    [
        ("warning: no usable GPU found\noffloaded 49/49 layers to GPU", 17_000, Validity.OK),
        ("offloaded 49/49 layers to GPU", 0, Validity.PARTIAL_OFFLOAD),
        ("warning: no usable GPU found", None, Validity.PARTIAL_OFFLOAD),
    ],
)
def test_the_card_is_believed_before_a_line(bench, say, held_mib, validity):
    """Case C29: memory of our own process decides, then the layers, a warning last."""
    held = None if held_mib is None else held_mib * 2**20
    run = only_run(bench(runs=1, say=say, cards=lambda _pids: held, **ON_CARD))
    assert run.validity is validity


@pytest.mark.parametrize("text", ["slashes", "nothing", "one word", "decay"])
def test_fast_garbage_is_broken_output_whatever_its_speed(bench, text):
    """Slashes, nothing, one word, or words that end in slashes; judged on the measured text."""
    run = only_run(bench(runs=1, text=text, token_seconds=0.0005))
    assert run.validity is Validity.BROKEN_OUTPUT
    assert run.decode_tps > 0
    assert run.sanity is None or run.sanity < 0.5


def test_times_without_any_spread_are_no_times(bench):
    """Case C18: a server that says the same to the last digit three times does not measure."""
    [boot] = bench(runs=3, predicted_ms=64.0, token_seconds=0.002)
    runs = [run for run in boot.measurements if not run.warmup]
    assert {run.validity for run in runs} == {Validity.INCONSISTENT}
    assert "exactly the same time" in runs[0].reason


def test_thinking_that_came_uninvited_is_another_run(bench):
    """And thinking that was asked for and did not come."""
    run = only_run(bench(runs=1, reasoning_tokens=16))
    assert (run.validity, "switched off" in run.reason) == (Validity.CONFIG_MISMATCH, True)
    asked = scenario(thinking=True)
    assert only_run(bench(runs=1, reasoning_tokens=16, scenario=asked)).validity is Validity.OK
    run = only_run(bench(runs=1, scenario=asked))
    assert (run.validity, "none came" in run.reason) == (Validity.CONFIG_MISMATCH, True)


@pytest.mark.parametrize(
    ("behaviour", "validity"),
    [
        ({"text": "red"}, Validity.OK),
        ({"text": "words"}, Validity.BROKEN_OUTPUT),
        ({"text": "red", "prompt_n": 1}, Validity.OK),
    ],
)
def test_a_picture_is_answered_by_what_it_shows(bench, behaviour, validity):
    """The answer names the red or is broken; case C22: a picture has no prefill rate."""
    shown = scenario(picture=GRADIENT, names="red")
    run = only_run(bench(runs=1, scenario=shown, **VISION, **behaviour))
    assert run.validity is validity
    assert run.prefill_tps is None
    assert run.timings["prompt_n"] >= 1


def test_a_drafter_must_draft_beside_a_projector(bench):
    """Some engines switch drafting off where a projector is loaded, and say nothing."""
    shown = scenario(picture=GRADIENT, names="red")
    both = {"projector": True, "intent": {"vision": "on", "speculation": "ngram"}, "text": "red"}
    assert only_run(bench(runs=1, scenario=shown, drafts=[9, 4], **both)).validity is Validity.OK
    run = only_run(bench(runs=1, scenario=shown, speculative=True, **both))
    assert (run.validity, run.draft_n) == (Validity.SPEC_INACTIVE, None)


def test_a_picture_without_a_projector_is_not_tried(bench):
    """It would be answered by a guess."""
    with pytest.raises(JobFailure, match="no projector") as caught:
        bench(scenario=scenario(picture=GRADIENT, names="red"))
    assert (caught.value.failure_class, caught.value.blame) == (
        "unsupported",
        Blame.CONFIGURATION,
    )


def test_a_crash_at_depth_is_named_by_it(bench):
    """Case C27: healthy, good at the warm-up, dead once the context was filled."""
    deep = scenario("filled", filled_tokens=900)
    caught = failure(bench, scenario=deep, exit_on_post=134, posts_before_exit=1)
    assert (caught.failure_class, caught.ending) == ("crash_depth", "exit code 134 (SIGABRT)")
    assert caught.phase == "run 1 of 2 at 900 tokens"


def test_every_run_has_its_times_soundness_and_curves(bench):
    """Inter-token times, soundness of the text, and what machine and card did meanwhile."""
    [boot] = bench(runs=1, card=SpokenCard(), token_seconds=0.02)
    run = boot.measurements[-1]
    assert 0 < run.inter_token_p50_ms <= run.inter_token_p99_ms
    assert run.sanity == 1.0
    seconds, power, held, _clock = run.after["card"]["curve"][-1]
    assert seconds > 0
    assert (power, held > 1000) == (300_000, True)
    assert run.after["host_curve"][-1][1] > 5_000_000


def test_every_boot_says_what_really_ran(bench):
    """The program by digest; what lies outside the artifact has no path of this machine."""
    [boot] = bench(runs=1)
    proof = boot.environment["proof"]
    with Path(sys.executable).resolve().open("rb") as file:
        assert proof["program_sha256"] == hashlib.file_digest(file, "sha256").hexdigest()
    assert (proof["program"], proof["libraries"]) == (None, {})


class Leaking(SpokenCard):
    """A card of which memory stays taken when its server has ended."""

    def reading(self, pids):
        found = super().reading(pids)
        return found | {"device_bytes": 300 * 2**20 if self.asked == 1 else 14 * 2**30}


def test_a_card_that_stays_taken_ends_the_job_and_blames_no_engine(bench):
    """Case C13: the next boot would fail to load; what was measured is kept."""
    caught = failure(bench, boots=2, runs=1, card=Leaking())
    assert (caught.failure_class, caught.blame) == ("memory_held", Blame.INFRASTRUCTURE)
    assert [boot.number for boot in bench.kept] == [1]


def test_a_boot_is_warmed_up_until_it_is_steady(bench):
    """Two cold answers are two warm-ups more; none shares seed or salt with a measured run."""
    cold = {"cold_posts": 2, "token_seconds": 0.01, "scenario": scenario(tokens=48)}
    [boot] = bench(runs=1, most_warm_ups=3, **cold)
    assert [(m.run, m.warmup) for m in boot.measurements] == [
        (0, True),
        (1, True),
        (2, True),
        (1, False),
    ]
    [boot] = bench(runs=1, most_warm_ups=2, **cold)
    assert [m.warmup for m in boot.measurements] == [True, True, False]
