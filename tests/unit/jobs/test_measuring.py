"""Numbers from the events of one answer, honest or hostile."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dialect.events import error_of, is_steady
from jobs.dialect.measuring import measure
from jobs.dialect.output import brokenness
from jobs.model import Arrival, Validity
from jobs.scenarios import Scenario

WORDS = ("a", "whole", "game", "in", "one", "file", "with", "score", "and", "waves")
KEYS = (
    *("choices", "delta", "content", "timings", "model", "error", "tool_calls", "function"),
    *("name", "finish_reason", "stop_type", "reasoning_content", "predicted_n", "predicted_ms"),
    *("predicted_per_second", "prompt_n", "prompt_ms", "cache_n", "draft_n"),
)


def timings(**changes):
    honest = {
        "cache_n": 0,
        "prompt_n": 2048,
        "prompt_ms": 1600.0,
        "prompt_per_second": 1280.0,
        "predicted_n": 400,
        "predicted_ms": 4000.0,
        "predicted_per_second": 100.0,
    }
    return {key: value for key, value in (honest | changes).items() if value is not ...}


def delta(**parts):
    return {"model": "ours", "choices": [{"index": 0, "delta": parts, "finish_reason": None}]}


def answer(last=None, *, events=120, began=1.61, ended=5.59, text=None):
    """A stream of evenly spaced text events, then the finish and the last event."""
    step = (ended - began) / (events - 1)
    spoken = [text if text is not None else WORDS[n % len(WORDS)] + " " for n in range(events)]
    arrivals = [Arrival(began + n * step, delta(content=word)) for n, word in enumerate(spoken)]
    finish = {"model": "ours", "choices": [{"delta": {}, "finish_reason": "length"}]}
    final = {"choices": [], "model": "ours", "timings": timings()} if last is None else last
    return [
        Arrival(0.02, delta(role="assistant", content=None)),
        *arrivals,
        Arrival(ended, finish),
        Arrival(ended, final),
    ]


def with_timings(**changes):
    return answer({"choices": [], "model": "ours", "timings": timings(**changes)})


def read(arrivals, *, tokens=400, wall_seconds=5.65, **rest):
    scenario = Scenario("unit", 1, "chat", "prompt", tokens=tokens, runs=1, boots=1)
    rest = {"run": 1, "warmup": False, "alias": "ours"} | rest
    return measure(arrivals, scenario=scenario, wall_seconds=wall_seconds, **rest)


def test_an_honest_answer_is_ok():
    """All figures of an honest answer, each under its own name."""
    found = read(answer())
    assert (found.validity, found.reason) == (Validity.OK, "")
    assert found.decode_tps == pytest.approx(100.0)
    assert found.prefill_tps == pytest.approx(1280.0)
    assert found.ttft_ms == pytest.approx(1610)
    assert found.finish_reason == "length"
    assert found.model_echo == "ours"
    assert found.source == "timings"
    assert found.timings == timings()
    assert len(found.text_sha256) == 64


def test_tokens_are_never_counted_by_chunks():
    """Case C04: 120 chunks in 3 s with 431 tokens are 143.7 t/s, not 40."""
    last = timings(predicted_n=431, predicted_ms=3000.0, predicted_per_second=143.67)
    found = read(answer({"timings": last}, ended=4.6), tokens=431)
    assert found.decode_tps == pytest.approx(143.7, abs=0.05)
    assert found.validity is Validity.OK


def test_acceptance_is_unknown_rather_than_zero():
    """Case C03: no draft keys are null, zero accepted drafts are zero."""
    assert read(answer()).draft_n is None
    found = read(with_timings(draft_n=300, draft_n_accepted=0))
    assert (found.draft_n, found.draft_accepted_n) == (300, 0)


def test_a_cached_prompt_gives_no_prefill_rate():
    """Case C01: a run with cached prompt tokens has no prefill figure and says why."""
    found = read(with_timings(cache_n=2047, prompt_n=1, prompt_ms=12.0, prompt_per_second=83.3))
    assert found.prefill_tps is None
    assert found.validity is Validity.CACHED
    assert "2047" in found.reason
    assert found.decode_tps == pytest.approx(100.0)


def test_an_unstated_cache_gives_no_prefill_rate():
    """A server that does not say what it cached gets no prefill figure, but its decode is ok."""
    found = read(with_timings(cache_n=...))
    assert (found.prefill_tps, found.validity) == (None, Validity.OK)


def test_first_token_of_any_kind_and_of_content():
    """Case C20: a role is no token, reasoning is one, content has its own time."""
    arrivals = [
        Arrival(0.02, delta(role="assistant", content="")),
        Arrival(1.175, delta(reasoning_content="hmm")),
        Arrival(183.581, delta(content="yes")),
    ]
    found = read(arrivals, wall_seconds=184.0)
    assert found.ttft_ms == pytest.approx(1175)
    assert found.ttft_content_ms == pytest.approx(183581)


def test_a_tool_call_is_a_first_token():
    """Tool text counts as a token of some kind, not as content."""
    call = {"function": {"name": "look", "arguments": "{}"}}
    found = read([Arrival(0.5, delta(tool_calls=[call]))])
    assert found.ttft_ms == pytest.approx(500)
    assert found.ttft_content_ms is None


@pytest.mark.parametrize("arrivals", [[], [Arrival(0.1, {})], [Arrival(0.1, delta(content=""))]])
def test_no_token_is_empty(arrivals):
    """Case C20: an answer without a token is empty, no exception."""
    found = read(arrivals)
    assert found.validity is Validity.EMPTY
    assert found.ttft_ms is None
    assert found.decode_tps is None


def test_wall_and_arrival_rates_have_their_own_names():
    """Case C21: three rates, three names."""
    found = read(answer())
    assert found.wall_tps == pytest.approx(400 / 5.65)
    assert found.arrival_tps == pytest.approx(399 / 3.98)
    assert found.decode_tps == pytest.approx(100.0)


def test_our_own_clock_agrees_with_an_honest_server():
    """Arrival times give the server's rate within one per cent when both say the same."""
    found = read(answer())
    assert found.arrival_tps == pytest.approx(found.decode_tps, rel=0.01)


