"""Which hosts are ours or our networks', whatever way they are written."""

from __future__ import annotations

import pytest

from jobs.reach import is_inside, leads_inside

NAMES = {
    "files.example": ["8.8.8.8", "2001:4860:4860::8888"],
    "rebound.example": ["8.8.8.8", "10.0.0.7"],
    "office.example": ["192.168.3.4"],
    "127.1": ["127.0.0.1"],
    "2130706433": ["127.0.0.1"],
    "0x7f000001": ["127.0.0.1"],
}


def look_up(host):
    return NAMES.get(host, [])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.9.9.9", "::1", "[::1]", "0.0.0.1", "10.1.2.3", "172.16.0.1",
        "192.168.1.1", "169.254.169.254", "100.64.0.1", "fe80::1%eth0", "fd00::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "localhost", "LOCALHOST.", "a.localhost",
        "nas.local", "localhost.localdomain",
        "64:ff9b::7f00:1", "64:ff9b::c0a8:101", "64:ff9b:1::a00:1", "2002:c0a8:101::1",
        "::7f00:1", "::127.0.0.1", "224.0.0.1", "239.1.1.1", "ff02::1",
        "db.internal", "rebound.example", "office.example", "127.1", "2130706433", "0x7f000001",
    ],
)  # fmt: skip
def test_what_only_we_reach_is_inside(host):
    """One private address among many is enough, and so is a spelling that means one."""
    assert is_inside(host, look_up)


@pytest.mark.parametrize(
    "host",
    [
        "8.8.8.8",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "files.example",
        "nobody.example",
    ],
)
def test_what_the_public_reaches_is_not(host):
    """A name that nobody knows is nothing of ours."""
    assert not is_inside(host, look_up)


def test_only_a_way_from_outside_to_inside_leads_inside():
    """An operator's own address may send to another of theirs, and out."""
    assert leads_inside("files.example", "127.0.0.1", look_up)
    assert leads_inside("8.8.8.8", "office.example", look_up)
    assert not leads_inside("127.0.0.1", "10.0.0.7", look_up)
    assert not leads_inside("127.0.0.1", "files.example", look_up)
    assert not leads_inside("files.example", "8.8.8.8", look_up)
    assert not leads_inside("files.example", "files.example", look_up)
