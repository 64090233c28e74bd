"""Where the dots of a picture lie, and its words."""

from __future__ import annotations

from support.entries import entry
from support.rows import NOON

from jobs.model import Measurement, Validity
from jobs.store.shown import ShownBoot
from web.figure import HEIGHT, WIDTH, bar, runs_figure


def _boot(number: int, *rates: float | None, validity: Validity = Validity.OK) -> ShownBoot:
    samples = tuple(
        Measurement(run=run, warmup=False, validity=validity, decode_tps=rate)
        for run, rate in enumerate(rates, start=1)
    )
    warmup = Measurement(run=0, warmup=True, validity=Validity.OK, decode_tps=1.0)
    return ShownBoot(number, NOON, 1.0, True, None, {}, {}, {}, [], {}, (warmup, *samples))


def test_every_run_is_a_dot_inside_the_picture() -> None:
    """Warm-ups are left out; faster is higher; refused runs are no counted dots."""
    figure = runs_figure([_boot(1, 60.0, 70.0), _boot(2, 65.0, validity=Validity.TAINTED)])
    assert figure is not None
    dots = [dot for column in figure.columns for dot in column.dots]
    assert len(dots) == 3
    assert all(0 < dot.x < WIDTH and 0 < dot.y < HEIGHT for dot in dots)
    assert dots[0].y > dots[2].y > dots[1].y
    assert [dot.counted for dot in dots] == [True, True, False]
    assert figure.columns[1].median_y is None


def test_the_picture_is_told_in_words() -> None:
    """Whoever does not see it hears every run."""
    figure = runs_figure([_boot(1, 60.0, 70.26), _boot(2, None)])
    assert figure is not None
    assert "boot 1: 60.0, 70.3; boot 2: no run" in figure.words


def test_equal_runs_and_no_runs_draw_without_error() -> None:
    """One speed has room around it; without runs there is no picture."""
    assert runs_figure([_boot(1, 50.0, 50.0, 50.0)]) is not None
    assert runs_figure([_boot(1, 0.0)]) is not None
    assert runs_figure([_boot(1)]) is None
    assert runs_figure([]) is None


def test_a_bar_is_a_share_of_the_fastest_boot() -> None:
    """The band lies between the slowest and the fastest boot."""
    found = bar(entry(decode_tps=50.0, runs=((40.0,), (60.0,))), 100.0)
    assert found is not None
    assert (found.length, found.low, found.span) == (50.0, 40.0, 20.0)
    assert bar(entry(decode_tps=None), 100.0) is None
