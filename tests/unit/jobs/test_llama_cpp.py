"""The llama.cpp family: build steps and the launch command by what the help offers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from jobs.dialect.helptext import read_help
from jobs.engines import llama_cpp
from jobs.engines.base import BuildPlaces, Launch
from jobs.errors import JobFailure
from jobs.model import Blame, BuildTarget, Flags, Revision

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REVISION = Revision("beellama", "llama.cpp", COMMIT, "v0.1.2", "github")
PLACES = BuildPlaces("/src", "/work", "/out", jobs=2)
LAUNCH = Launch("/run/artifact", "/run/model.gguf", "/run/engine/e.sock", "ours", 2048, 2)
FLAGS = read_help((Path(__file__).parents[2] / "data" / "llama_help.txt").read_text())


def pairs(argv):
    """Each word with the one after it."""
    return set(pairwise(argv))


def test_the_build_configures_compiles_and_copies():
    """Three steps, no shell, the commit in the build info, only the server compiled."""
    steps = llama_cpp.build(REVISION, BuildTarget("cpu", "cmake"), PLACES)
    assert [step.name for step in steps] == ["configure", "compile", "install"]
    assert not {"sh", "bash"} & {word for step in steps for word in step.argv}
    assert f"-DLLAMA_BUILD_COMMIT={COMMIT}" in steps[0].argv
    assert "-DGGML_CUDA=ON" not in steps[0].argv
    assert ("--target", "llama-server") in pairs(steps[1].argv)
    assert ("-G", "Ninja") in pairs(steps[0].argv)


def test_a_card_adds_its_architecture():
    """A CUDA target compiles for exactly its compute capability."""
    target = BuildTarget("gpu", "cmake", cuda_arch="120", options=("-DGGML_CUDA_NO_VMM=ON",))
    argv = llama_cpp.build(REVISION, target, PLACES)[0].argv
    assert {"-DGGML_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=120", "-DGGML_CUDA_NCCL=OFF"} < set(argv)
    assert "-DGGML_CUDA_NO_VMM=ON" in argv


@pytest.mark.parametrize(
    "target",
    [
        BuildTarget("x", "cmake", options=("--build",)),
        BuildTarget("x", "cmake", options=("-DA=$(touch x)",)),
        BuildTarget("x", "cmake", options=("-P/evil.cmake",)),
        BuildTarget("x", "cmake", cuda_arch="120;touch"),
    ],
)
def test_a_strange_build_option_is_refused(target):
    """Only plain CMake definitions reach the command line."""
    with pytest.raises(JobFailure) as caught:
        llama_cpp.build(REVISION, target, PLACES)
    assert caught.value.failure_class == "unsupported"


def test_everything_that_matters_is_explicit():
    """Context, batch, cache types, slots and switches are all on the command line."""
    argv = llama_cpp.launch(LAUNCH, FLAGS).argv
    assert argv[0] == "/run/artifact/llama-server"
    assert pairs(argv) >= {
        ("-m", "/run/model.gguf"),
        ("--host", "/run/engine/e.sock"),
        ("--alias", "ours"),
        ("--ctx-size", "2048"),
        ("--threads", "2"),
        ("--threads-batch", "2"),
        ("--parallel", "1"),
        ("--batch-size", "2048"),
        ("--ubatch-size", "512"),
        ("--n-gpu-layers", "0"),
        ("--cache-type-k", "f16"),
        ("--cache-type-v", "f16"),
        ("--flash-attn", "on"),
        ("--fit", "off"),
        ("--cache-ram", "0"),
        ("--ctx-checkpoints", "0"),
        ("--reasoning", "off"),
        ("--reasoning-loop-guard", "off"),
    }
    assert {"--slots", "--no-webui", "--no-mmap"} < set(argv)


def test_what_the_help_lacks_is_not_sent():
    """Case C28: a build of another age gets the words it knows."""
    renamed = FLAGS.names - {"--no-mmap", "--reasoning-loop-guard", "--no-webui"}
    flags = replace(
        FLAGS,
        names=renamed | {"--load-mode", "--no-ui"},
        choices={**FLAGS.choices, "--load-mode": ("none", "mmap", "mlock")},
    )
    argv = llama_cpp.launch(LAUNCH, flags).argv
    assert ("--load-mode", "none") in pairs(argv)
    assert "--no-ui" in argv
    assert not {"--no-mmap", "--reasoning-loop-guard", "--no-webui"} & set(argv)


def test_intents_become_flags():
    """What every engine shares is asked in this build's words."""
    intent = {"kv": "turbo3", "batch": 1024, "ubatch": 256, "context": 2048, "speculation": "none"}
    argv = llama_cpp.launch(replace(LAUNCH, intent=intent, gpu_layers=99), FLAGS).argv
    assert pairs(argv) >= {
        ("--cache-type-k", "turbo3"),
        ("--cache-type-v", "turbo3"),
        ("--batch-size", "1024"),
        ("--ubatch-size", "256"),
        ("--n-gpu-layers", "99"),
    }


