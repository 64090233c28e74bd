"""Names for failures from exit codes and logs."""

from __future__ import annotations

import pytest

from jobs.dialect.failures import FAILURES
from jobs.errors import is_unexplained
from jobs.model import Blame
from workers import autopsy

DRAFTER = "load drafter"
MMPROJ = ("mmproj_mismatch", "load projector")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exit code 0"),
        (1, "exit code 1"),
        (-11, "exit code 139 (SIGSEGV)"),
        (139, "exit code 139 (SIGSEGV)"),
        (134, "exit code 134 (SIGABRT)"),
        (255, "exit code 255"),
    ],
)
def test_an_exit_code_is_told_in_one_form(code, words):
    """A signal reads the same whether it came as a negative number or as 128 + n."""
    assert autopsy.exit_words(code) == words


@pytest.mark.parametrize(
    ("phase", "name"),
    [
        ("load", "crash_load"),
        ("first request", "crash_first_request"),
        ("run 3 of 5", "crash_request"),
        ("run 2 of 2 at 65536 tokens", "crash_depth"),
    ],
)
def test_an_unknown_crash_is_named_by_its_phase(phase, name):
    """Case C27: where it died is part of the class, how it died part of the message."""
    found = autopsy.crash(139, phase=phase, log_text="all is well\n", rules=FAILURES)
    assert (found.failure_class, found.phase, found.blame) == (name, phase, Blame.ENGINE)
    assert "139" in found.message
    assert "all is well" in found.message
    assert (found.ending, found.lines) == ("exit code 139 (SIGSEGV)", ("all is well",))


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_an_ending_that_nobody_knows_is_unknown_and_brings_its_log(code):
    """An exit without a signal and without a known line: the last 50 lines go to a person."""
    log = "\n".join(f"line {number} " + "x" * 1000 for number in range(80))
    found = autopsy.crash(code, phase="load", log_text=log, rules=FAILURES)
    assert (found.failure_class, found.ending) == ("unknown", f"exit code {code}")
    assert len(found.lines) == 50
    assert found.lines[0].startswith("line 30 ")
    assert max(map(len, found.lines)) <= 300
    assert is_unexplained(found.failure_class)


@pytest.mark.parametrize(
    ("log", "name", "phase"),
    [
        ("error: invalid argument: --x", "bad_flag", "arguments"),
        ("couldn't bind HTTP server socket, hostname: x, port: 1", "port", "bind"),
        ("missing tensor 'a'\nE failed to load draft model, 'd.gguf'", "tensor_missing", DRAFTER),
        ("unknown projector type: x\nfailed to load multimodal model, 'm'", MMPROJ[0], MMPROJ[1]),
        ("missing tensor 'a'\nE failed to load model, 't.gguf'", "tensor_missing", "load target"),
        ("missing tensor 'a'", "tensor_missing", "load"),
    ],
)
def test_the_log_says_which_part_of_the_load_failed(log, name, phase):
    """Arguments, socket, target, drafter or projector: the class alone does not tell."""
    found = autopsy.crash(1, phase="load", log_text=log, rules=FAILURES)
    assert (found.failure_class, found.phase) == (name, phase)


def test_a_known_line_outranks_the_exit_code():
    """A log that says why is believed before the signal that followed."""
    log = "x\nggml.c:1: GGML_ASSERT(offset == 0) failed\nlibggml.so(+0x1)[0x2]\n"
    found = autopsy.crash(134, phase="load", log_text=log, rules=FAILURES)
    assert found.failure_class == "assert"
    assert "exit code 134 (SIGABRT)" in found.message


@pytest.mark.parametrize("code", [-9, 137])
def test_a_kill_is_the_machines(code):
    """SIGKILL comes from outside."""
    found = autopsy.crash(code, phase="load", log_text="", rules=FAILURES)
    assert (found.failure_class, found.blame) == ("killed", Blame.INFRASTRUCTURE)


@pytest.mark.parametrize(
    ("status", "body", "name", "blame"),
    [
        (500, "Context size has been exceeded.", "ctx", Blame.CONFIGURATION),
        (500, "", "http_500", Blame.ENGINE),
        (404, "<html>" * 500, "http_404", Blame.CONFIGURATION),
        (200, "who knows", "error_event", Blame.ENGINE),
    ],
)
def test_a_refusal_is_classified_by_its_words(status, body, name, blame):
    """The server's words decide, then the status; the message stays short."""
    found = autopsy.refusal(status, body, phase="run 1 of 5", rules=FAILURES)
    assert (found.failure_class, found.blame) == (name, blame)
    assert len(found.message) < 500
