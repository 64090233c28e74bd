"""Pages from values: units, hostile text, and nothing shown where there is nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from support.entries import entry, job
from support.rows import NOON

from jobs.model import Blame, State, Validity, VerdictKind
from jobs.store.shown import Front, Queue, ShownEngine
from jobs.store.source_health import Allowance, Outlook, SourceHealth, Wait
from web import pages, thresholds, words
from web.ranking import boards
from web.redact import redact
from web.render import (
    Renderer,
    change,
    counted,
    milliseconds,
    moment,
    seconds,
    share,
    size,
    tps,
)

HOSTILE = '"><img src=x onerror=alert(1)><svg onload=alert(2)>'
FRONT = Front((), (), (), engines=0, revisions=0, builds=0, results_total=0)
QUEUE = Queue((), (), 0, (), (), ())
SICK = SourceHealth("github_pulls", "degraded", NOON, NOON, 3, "a/b: no answer", "renew the token")


def _html(page: pages.Page) -> str:
    return Renderer(partial(redact, names=["alice"])).html(page, now=NOON)


def _board(*entries) -> pages.Page:
    return pages.leaderboard(boards(entries, lambda _l, _r: True), now=NOON)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (tps(66.44), "66.4 t/s"),
        (tps(None), "no data"),
        (tps(float("nan")), "no data"),
        (milliseconds(79.81), "79.8 ms"),
        (seconds(1.234), "1.2 s"),
        (seconds(212.5), "3 min 32 s"),
        (size(999), "999 B"),
        (size(612_000_000), "612.0 MB"),
        (size(2e15), "2000.0 TB"),
        (size(None), "no data"),
        (share(0.276), "27.6 %"),
        (change(-0.123), "\N{MINUS SIGN}12.3 %"),
        (change(22.53), "23.5\N{MULTIPLICATION SIGN} (+2253.0 %)"),
        (change(None), "no data"),
        (counted(1, "run"), "1 run"),
        (counted(None, "run"), "no data"),
        (moment(None), "no data"),
        (
            str(moment(NOON)),
            '<time datetime="2026-11-03T12:00:00+00:00">2026-11-03 12:00 UTC</time>',
        ),
    ],
)
def test_every_number_has_its_unit(shown: str, text: str) -> None:
    """A value is told with its unit, a missing or impossible one as "no data" (C120, C126)."""
    assert shown == text


def test_hostile_names_are_text_on_the_leaderboard() -> None:
    """Markup in engine, label, model and reason appears as text and makes no element (C134)."""
    html = _html(
        _board(
            entry(engine=HOSTILE, label=HOSTILE, model_file=HOSTILE),
            entry(engine=HOSTILE, validity=Validity.TAINTED, validity_reason=HOSTILE),
        )
    )
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert not re.search(r"<img src=x|<svg onload", html)


def test_hostile_text_and_paths_of_a_job_are_text_without_the_machine() -> None:
    """Title, message, advice and log are escaped, and no home folder is left (C134, C145)."""
    failed = job(
        state=State.FAILED,
        title=HOSTILE,
        failure_class="compile_error",
        blame=Blame.ENGINE,
        message="/home/alice/build/x.cu:12",
        advice=HOSTILE,
    )
    log = pages.LogTail(f"{HOSTILE}\n/home/alice/build/x.cu:12 by alice\x1b[0m", cut=True)
    html = _html(pages.job(failed, log))
    assert "alice" not in html
    assert "&lt;build&gt;/x.cu:12" in html
    assert not re.search(r"<img src=x|<svg onload|\x1b", html)


def test_a_page_with_an_uncaged_result_says_so() -> None:
    """The note stands on the page as soon as one entry ran without a sandbox, and only then."""
    assert "ran without a sandbox" in _html(_board(entry(sandbox="uncaged")))
    assert "ran without a sandbox" not in _html(_board(entry()))
    front = replace(FRONT, results=(entry(sandbox="uncaged"),))
    assert "ran without a sandbox" in _html(pages.index(front, (), QUEUE, now=NOON))


def test_an_old_number_is_called_stale() -> None:
    """Beyond STALE_DAYS the line is marked."""
    old = NOON - timedelta(days=thresholds.STALE_DAYS, seconds=1)
    assert "stale</span>" in _html(_board(entry(measured_at=old)))
    assert "stale</span>" not in _html(_board(entry()))


def test_missing_figures_are_called_so() -> None:
    """A result without numbers shows "no data" and "no drafts", never None or 0."""
    bare = entry(
        decode_tps=None, ttft_ms=None, peak_memory_bytes=None, runs=(), validity=Validity.EMPTY
    )
    html = _html(_board(bare))
    assert html.count("no data") >= 3
    assert "no drafts" in html
    assert "None" not in html


@pytest.mark.parametrize(
    ("page", "next_step"),
    [
        (pages.index(FRONT, (), QUEUE, now=NOON), "make demo"),
        (pages.leaderboard((), now=NOON), "make demo"),
        (pages.queue(QUEUE, now=NOON, silent_seconds=45), "forkscout up"),
        (pages.engines(()), "watchlist import"),
        (pages.method(), "decode-128.v2"),
    ],
)
def test_an_empty_installation_says_what_to_do(page: pages.Page, next_step: str) -> None:
    """Each page is useful before anything was measured."""
    assert next_step in _html(page)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"position": 3}, "Place 3 in the queue bench.cpu."),
        ({"position": 3, "waits_for": (7, 9)}, "It waits until job 7, job 9 succeeded."),
        ({"state": State.BLOCKED, "blocked_by": "no_sandbox"}, "apt install bubblewrap"),
        ({"state": State.BLOCKED, "blocked_by": "job:7", "waits_for": (7,)}, "until job 7"),
        ({"state": State.BLOCKED}, "no reason was recorded"),
        ({"state": State.RUNNING, "cancel_requested": True}, "asked to stop"),
        ({"state": State.DEAD}, "a person must look"),
    ],
)
def test_a_job_says_why_it_is_where_it_is(fields: dict, reason: str) -> None:
    """One sentence for waiting, blocked, stopping and dead jobs."""
    assert reason in pages.why(job(**fields))


def test_every_word_we_store_is_explained() -> None:
    """Each validity, verdict, state and blame has its sentence."""
    assert set(words.VALIDITY) == set(Validity)
    assert set(words.VERDICT) == set(VerdictKind)
    assert set(words.STATE) == set(State)
    assert set(words.BLAME) == set(Blame)


def test_the_method_page_quotes_the_constants_by_name() -> None:
    """A reader finds the thresholds under the names they have in the code."""
    html = _html(pages.method())
    for constant in thresholds.CONSTANTS:
        assert constant.name in html
        assert constant.value in html


def test_an_engine_without_revisions_says_so() -> None:
    """An engine without results is no empty table: the page says how to get one."""
    found = ShownEngine("buun", "llama.cpp", "a/b", None, None, "auto", ("main",), False, ())
    assert "forkscout submit bench --engine buun" in _html(pages.engines((found,)))


def test_a_source_that_is_not_well_is_seen_on_two_pages() -> None:
    """Since when, why and what to do on the queue page, a line on the front page."""
    quota = Allowance("core", 5000, 4700, NOON + timedelta(minutes=9))
    well = SourceHealth("git", "well", NOON)
    wait = Wait("the model hub", NOON + timedelta(minutes=5), "its quota is used up")
    over = Wait("GitHub", NOON, "it asked us to slow down")
    outlook = Outlook((well, SICK), (quota,), (wait, over), token_ends_at=NOON)
    found = replace(QUEUE, outlook=outlook)
    html = _html(pages.queue(found, now=NOON, silent_seconds=60))
    for text in ("github pulls", "degraded", "a/b: no answer", "2 other places", "renew the token",
                 "core: 4700 of 5000 left", "nothing to do",
                 "the model hub is left alone: its quota is used up"):  # fmt: skip
        assert text in html, text
    assert "GitHub is left alone" not in html
    front = _html(pages.index(FRONT, (), found, now=NOON))
    assert "github pulls is degraded since" in front
    assert "is degraded" not in _html(pages.index(FRONT, (), QUEUE, now=NOON))


def test_progress_in_bytes_is_read_in_larger_units() -> None:
    """A download of a weight is told in GB, with its rate and the time left."""
    progress = {
        "phase": "download",
        "done": 5.2e9,
        "total": 17e9,
        "unit": "B",
        "note": "4 min left",
    }
    running = job(state=State.RUNNING, progress=progress)
    text = _html(pages.queue(replace(QUEUE, running=(running,)), now=NOON, silent_seconds=45))
    assert "download 5.2 GB of 17.0 GB, 4 min left" in text