@pytest.mark.parametrize(
    ("intent", "words"),
    [
        ({"kv": "turbo8"}, "kv = turbo8"),
        ({"kv": "q8 0; rm"}, "kv = "),
        ({"speculation": "dflash"}, "speculation = dflash without a drafter"),
        ({"vision": "on"}, "vision = 'on'"),
        ({"context": 4096}, "context = 4096"),
        ({"batch": 0}, "batch = 0"),
        ({"ubatch": "many"}, "ubatch = 'many'"),
        ({"flash_attention": "maybe"}, "flash_attention = 'maybe'"),
        ({"colour": "red"}, "'colour'"),
    ],
)
def test_an_intent_no_flag_serves_is_unsupported(intent, words):
    """Case C28: never a guess, never blamed on the engine, and the intent is named."""
    with pytest.raises(JobFailure) as caught:
        llama_cpp.launch(replace(LAUNCH, intent=intent), FLAGS)
    assert caught.value.failure_class == "unsupported"
    assert caught.value.blame is Blame.CONFIGURATION
    assert words in caught.value.message
    assert caught.value.advice


def test_a_build_without_cache_types_is_unsupported():
    """A setting that matters and has no flag is not silently left out."""
    flags = Flags(FLAGS.names - {"--cache-type-k", "-ctk"}, FLAGS.choices)
    with pytest.raises(JobFailure, match="kv = f16"):
        llama_cpp.launch(LAUNCH, flags)


def test_known_own_words_are_passed_on():
    """Flags of the watch list go to the end, numbers and values with them."""
    words = ("--spec-draft-n-max", "-1", "--cpu_strict", "1")
    argv = llama_cpp.launch(replace(LAUNCH, flags=words), FLAGS).argv
    assert argv[-4:] == words


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--never-heard-of", "1"), "is unknown to"),
        (("--draft-max", "3"), "was removed from"),
        (("--host", "example.org"), "every bench sets itself"),
        (("--ctx_size", "9"), "every bench sets itself"),
        (("--cpu-strict", "7"), "--cpu-strict 7 on this build"),
    ],
)
def test_strange_own_words_are_refused(words, reason):
    """Unknown, removed and reserved flags and impossible values stop the job before it starts."""
    with pytest.raises(JobFailure, match=reason):
        llama_cpp.launch(replace(LAUNCH, flags=words), FLAGS)


def test_the_environment_is_no_way_round_the_flags():
    """Variables that are flags in disguise are refused, others are passed."""
    with pytest.raises(JobFailure, match="LLAMA_ARG_HOST"):
        llama_cpp.launch(replace(LAUNCH, env={"LLAMA_ARG_HOST": "x"}), FLAGS)
    step = llama_cpp.launch(replace(LAUNCH, env={"GGML_SCHED_DEBUG": "1"}), FLAGS)
    assert step.env == {"GGML_SCHED_DEBUG": "1", "GGML_NO_BACKTRACE": "1"}


VERBOSITY = """\
-lv,   --verbosity, --log-verbosity N   Set the verbosity threshold. Values:
                                         - 0: generic output
                                         - 3: info
                                         - 4: {fourth}
                                        (default: 3)
"""


