"""The page of negatives as a value: what stands and what was overturned, side by side; pure."""

from __future__ import annotations

from jobs.negatives import MOST_DAYS
from jobs.store.shown_negatives import Negatives
from web.pages import Page


def negatives(found: Negatives) -> Page:
    """What does not work and for how long still, beside what was thought not to work."""
    return Page(
        "negatives.html",
        "negatives.html",
        "Negatives",
        {"negatives": found, "most_days": f"{MOST_DAYS:g}"},
    )
