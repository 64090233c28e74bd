"""The picture and the words of the workers page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from jobs.store.workshop import ShownGolden, ShownRig, ShownRun, Workshop
from web.render import Renderer
from web.worker_pages import HEIGHT, age, figure, workers

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOSTILE = '"><img src=x onerror=alert(1)>'
GOLDEN = ShownGolden("learned", "tiny-cpu", "1.0", "decode-128", 60.0, 75.0, "", NOW)


def run(speed: float | None, outcome: str = "in_band") -> ShownRun:
    return ShownRun(NOW, outcome, "why", speed, 60.0, 75.0, 7)


RIG = ShownRig(
    id=1,
    name="cpu",
    device="cpu",
    state="trusted",
    why="",
    by_hand=False,
    since=NOW,
    last_run_at=NOW,
    last_good_at=NOW,
    run_wanted="",
    fingerprint="f00d",
    facts={"cpu_model": "Example", "cards": ["H200 0c1d"], "kernel": "6.8"},
    environment={},
    golden=GOLDEN,
    runs=(run(20.0, "out_of_band"), run(66.0)),
    doubtful_results=0,
)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(59, "59 s ago"), (61, "1 min ago"), (7300, "2 h ago"), (10**6, "11 d ago")],
)
def test_an_age_is_short(seconds: int, said: str) -> None:
    """In the largest unit that fits."""
    assert age(seconds) == said


def test_a_run_outside_of_the_band_is_drawn_outside_of_it() -> None:
    """The oldest is left, the band stands between what it allows, and words say the same."""
    found = figure(RIG)
    assert found is not None
    good, bad = found.spots
    assert (good.is_good, bad.is_good) == (True, False)
    assert found.band_y <= good.y <= found.band_y + found.band_height
    assert found.band_y + found.band_height < bad.y <= HEIGHT
    assert "66.0, 20.0" in found.words
    assert figure(replace(RIG, runs=(run(None),))) is None
    assert figure(replace(RIG, golden=None)) is None


def test_a_hostile_reason_stays_text() -> None:
    """A quarantine's reason and a fact of the machine cannot leave their places."""
    rig = replace(
        RIG, state="quarantined", why=HOSTILE, facts={"cpu_model": HOSTILE}, doubtful_results=2
    )
    html = Renderer(str).html(workers(Workshop(NOW, (rig,), (), ())), now=NOW)
    assert "<img src=x" not in html
    assert "2 results of it are doubtful" in html
    assert "As of" in html
