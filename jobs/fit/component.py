"""One line of the table of what takes memory; it has two figures and says where they come from."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.fit.amounts import Band, Basis


@dataclass(frozen=True)
class Component:
    """What takes memory: after load, and with the context filled.

    `rivals` are what shares one buffer: the largest of them is the likely size.
    """

    name: str
    loaded: Band
    filled: Band
    basis: Basis
    note: str = ""
    rivals: tuple[tuple[str, int], ...] = ()


def constant(
    name: str,
    band: Band,
    basis: Basis,
    note: str = "",
    *,
    rivals: tuple[tuple[str, int], ...] = (),
) -> Component:
    """A component that does not grow after load."""
    return Component(name, band, band, basis, note, rivals)
