"""Every known end of a build has its class, its blame and one sentence of advice."""

from __future__ import annotations

import pytest

from jobs.dialect.build_failures import BUILDING, LIMITS
from jobs.engines.base import classify
from jobs.engines.registry import FAMILIES
from jobs.lifecycle import after_failure
from jobs.model import Blame, State

INFRASTRUCTURE, ENGINE, CONFIGURATION = Blame.INFRASTRUCTURE, Blame.ENGINE, Blame.CONFIGURATION
LINES = [
    ("link_vmm", "compile", ENGINE, "mmq.cu:(.text+0x1c): undefined reference to `cuMemCreate'"),
    ("link_vmm", "compile", ENGINE, "pool.cu: undefined reference to 'cuMemAddressReserve'"),
    (
        "link_stub",
        "compile",
        INFRASTRUCTURE,
        "ld: libcuda.so.1, needed by libggml-cuda.so, not found (try using -rpath or",
    ),
    ("ui_assets", "configure", CONFIGURATION, "CMake Error: missing required asset(s): bundle.js"),
    (
        "nvcc_arch",
        "compile",
        INFRASTRUCTURE,
        "nvcc fatal   : Unsupported gpu architecture 'compute_120a'",
    ),
    ("build_oom", "compile", INFRASTRUCTURE, "Killed"),
    (
        "build_oom",
        "compile",
        INFRASTRUCTURE,
        "c++: fatal error: Killed signal terminated program cc1plus",
    ),
    (
        "build_oom",
        "compile",
        INFRASTRUCTURE,
        "/bin/sh: line 1: 4711 Killed   cicc template-instances/fattn-vec.cu",
    ),
    ("build_oom", "compile", INFRASTRUCTURE, "compile was ended by SIGKILL"),
    (
        "build_oom",
        "image",
        INFRASTRUCTURE,
        "The command '/bin/sh -c cmake --build b' returned a non-zero code: 137",
    ),
    ("image_error", "image", ENGINE, "The command '/bin/sh -c make' returned a non-zero code: 2"),
    ("base_incomplete", "image", CONFIGURATION, "E: Unable to locate package libcurl4-openssl-dev"),
    ("image_missing", "base", CONFIGURATION, "Error response from daemon: manifest unknown"),
    (
        "image_missing",
        "copy",
        CONFIGURATION,
        "Error response from daemon: Could not find the file /app in container x",
    ),
    (
        "fetch_failed",
        "base",
        INFRASTRUCTURE,
        'Get "https://images.example.org/v2/": dial tcp: lookup images.example.org: no such host',
    ),
    (
        "engine_unreachable",
        "container",
        INFRASTRUCTURE,
        "Cannot connect to the Docker daemon at unix:///run/docker.sock. Is it running?",
    ),
    (
        "submodule_missing",
        "configure",
        CONFIGURATION,
        "  does not contain a CMakeLists.txt file.",
    ),
    (
        "submodule_missing",
        "configure",
        CONFIGURATION,
        "  kompute is empty; please run git submodule update --init",
    ),
    ("ref_missing", "fetch", CONFIGURATION, "fatal: couldn't find remote ref refs/tags/v0.2"),
    ("ref_missing", "fetch", CONFIGURATION, "fatal: remote error: upload-pack: not our ref 1a2b"),
    ("tag_missing", "configure", CONFIGURATION, "fatal: No names found, cannot describe anything."),
    (
        "tag_missing",
        "configure",
        CONFIGURATION,
        "  Could not determine the project version from git; fetch the tags",
    ),
    (
        "disk_full",
        "compile",
        INFRASTRUCTURE,
        "fatal error: error writing to /tmp/cc1.s: No space left on device",
    ),
    ("disk_full", "install", INFRASTRUCTURE, "cp: error writing 'x': Disk quota exceeded"),
    (
        "network_refused",
        "configure",
        CONFIGURATION,
        "    fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
    ),
    (
        "network_refused",
        "compile",
        CONFIGURATION,
        "curl: (6) Couldn't resolve host name 'huggingface.co'",
    ),
    ("network_refused", "configure", CONFIGURATION, "npm error code EAI_AGAIN"),
    (
        "fetch_failed",
        "fetch",
        INFRASTRUCTURE,
        "https://github.com/a/b: fatal: unable to access: Could not resolve host: github.com",
    ),
    ("fetch_failed", "fetch", INFRASTRUCTURE, "fetch-pack: unexpected disconnect: early EOF"),
    (
        "tool_missing",
        "configure",
        INFRASTRUCTURE,
        "  No CMAKE_CUDA_COMPILER could be found.",
    ),
    ("tool_missing", "configure", INFRASTRUCTURE, "  CMake 3.28 or higher is required.  You have"),
    (
        "compiler_crash",
        "compile",
        INFRASTRUCTURE,
        "/build/source/x.cpp:3:1: internal compiler error: Segmentation fault",
    ),
    ("wrong_machine", "describe", CONFIGURATION, "llama-server: cannot execute binary file"),
    ("wrong_machine", "describe", CONFIGURATION, "describe was ended by SIGILL"),
    (
        "compile_error",
        "compile",
        ENGINE,
        "/build/source/src/llama-context.cpp:4277:78: error: unable to deduce 'x'",
    ),
    ("compile_error", "compile", ENGINE, "kernel.cu(12): error: identifier is undefined"),
    ("link_error", "compile", ENGINE, "main.cpp:(.text+0x5): undefined reference to `foo()'"),
    ("configure_error", "configure", ENGINE, "CMake Error at CMakeLists.txt:3 (find_package):"),
]
ENDINGS = [
    ("timeout", CONFIGURATION, "compile took longer than 3600 s"),
    ("silent", ENGINE, "configure said nothing for 900 s"),
    ("memory_limit", INFRASTRUCTURE, "compile used more than 16.0 GiB of memory"),
    ("process_limit", ENGINE, "compile started more than 1024 processes"),
    ("file_limit", ENGINE, "compile was ended by SIGXFSZ"),
    ("cpu_limit", CONFIGURATION, "compile was ended by SIGXCPU"),
]
RULES = (*BUILDING, *LIMITS)


