"""The bench against a server that misbehaves on request."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import ClassVar

import pytest
from support.stub_bench import failure, scenario

from jobs.control import Control
from jobs.errors import Stopped
from jobs.model import SILENT, Blame, Layout, Step, Validity
from workers.answers import Patience
from workers.uncaged import Uncaged


@pytest.mark.parametrize("endpoint", ["chat", "completion"])
def test_an_honest_server_gives_a_warm_up_and_every_run(bench, endpoint):
    """Each boot keeps its warm-up and all runs, all ok, with facts of server and machine."""
    boots = bench(boots=2, scenario=scenario(endpoint))
    assert [boot.number for boot in boots] == [1, 2]
    assert bench.kept == boots
    for boot in boots:
        assert boot.listener_is_child
        assert boot.layout == Layout(2048, 2048, 512, "f16", "f16")
        assert boot.memory == SILENT
        assert boot.effective.context_tokens == 2048
        assert boot.effective.build_info == "b0-stub"
        assert [(m.run, m.warmup) for m in boot.measurements] == [(0, True), (1, False), (2, False)]
        for m in boot.measurements:
            assert (m.validity, m.reason) == (Validity.OK, "")
            assert m.predicted_n == 32
            assert m.finish_reason in ("length", "limit")
            assert m.arrival_tps > 0
        assert boot.peak_memory_bytes > 5_000_000
        assert set(boot.environment) >= {"foreign_cpu_share", "load_average_before"}
        assert boot.started_at.tzinfo is not None
    assert boots[0].effective.alias != boots[1].effective.alias


def test_a_boot_keeps_what_its_process_holds_on_the_cards(bench):
    """Asked once the server is ready, of the processes of its own tree; unknown stays unknown."""
    asked = []

    def cards(pids):
        asked.append(pids)
        return 18_126 * 2**20

    [boot] = bench(runs=1, cards=cards)
    assert boot.memory == replace(SILENT, process=18_126 * 2**20)
    [pids] = asked
    assert pids
    assert os.getpid() not in pids
    [boot] = bench(runs=1, cards=lambda _pids: None)
    assert boot.memory == SILENT


@pytest.mark.parametrize(
    ("behaviour", "validity", "words"),
    [
        ({"cache_n": 23}, Validity.CACHED, "23 prompt tokens"),
        ({"predicted_n": 9}, Validity.TOO_SHORT, "9 of 32 tokens"),
        ({"predicted_n": 0}, Validity.EMPTY, "no token"),
        ({"text": "slashes"}, Validity.BROKEN_OUTPUT, "only repeats '/'"),
        ({"text": "nothing"}, Validity.BROKEN_OUTPUT, "no visible text"),
        ({"timings": "none"}, Validity.INCONSISTENT, "no timings"),
        ({"timings": "nan"}, Validity.INCONSISTENT, "no usable time"),
        ({"timings": "wrong types"}, Validity.INCONSISTENT, "no usable predicted_n"),
        ({"timings": "boastful"}, Validity.INCONSISTENT, "decode rate stated"),
        ({"timings": "lying", "token_seconds": 0.02}, Validity.INCONSISTENT, "to arrive"),
        ({"echo": "other"}, Validity.WRONG_SERVER, "'other'"),
        ({"shown_alias": "other"}, Validity.WRONG_SERVER, "'other'"),
        ({"shown_context": 512}, Validity.CONFIG_MISMATCH, "512 per slot"),
        ({"shown_slots": 4}, Validity.CONFIG_MISMATCH, "4 in effect"),
    ],
)
def test_a_wrong_number_keeps_its_reason(bench, behaviour, validity, words):
    """Every way to give a wrong number has its own validity, and the sample is kept."""
    [boot] = bench(runs=1, **behaviour)
    assert len(boot.measurements) == 2
    for measurement in boot.measurements:
        assert measurement.validity is validity
        assert words in measurement.reason


def test_several_tokens_in_a_chunk_count_by_the_server(bench):
    """Tokens come from the server's count, however few chunks carry them."""
    [boot] = bench(runs=1, tokens_per_chunk=8, drafts=[40, 0])
    run = boot.measurements[1]
    assert (run.validity, run.predicted_n) == (Validity.OK, 32)
    assert (run.draft_n, run.draft_accepted_n) == (40, 0)


def test_reasoning_comes_before_content(bench):
    """The first token of any kind and the first of content are two numbers."""
    [boot] = bench(runs=1, reasoning_tokens=16, token_seconds=0.005)
    run = boot.measurements[1]
    assert run.ttft_content_ms - run.ttft_ms > 50


def test_junk_between_the_events_is_passed_over(bench):
    """Lines that are no JSON object change nothing, hostile text is stored in a plain form."""
    [boot] = bench(runs=1, junk_lines=True, text="hostile")
    run = boot.measurements[1]
    assert run.validity is Validity.OK
    assert "\x00" not in run.text_head
    run.text_head.encode()


def test_missing_slots_are_not_missing_settings(bench):
    """A server without /slots is judged by /props."""
    [boot] = bench(runs=1, slots_status=501)
    assert boot.slots == []
    assert boot.measurements[1].validity is Validity.OK


def test_a_slow_start_with_log_lines_succeeds(bench):
    """A load longer than the stall limit is fine as long as the log grows."""
    [boot] = bench(runs=1, load_seconds=2.0, load_line_seconds=0.2)
    assert boot.load_seconds > 2.0


def test_a_silent_start_is_stalled(bench):
    """A load without a log line or new memory ends after the stall limit."""
    began = time.monotonic()
    caught = failure(bench, load_seconds=60)
    assert (caught.failure_class, caught.phase) == ("stalled", "load")
    assert time.monotonic() - began < 6