@pytest.mark.parametrize(("fourth", "words"), [("trace", ["--verbosity", "4"]), ("debug", [])])
def test_sizes_of_buffers_are_asked_for_where_it_costs_nothing(fourth, words):
    """At the level `trace`; where 4 means debugging, which logs every token, nothing is asked."""
    levels = read_help(VERBOSITY.format(fourth=fourth))
    assert levels.log_levels == {"generic": "0", "info": "3", fourth: "4"}
    flags = replace(FLAGS, names=FLAGS.names | levels.names, log_levels=levels.log_levels)
    argv = list(llama_cpp.launch(LAUNCH, flags).argv)
    place = argv.index("--verbosity") if "--verbosity" in argv else len(argv)
    assert argv[place : place + 2] == words


WITH_DRAFTER = replace(LAUNCH, drafter_path="/weights/drafter.gguf")


def spoken(words):
    """Flags of a build whose help lists these kinds of speculation."""
    choices = {**FLAGS.choices, "--spec-type": words}
    names = FLAGS.names | {"--model-draft", "--spec-type", "--mmproj"}
    return replace(FLAGS, names=names, choices=choices)


@pytest.mark.parametrize(
    ("asked", "offered", "word"),
    [
        ("dflash", ("none", "ngram-mod", "dflash"), "dflash"),
        ("dflash", ("none", "draft-simple", "draft-dflash"), "draft-dflash"),
        ("draft", ("none", "draft-simple", "draft-dflash"), "draft-simple"),
        ("draft", ("none", "ngram-cache"), None),
        ("eagle3", ("none", "draft-eagle3"), "draft-eagle3"),
        ("copy", ("none", "copyspec", "suffix"), "copyspec"),
        ("suffix", ("none", "copyspec", "suffix"), "suffix"),
    ],
)
def test_a_kind_of_speculation_is_told_in_the_words_of_the_build(asked, offered, word):
    """Forks and releases renamed it; where a drafter alone is enough, nothing more is said."""
    launch = replace(WITH_DRAFTER, intent={"speculation": asked})
    argv = llama_cpp.launch(launch, spoken(offered)).argv
    assert argv[argv.index("--model-draft") + 1] == "/weights/drafter.gguf"
    assert (argv[argv.index("--spec-type") + 1] if "--spec-type" in argv else None) == word


@pytest.mark.parametrize(("asked", "words"), [("ngram", ["--kv-unified"]), ("none", [])])
def test_drafts_do_not_halve_the_context(asked, words):
    """The sequence that forks fall back on shares the one cache; without drafts nothing changes."""
    flags = spoken(("none", "ngram-simple"))
    flags = replace(flags, names=flags.names | {"--kv-unified"})
    argv = llama_cpp.launch(replace(LAUNCH, intent={"speculation": asked}), flags).argv
    assert [word for word in argv if word == "--kv-unified"] == words


def test_heads_inside_the_target_need_no_drafter():
    """MTP drafts from the target's own file."""
    argv = llama_cpp.launch(
        replace(LAUNCH, intent={"speculation": "mtp"}), spoken(("none", "draft-mtp"))
    ).argv
    assert "draft-mtp" in argv
    assert "--model-draft" not in argv


def test_a_build_without_the_kind_is_unsupported():
    """What the build does offer is said."""
    launch = replace(WITH_DRAFTER, intent={"speculation": "dflash"})
    with pytest.raises(JobFailure) as caught:
        llama_cpp.launch(launch, spoken(("none", "draft-simple")))
    assert (caught.value.failure_class, caught.value.blame) == ("unsupported", Blame.CONFIGURATION)
    assert "draft-simple" in caught.value.advice


def test_a_projector_is_loaded_with_vision_only():
    """Neither alone says what was meant."""
    launch = replace(LAUNCH, projector_path="/weights/projector.gguf")
    argv = llama_cpp.launch(replace(launch, intent={"vision": "on"}), spoken(())).argv
    assert argv[argv.index("--mmproj") + 1] == "/weights/projector.gguf"
    with pytest.raises(JobFailure, match="vision"):
        llama_cpp.launch(launch, spoken(()))