def test_a_rate_that_contradicts_count_and_time_is_invalid():
    """Case C125: 400 tokens in 4000 ms are not 0.1 t/s."""
    found = read(with_timings(predicted_per_second=0.1))
    assert found.validity is Validity.INCONSISTENT
    assert found.decode_tps == pytest.approx(100.0)


def test_both_ways_to_state_a_rate_are_honest():
    """A server may divide all tokens or those after the first; we divide all, always."""
    small = {"predicted_n": 8, "predicted_ms": 80.0}
    for stated in (100.0, 87.5):
        last = {"timings": timings(**small, predicted_per_second=stated)}
        found = read(answer(last, ended=1.69), tokens=8)
        assert found.validity is Validity.OK
        assert found.decode_tps == pytest.approx(100.0)


def test_no_time_gives_no_rate():
    """Case C126: one token in no time has a null rate and a reason, never infinity."""
    found = read(with_timings(predicted_n=1, predicted_ms=0, predicted_per_second=...), tokens=1)
    assert found.decode_tps is None
    assert found.reason == "1 tokens in no usable time"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5, "4000", None, [], True, 1e300])
def test_an_unusable_time_is_inconsistent(value):
    """A time of another type or beyond reason is no time."""
    found = read(with_timings(predicted_ms=value))
    assert (found.validity, found.decode_tps) == (Validity.INCONSISTENT, None)
    json.dumps(dict(found.timings), allow_nan=False)


def test_claims_are_held_against_our_own_clock():
    """A server cannot decode longer than the request took, nor faster than its text came."""
    slow = read(with_timings(predicted_ms=40000.0, predicted_per_second=10.0))
    assert slow.validity is Validity.INCONSISTENT
    assert "of wall time" in slow.reason
    fast = read(with_timings(predicted_ms=400.0, predicted_per_second=1000.0))
    assert fast.validity is Validity.INCONSISTENT
    assert "to arrive" in fast.reason


def test_more_tokens_than_asked_are_inconsistent():
    """A count far past the asked length is no count."""
    found = read(answer(), tokens=100)
    assert found.validity is Validity.INCONSISTENT
    assert "100 asked" in found.reason


def test_a_short_answer_is_too_short():
    """Case C19: 41 of 800 tokens are no run of 800."""
    found = read(answer(), tokens=800)
    assert (found.validity, found.reason) == (Validity.TOO_SHORT, "400 of 800 tokens")


