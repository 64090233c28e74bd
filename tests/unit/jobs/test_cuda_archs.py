"""Architectures out of fat binaries, and which card runs what."""

from __future__ import annotations

import random
import struct

import pytest

from jobs.cuda_archs import MACHINE_CODE, MAGIC, PTX, CudaArchs, archs_in


def entry(kind: int, arch: int, code: bytes = b"code") -> bytes:
    """One entry as it lies in a file, its header 64 bytes long."""
    head = struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(code), 0, 0, 0, 0, arch)
    return head.ljust(64, b"\0") + code


def fat(*entries: bytes) -> bytes:
    """A fat binary of these entries."""
    body = b"".join(entries)
    return struct.pack("<4sHHQ", MAGIC, 1, 16, len(body)) + body


def test_every_binary_of_a_file_counts() -> None:
    """Machine code and PTX apart, wherever they lie."""
    content = b"\x7fELF" + fat(entry(MACHINE_CODE, 86), entry(PTX, 86)) + b"x" * 37
    content += fat(entry(MACHINE_CODE, 120))
    found = archs_in(content)
    assert found == CudaArchs(frozenset({86, 120}), frozenset({86}))
    assert str(found) == "sm_86, sm_120, compute_86"


def test_a_file_without_any_has_none() -> None:
    """A build for the processor alone is for no card."""
    assert not archs_in(b"\x7fELF" + bytes(5000))
    assert str(CudaArchs()) == "none"


@pytest.mark.parametrize(
    ("archs", "card", "runs"),
    [
        (CudaArchs(frozenset({120}), frozenset({120})), (9, 0), False),
        (CudaArchs(frozenset({86}), frozenset()), (12, 0), False),
        (CudaArchs(frozenset({90}), frozenset({90})), (12, 0), True),
        (CudaArchs(frozenset({86}), frozenset()), (8, 9), True),
        (CudaArchs(frozenset({89}), frozenset()), (8, 6), False),
        (CudaArchs(frozenset({120}), frozenset()), (12, 1), True),
        (CudaArchs(frozenset({90}), frozenset()), (9, 0), True),
    ],
)
def test_a_card_runs_its_own_version_and_compiles_older_ptx(archs, card, runs) -> None:
    """Machine code stays within a major version; PTX goes up, never down."""
    assert archs.runs_on(*card) is runs


@pytest.mark.parametrize(
    "damage",
    [
        MAGIC,
        MAGIC * 50,
        struct.pack("<4sHHQ", MAGIC, 1, 16, 2**63) + bytes(99),
        struct.pack("<4sHHQ", MAGIC, 1, 16, 128) + bytes(128),
        fat(struct.pack("<HHIQIIHHI", PTX, 0, 0, 0, 0, 0, 0, 0, 90).ljust(64, b"\0")),
        fat(entry(PTX, 2**31), entry(7, 90)),
    ],
)
def test_damage_is_passed_over(damage: bytes) -> None:
    """Sizes that lie end the reading of that binary, not of the file."""
    assert not archs_in(damage)
    assert archs_in(damage + fat(entry(MACHINE_CODE, 75))).machine == {75}


def test_a_file_that_ends_too_early_says_nothing_of_its_last_binary() -> None:
    """What is not there cannot be run."""
    whole = fat(entry(MACHINE_CODE, 90))
    assert not any(archs_in(whole[:length]) for length in range(len(whole)))


def test_random_bytes_end_soon() -> None:
    """No loop without progress."""
    noise = random.Random(1).randbytes(20_000)
    for cut in range(0, len(noise), 500):
        archs_in(noise[:cut] + MAGIC + noise[cut:])