@pytest.mark.parametrize(("name", "phase", "blame", "line"), LINES, ids=[e[3][:40] for e in LINES])
def test_each_known_line_has_its_class(name, phase, blame, line):
    """In the phase in which it is written, with the line kept as it stands."""
    found = classify(f"-- The C compiler\n{line}\nninja: build stopped", BUILDING, phase=phase)
    assert (found.rule.name, found.rule.blame) == (name, blame)
    assert found.line == line.strip()


@pytest.mark.parametrize(("name", "blame", "says"), ENDINGS, ids=[e[0] for e in ENDINGS])
def test_each_limit_of_a_worker_has_its_class(name, blame, says):
    """What a worker says of a step that it ended is in the table, too."""
    found = classify(says, LIMITS)
    assert (found.rule.name, found.rule.blame) == (name, blame)


def test_every_rule_is_shown_to_work():
    """No rule is in the table without a line that proves it, and no name comes twice."""
    names = [rule.name for rule in RULES]
    assert sorted(names) == sorted(set(names))
    assert set(names) == {each[0] for each in (*LINES, *ENDINGS)}


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_every_rule_says_what_to_do(rule):
    """In one sentence."""
    assert rule.advice.endswith(".")
    assert "\n" not in rule.advice


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_only_what_the_machine_did_is_tried_again(rule):
    """Infrastructure classes are queued again, the others end the job."""
    following = after_failure(rule.blame, 1, limit=3, failure_class=rule.name)
    assert (following.state is State.QUEUED) == (rule.blame is INFRASTRUCTURE)


def test_a_particular_cause_goes_before_what_says_only_that_it_failed():
    """CMake names the place first and the cause lines later."""
    text = "CMake Error at CMakeLists.txt:9 (add_subdirectory):\n  The source directory\n\n\
    /build/source/vendor/x\n\n  does not contain a CMakeLists.txt file.\n"
    assert classify(text, BUILDING, phase="configure").rule.name == "submodule_missing"


def test_the_first_of_two_causes_wins():
    """What came first made the rest."""
    text = "x.s: No space left on device\nc++: fatal error: Killed signal terminated program as"
    assert classify(text, BUILDING, phase="compile").rule.name == "disk_full"


def test_a_phase_decides_what_a_network_means():
    """While we fetch it is the machine's fault, inside the cage nothing can be reached."""
    line = "fatal: Could not resolve host: github.com"
    assert classify(line, BUILDING, phase="fetch").rule.name == "fetch_failed"
    assert classify(line, BUILDING, phase="configure").rule.name == "network_refused"


def test_source_that_a_compiler_quotes_is_no_message():
    """A warning shows the line it is about, and that may hold any words."""
    text = (
        "x.cpp:7:3: warning: unused\n"
        '    7 |   fail("cannot execute binary file, No space left on device");\n'
        "      |   ^~~~\n"
    )
    assert classify(text, BUILDING, phase="compile") is None


@pytest.mark.parametrize(
    "line",
    [
        "fatal: not a git repository (or any of the parent directories): .git",
        "CMake Warning at common/CMakeLists.txt:33 (message):",
        "  Git repository not found; to enable automatic generation of build info,",
        "-- Could NOT find OpenSSL, try to set the path to OpenSSL root folder",
        "-- Looking for pthread_create in pthreads - not found",
        "[12/240] Building CXX object src/CMakeFiles/llama.dir/llama-error.cpp.o",
    ],
)
def test_what_an_honest_build_says_is_no_failure(line):
    """Each of them stands in the log of a build of a real fork that went well."""
    assert classify(line, BUILDING, phase="configure") is None


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_reads_the_table(family):
    """A wheel adds its own lines before it."""
    assert set(BUILDING) <= set(family.BUILD_FAILURES)
