"""Whether a rig is well: its golden's band, what follows a run; decides and stores nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from jobs.model import Blame, RigState
from jobs.stats import median

MAD_SD = 1.4826
"""Makes the median absolute deviation of normal noise its standard deviation."""

BAND_WIDTH = 4.0
"""Standard deviations to each side: one healthy boot in 16,000 falls outside of normal noise, and
a rig is doubted only after two in a row."""

CARD_FLOOR = 0.10
"""Half of the narrowest band on a card, as a share of the middle: a card that is soaked with heat
loses 4 %, boots of one build differ by up to 5 % (public sessions); a card in a lower state, on a
narrow bus or with half its power loses far more."""

CPU_FLOOR = 0.25
"""The same where the processor takes part: boots of one build differed by up to 21 %."""

MOST_SPEEDS = 30
"""The newest boots make the band: one build over a month of days."""

GOOD_TO_LIFT = 2
BAD_TO_QUARANTINE = 2
QUARANTINE_RETRY = timedelta(hours=1)
"""How long a quarantined rig, or one whose golden gave no answer, rests before the next run."""


LEAST_GAP = timedelta(hours=6)
"""A run late in one day (UTC) does for the first hours of the next."""


NEW_GOLDEN = "the golden is new"


class Outcome(StrEnum):
    """What one run of a golden says of the rig."""

    IN_BAND = "in_band"
    OUT_OF_BAND = "out_of_band"
    FAILED = "failed"
    DISTURBED = "disturbed"
    NO_ANSWER = "no_answer"
    BASELINE = "baseline"


BAD = frozenset({Outcome.OUT_OF_BAND, Outcome.FAILED})
GOOD = frozenset({Outcome.IN_BAND, Outcome.BASELINE})


@dataclass(frozen=True)
class Band:
    """Decode speeds that a healthy rig shows, tokens per second."""

    low: float
    high: float

    def holds(self, speed: float) -> bool:
        return self.low <= speed <= self.high


@dataclass(frozen=True)
class Known:
    """The known result of a golden; without `asked` the band comes from `speeds`.

    `speeds` are medians of boots in one environment, oldest first; `text_sha256` is of the first
    measured run, empty where the text may differ.
    """

    device: str = "cpu"
    asked: Band | None = None
    speeds: Sequence[float] = ()
    text_sha256: str = ""

    @property
    def band(self) -> Band | None:
        """None before anything was measured."""
        return self.asked or band_of(self.speeds, floor=floor_of(self.device))


@dataclass(frozen=True)
class Measured:
    """What one health job saw; `failure` and `blame` where it came to no measurement."""

    speed: float | None = None
    text_sha256: str = ""
    disturbance: str = ""
    fault: str = ""
    failure: str = ""
    blame: Blame | None = None


@dataclass(frozen=True)
class Finding:
    """What a measurement means, and why."""

    outcome: Outcome
    why: str


@dataclass(frozen=True)
class Health:
    """Where a rig stands; `good` and `bad` count runs in a row."""

    state: RigState = RigState.UNPROVEN
    why: str = ""
    by_hand: bool = False
    good: int = 0
    bad: int = 0
    last_run_at: datetime | None = None
    last_good_at: datetime | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    run_wanted: str = ""


def floor_of(device: str) -> float:
    """Half of the narrowest band, as a share of its middle."""
    return CPU_FLOOR if device == "cpu" else CARD_FLOOR


def band_of(speeds: Sequence[float], *, floor: float) -> Band | None:
    """Median and scaled MAD of the newest boots, never narrower than `floor`; None for no boot."""
    newest = list(speeds)[-MOST_SPEEDS:]
    if not newest:
        return None
    middle = median(newest)
    spread = MAD_SD * median([abs(speed - middle) for speed in newest])
    half = max(BAND_WIDTH * spread, floor * middle)
    return Band(max(0.0, middle - half), middle + half)


def judge(known: Known, found: Measured) -> Finding:
    """What a run says of the rig; nothing here speaks of the engine.

    A fault that the build or what was asked of it may have, and a machine that was busy, say
    nothing of the rig.
    """
    if found.failure:
        if found.blame in (Blame.INFRASTRUCTURE, Blame.ENVIRONMENT):
            return Finding(Outcome.FAILED, found.failure)
        return Finding(Outcome.NO_ANSWER, found.failure)
    if found.disturbance:
        return Finding(Outcome.DISTURBED, found.disturbance)
    if found.fault or found.speed is None:
        return Finding(Outcome.OUT_OF_BAND, found.fault or "no run of it counts")
    if known.text_sha256 and found.text_sha256 != known.text_sha256:
        return Finding(Outcome.OUT_OF_BAND, "the text is another than the known one")
    band = known.band
    if band is None:
        return Finding(Outcome.BASELINE, f"{found.speed:.1f} t/s is what is known from now on")
    says = f"{found.speed:.1f} t/s, known are {band.low:.1f} to {band.high:.1f}"
    return Finding(Outcome.IN_BAND if band.holds(found.speed) else Outcome.OUT_OF_BAND, says)


def after_run(health: Health, finding: Finding, now: datetime) -> Health:
    """The rig after a run: doubt is confirmed by one fresh run, and so is recovery."""
    ran = replace(health, last_run_at=now, run_wanted="")
    if finding.outcome in GOOD:
        good = health.good + 1
        ran = replace(ran, good=good, bad=0, last_good_at=now)
        if health.state is not RigState.QUARANTINED:
            return replace(ran, state=RigState.TRUSTED, why="")
        if health.by_hand:
            return ran
        if good >= GOOD_TO_LIFT:
            why = f"the quarantine was lifted: {good} runs in a row were in the band"
            return replace(ran, state=RigState.TRUSTED, why=why)
        return replace(ran, run_wanted="one run was in the band, another must be")
    if finding.outcome in BAD:
        ran = replace(ran, good=0, bad=health.bad + 1)
        if health.state is RigState.QUARANTINED:
            return ran
        if ran.bad < BAD_TO_QUARANTINE:
            return replace(ran, run_wanted=f"the last run is repeated: {finding.why}")
        return replace(ran, state=RigState.QUARANTINED, why=f"golden failed twice: {finding.why}")
    return ran


def is_shut_by(before: Health, after: Health) -> bool:
    """Whether this run put the rig into quarantine."""
    return after.state is RigState.QUARANTINED and before.state is not RigState.QUARANTINED


def due(health: Health, now: datetime, *, answered: bool = True) -> str:
    """Why a health job is due now, or nothing; `answered`: the last run said something."""
    if health.run_wanted:
        return health.run_wanted
    if health.last_run_at is None:
        return NEW_GOLDEN
    rested = now - health.last_run_at >= QUARANTINE_RETRY
    if health.state is RigState.QUARANTINED:
        return "" if health.by_hand or not rested else "the rig is quarantined: has it recovered?"
    if not answered:
        return "the last run gave no answer" if rested else ""
    new_day = health.last_run_at.astimezone(UTC).date() < now.astimezone(UTC).date()
    return "daily" if new_day and now - health.last_run_at >= LEAST_GAP else ""


def moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What is different in an environment, in words; nothing where it is first seen."""
    if not before:
        return ""
    names = sorted({*before, *after})
    return ", ".join(
        f"{name.replace('_', ' ')} {before.get(name, '?')} became {after.get(name, '?')}"
        for name in names
        if before.get(name) != after.get(name)
    )


def in_environment(health: Health, environment: Mapping[str, Any]) -> Health:
    """The rig where it is now: in another environment it is unproven, whatever it was.

    A quarantine stays: what changed may or may not be the cure, which the next run tells.
    """
    change = moved(health.environment, environment)
    here = replace(health, environment=dict(environment))
    if not change:
        return here
    wanted = f"the environment changed: {change}"
    if health.state is RigState.QUARANTINED:
        return replace(here, good=0, run_wanted="" if health.by_hand else wanted)
    return replace(here, state=RigState.UNPROVEN, why=wanted, good=0, bad=0, run_wanted=wanted)


def quarantined(health: Health, why: str) -> Health:
    """Shut by a person, until a person opens it."""
    return replace(
        health, state=RigState.QUARANTINED, why=why, by_hand=True, good=0, bad=0, run_wanted=""
    )


def released(health: Health) -> Health:
    """Opened by a person; the golden says whether it is trusted again."""
    why = "released by hand"
    return replace(
        health, state=RigState.UNPROVEN, why=why, by_hand=False, good=0, bad=0, run_wanted=why
    )
