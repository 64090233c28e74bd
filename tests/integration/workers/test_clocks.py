"""The clock that a card usually has, learned from what its rig measured before."""

from __future__ import annotations

import pytest
from support.rows import Rows

from jobs import db
from jobs.model import Validity
from workers.clocks import usual_clock

FACTS = {"architecture": "x86_64", "driver": "570.1", "power_limits_w": [600], "kernel": "6.1"}


def ran_at(mhz):
    return {"after": {"card": {"range": {"sm_mhz": [mhz - 30, mhz, mhz + 30]}}}}


def test_a_rig_learns_from_its_own_ok_boots(database):
    """Another rig, power limit or driver, a tainted result and a doubted one teach nothing."""
    with db.writing(database) as session:
        rows = Rows(session)
        rig, other = rows.rig(name="big"), rows.rig(name="small")
        common = {"rig": rig, "environment": FACTS}
        rows.result(sample=ran_at(2600), **common)
        assert usual_clock(session, "big", FACTS) is None
        rows.result(sample=ran_at(2610), **common)
        for changes in (
            {"rig": other},
            {"environment": FACTS | {"power_limits_w": [300]}},
            {"environment": FACTS | {"driver": "580.2"}},
            {"validity": Validity.TAINTED},
            {"doubt": "its golden failed"},
        ):
            for _ in range(3):
                rows.result(sample=ran_at(900), **(common | changes))
        assert usual_clock(session, "big", FACTS) == pytest.approx(2605 * 0.9)
        assert usual_clock(session, "nowhere", FACTS) is None


def test_a_rig_whose_card_says_nothing_has_no_usual_clock(sqlite):
    """Samples without a card, or with words that are none of ours, are passed over."""
    with db.writing(sqlite) as session:
        rows = Rows(session)
        rig = rows.rig(name="big")
        for after in ({}, {"card": None}, {"card": {"range": {"sm_mhz": "fast"}}}):
            rows.result(rig=rig, environment=FACTS, sample={"after": after})
        assert usual_clock(session, "big", FACTS) is None
