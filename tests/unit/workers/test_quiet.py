"""A boot that others disturbed never feeds a verdict."""

from __future__ import annotations

from jobs.model import Boot, BootFacts, Effective, Measurement, Validity
from workers.quiet import disturbance, marked


def boot(share: float | None) -> Boot:
    return Boot(
        number=2,
        load_seconds=1.0,
        facts=BootFacts(),
        effective=Effective(),
        props={},
        slots=(),
        measurements=(
            Measurement(run=1, warmup=False, validity=Validity.OK, decode_tps=4.2),
            Measurement(run=2, warmup=False, validity=Validity.TOO_SHORT, reason="3 of 128"),
        ),
        environment={} if share is None else {"foreign_cpu_share": share},
    )


def test_a_boot_beside_a_compile_is_tainted_and_keeps_its_numbers() -> None:
    """Three quarters of the processors went elsewhere: 4.2 t/s is no speed of this engine."""
    found = marked(boot(0.75))
    assert [m.validity for m in found.measurements] == [Validity.TAINTED, Validity.TOO_SHORT]
    assert found.measurements[0].decode_tps == 4.2
    assert "75% of the processors" in found.measurements[0].reason


def test_a_boot_left_alone_stays_as_it_is() -> None:
    """Background noise below the limit, or nothing known, changes nothing."""
    for share in (0.0, 0.065, None):
        assert not disturbance(boot(share))
        assert marked(boot(share)) == boot(share)
