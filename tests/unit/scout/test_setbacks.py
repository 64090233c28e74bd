"""A step of a round that fails, beside all others."""

from __future__ import annotations

import errno
import sqlite3

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from jobs.errors import Permanent
from scout.setbacks import going_on
from scout.watch import Trouble

FULL = sqlite3.OperationalError("database or disk is full")


@pytest.mark.parametrize(
    "fault",
    [OperationalError("x", {}, FULL), OSError(errno.ENOSPC, "disk is full"), Permanent("is full")],
)
def test_a_full_disk_is_one_trouble(fault: Exception) -> None:
    """It is told, and what follows goes on."""
    troubles: list[Trouble] = []
    with going_on(troubles, "git"):
        raise fault
    assert [(each.engine, "is full" in each.message) for each in troubles] == [("git", True)]


@pytest.mark.parametrize(
    "fault",
    [
        IntegrityError("x", {}, sqlite3.IntegrityError("twice")),
        OSError(errno.EACCES, "no"),
        KeyError(),
    ],
)
def test_a_fault_of_ours_stays_loud(fault: Exception) -> None:
    """Only what comes from outside is told as a trouble."""
    with pytest.raises(type(fault)), going_on([], "git"):
        raise fault