def test_a_start_that_never_ends_meets_the_ceiling(bench):
    """Log lines alone do not hold a worker for ever."""
    patience = Patience(stall_seconds=1.0, load_seconds=1.5)
    caught = failure(bench, load_seconds=60, load_line_seconds=0.1, patience=patience)
    assert caught.failure_class == "load_timeout"


def test_a_dead_server_fails_at_once(bench):
    """An exit during the load is seen at once, with code and last words."""
    began = time.monotonic()
    caught = failure(bench, exit_on_load=1, say="nothing anybody knows")
    assert (caught.failure_class, caught.blame) == ("unknown", Blame.ENGINE)
    assert (caught.phase, caught.ending) == ("load", "exit code 1")
    assert caught.lines[-1] == "nothing anybody knows"
    assert "nothing anybody knows" in caught.message
    assert time.monotonic() - began < 3


def test_a_known_line_names_the_failure(bench):
    """A line of the failure table decides class, blame and advice, with the phase it came in."""
    caught = failure(bench, exit_on_load=1, say="E srv: unknown model architecture: 'dflash'")
    assert caught.failure_class == "arch_unknown"
    assert caught.blame is Blame.CONFIGURATION
    assert "phase load" in caught.message
    assert caught.advice


def test_a_crash_in_the_first_request_has_its_own_name(bench):
    """A healthy server that dies on the first request is told from one that never loaded."""
    caught = failure(bench, exit_on_post=139)
    assert caught.failure_class == "crash_first_request"
    assert "exit code 139 (SIGSEGV)" in caught.message
    assert bench.kept == []


def test_a_later_crash_keeps_what_was_measured(bench):
    """The runs before a crash are kept, the failure names the run."""
    caught = failure(bench, exit_on_post=134, posts_before_exit=2)
    assert (caught.failure_class, caught.phase) == ("crash_request", "run 2 of 2")
    assert "SIGABRT" in caught.message
    [boot] = bench.kept
    assert [m.run for m in boot.measurements] == [0, 1]


def test_a_kill_from_outside_is_no_fault_of_the_engine(bench):
    """SIGKILL without a word is the machine's doing until shown otherwise."""
    caught = failure(bench, exit_on_post=137)
    assert (caught.failure_class, caught.blame) == ("killed", Blame.INFRASTRUCTURE)


@pytest.mark.parametrize("endpoint", ["chat", "completion"])
def test_a_hang_is_seen_by_its_tokens(bench, endpoint):
    """Health says 200 and SIGTERM is ignored, and still the hang ends, named by its token."""
    caught = failure(bench, hang_after_tokens=17, ignore_term=True, scenario=scenario(endpoint))
    assert caught.failure_class == "hung"
    assert "hung at token 17" in caught.message


def test_an_endless_stream_is_cut(bench):
    """A server that never stops is cut by count, not by patience."""
    caught = failure(bench, endless=True)
    assert caught.failure_class == "output_flood"


def test_a_flood_of_log_is_cut(bench):
    """The log's own limit ends a server that writes for ever."""
    caught = failure(bench, log_flood=True)
    assert caught.failure_class == "output_limit"


def test_a_refused_request_speaks_with_the_servers_words(bench):
    """An HTTP error is classified by its message, and kept apart from a crash."""
    words = "request (70000 tokens) exceeds the available context size (2048 tokens)"
    caught = failure(bench, status=400, error=words)
    assert (caught.failure_class, caught.blame) == ("ctx", Blame.CONFIGURATION)
    assert failure(bench, status=500, error="who knows").failure_class == "http_500"


def test_an_error_inside_the_stream_is_a_failure(bench):
    """An error event is not an answer, although HTTP says 200."""
    caught = failure(bench, error_event="Context size has been exceeded.")
    assert caught.failure_class == "ctx"


def test_a_cancel_ends_a_stream_within_two_seconds(bench):
    """A cancel in the middle of an answer ends everything at once."""
    control = Control()
    timer = threading.Timer(1.0, control.ask, args=("by hand",))
    timer.start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        bench(control=control, hang_after_tokens=5, ignore_term=True, patience=Patience())
    assert time.monotonic() - began < 3
    timer.join()


def test_a_cancel_ends_a_load(bench):
    """A cancel while the server loads ends it at once."""
    control = Control()
    control.ask("by hand")
    with pytest.raises(Stopped):
        bench(control=control, load_seconds=60)


def test_a_foreign_listener_is_never_measured(bench):
    """A server on our socket that is not our child stops the job before the clock starts."""
    foreign = []

    class Hijacked(Uncaged):
        def start(self, step, mounts, **rest):
            foreign.append(subprocess.Popen(step.argv, stdout=subprocess.DEVNULL))
            idle = Step("idle", (sys.executable, "-c", "import time; time.sleep(60)"))
            return super().start(idle, mounts, **rest)

    try:
        caught = failure(bench, sandbox=Hijacked())
    finally:
        for process in foreign:
            process.kill()
            process.wait()
    assert caught.failure_class == "wrong_server"
    assert caught.blame is Blame.INFRASTRUCTURE


def test_progress_tells_run_speed_and_when_it_may_end(bench):
    """Boot and run, tokens a second now, and an estimate by which to decide whether to wait."""

    class Heard(Control):
        notes: ClassVar[list[str]] = []

        def report(self, phase, **rest):
            super().report(phase, **rest)
            if phase == "measure":
                self.notes.append(rest["note"])
                assert 0 <= rest["done"] <= rest["total"] == 6

    bench(boots=2, control=Heard(), scenario=scenario(tokens=64), token_seconds=0.03)
    assert Heard.notes[0] == "boot 1 of 2, warm-up"
    assert any(" t/s, about " in note for note in Heard.notes)
    assert any(note.startswith("boot 2 of 2, run 2 of 2") for note in Heard.notes)