def test_another_name_is_another_server():
    """The echoed model must be our alias in every event that names one."""
    events = answer()
    events[5] = Arrival(events[5].seconds, {"model": "theirs", "choices": []})
    found = read(events)
    assert found.validity is Validity.WRONG_SERVER
    assert found.model_echo == "theirs"


def test_timings_count_only_in_the_last_event():
    """Case C03: timings of an earlier event do not stand in for those of the last."""
    events = [*answer(), Arrival(5.6, {"choices": []})]
    found = read(events)
    assert found.validity is Validity.INCONSISTENT
    assert found.source == "wall"
    assert found.predicted_n is None


def test_fast_garbage_is_broken_output():
    """Full speed and one repeated character is not a result."""
    found = read(answer(text="/"))
    assert found.validity is Validity.BROKEN_OUTPUT
    assert found.decode_tps == pytest.approx(100.0)


def test_the_gravest_doubt_names_the_validity_and_all_are_told():
    """Several doubts are all in the reason, the gravest one first."""
    found = read(with_timings(predicted_n=9, predicted_ms=90.0, cache_n=3), tokens=400)
    assert found.validity is Validity.INCONSISTENT
    assert "9 of 400 tokens" in found.reason
    assert "3 prompt tokens" in found.reason


def test_completion_events_are_read_as_well():
    """The completion endpoint has content, a stop type and no choices."""
    events = [Arrival(0.1 * n, {"content": w, "stop": False}) for n, w in enumerate(WORDS, 1)]
    last = {"content": "", "stop": True, "stop_type": "limit", "model": "ours"}
    last["timings"] = timings(predicted_n=10, predicted_ms=1000.0, predicted_per_second=10.0)
    last["timings"] |= {"prompt_ms": 90.0, "prompt_per_second": 22755.5}
    found = read([*events, Arrival(1.1, last)], tokens=10, wall_seconds=1.2)
    assert (found.validity, found.reason) == (Validity.OK, "")
    assert found.finish_reason == "limit"


def test_an_error_event_has_its_message():
    """Errors come as objects, as strings and as nonsense."""
    assert error_of({"error": {"message": "full"}}) == "full"
    assert error_of({"error": "full"}) == "full"
    assert error_of({"error": 17}) == "no message"
    assert error_of({"choices": []}) is None


@pytest.mark.parametrize(
    "text",
    ["/" * 100, "ab" * 50, "", " \n ", "\ufffd" * 20, "the " * 40, "x" * 95 + " five", "abcd" * 9],
)
def test_broken_output(text):
    """Repeated characters, cycles and words, nothing, and undecodable bytes are broken."""
    assert brokenness(text)


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE html>\n<canvas id=game></canvas>" * 3,
        "no",
        "日本語の文章はここにあります。もう少し続けます。",
        "----------\nmenu\n----------\nstart, stop, and leave\n",
    ],
)
def test_language_is_not_broken(text):
    """Markup, short answers, other scripts and rulers are language."""
    assert brokenness(text) == ""


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(st.lists(ANYTHING, max_size=4), st.floats(0, 100))
def test_no_answer_whatever_raises(events, wall_seconds):
    """Whatever a server sends becomes a measurement that strict JSON can hold."""
    found = read([Arrival(0.1, event) for event in events], wall_seconds=wall_seconds)
    json.dumps(asdict(found), allow_nan=False).encode()
    for value in (found.text_head, found.reason, found.model_echo, found.finish_reason):
        assert "\x00" not in (value or "")
        (value or "").encode()


@pytest.mark.parametrize(
    ("gaps", "steady"),
    [
        ([20.0] * 100 + [10.0] * 200, True),
        ([20.0] * 150 + [15.0] * 50 + [10.0] * 100, False),
        ([10.0] * 200 + [12.0] * 100, False),
        ([10.0, 11.0] * 60, True),
        ([30.0, 20.0, 10.0], True),
        ([], True),
        ([0.0] * 60, True),
    ],
)
def test_an_engine_is_warm_when_the_end_is_no_faster_than_the_middle(gaps, steady):
    """Not after a number of requests; a short answer says nothing against it."""
    assert is_steady(gaps) is steady
