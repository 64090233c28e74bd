"""Whether a machine may take a bench now, by cheap facts about it; it looks at nothing itself."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_DISK_BYTES = 1 * 2**30
"""A log, boots and an unpacked artifact need room; less than this ends a bench half way."""

MOST_SKEW_SECONDS = 30.0
"""Beats and leases are judged by the database's rows: a clock further off loses its jobs."""

MOST_HELD_SHARE = 0.05
MOST_HELD_BYTES = 1 * 2**30
"""What a desktop may hold on a card; more is another program, or one of ours that stayed."""


RELEASE_SLACK_BYTES = 512 * 2**20
"""What a desktop beside us may have taken while a bench ran."""


@dataclass(frozen=True)
class CardMemory:
    """Memory of one card that somebody holds while we run nothing."""

    name: str
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class MachineFacts:
    """What was seen just before a lease; None where nobody can say.

    `card_fault` is the driver's own sentence, where the rig has a card that does not answer.
    `held_before` is what the first card held before the last bench, until it was seen free again.
    """

    disk_free_bytes: int | None = None
    skew_seconds: float | None = None
    card_fault: str = ""
    cards: tuple[CardMemory, ...] = ()
    held_before: int | None = None

    @property
    def left_bytes(self) -> int:
        """Memory of the first card that the last bench did not give back; 0 for none."""
        if self.held_before is None or not self.cards:
            return 0
        left = self.cards[0].used_bytes - self.held_before
        return left if left > RELEASE_SLACK_BYTES else 0


@dataclass(frozen=True)
class Obstacle:
    """Why no bench may start here, and what to do."""

    code: str
    says: str
    advice: str


def obstacle(facts: MachineFacts) -> Obstacle | None:
    """The first thing that keeps a bench from this machine; None where nothing does."""
    if facts.card_fault:
        return Obstacle(
            "card_lost",
            f"the card does not answer: {facts.card_fault}",
            "load the driver that its library belongs to (after an update: restart the machine, "
            "or the container)",
        )
    if facts.left_bytes:
        return Obstacle(
            "memory_held",
            f"{facts.cards[0].name} is not free again: {facts.left_bytes / 2**20:,.0f} MiB more "
            "are held than before the last bench",
            "end what holds them (`nvidia-smi` names the processes): benches go on by themselves "
            "then; or restart this worker, which takes what is held for given",
        )
    for card in facts.cards:
        allowed = max(MOST_HELD_BYTES, MOST_HELD_SHARE * card.total_bytes)
        if card.used_bytes > allowed:
            held = f"{card.used_bytes / 2**30:.1f} of {card.total_bytes / 2**30:.1f} GiB"
            return Obstacle(
                "card_in_use",
                f"{card.name} is in use: {held} are held by others",
                "end what holds it: `nvidia-smi` names the processes",
            )
    if facts.disk_free_bytes is not None and facts.disk_free_bytes < LEAST_DISK_BYTES:
        return Obstacle(
            "disk_nearly_full",
            f"{facts.disk_free_bytes / 2**20:.0f} MiB are left on the disk of the home folder",
            "free disk space; `forkscout weights prune` is a beginning",
        )
    if facts.skew_seconds is not None and abs(facts.skew_seconds) > MOST_SKEW_SECONDS:
        word = "ahead of" if facts.skew_seconds > 0 else "behind"
        return Obstacle(
            "clock_off",
            f"the clock is {abs(facts.skew_seconds):.0f} s {word} the database's",
            "set the clock, and let a time service keep it",
        )
    return None
