"""Whether a build has code for the card at hand, read from its files; it starts nothing."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jobs.cuda_archs import CudaArchs, archs_in
from jobs.errors import JobFailure
from jobs.model import Blame
from workers.gpu import Card, first_card

LEAST_BYTES = 4096
PHASE = "check artifact"


def archs_of(tree: Path) -> CudaArchs:
    """The architectures that all files of a build hold code for together."""
    found = CudaArchs()
    for path in _programs(tree):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
            found |= archs_in(content)
    return found


def _programs(tree: Path) -> Iterator[Path]:
    for path in sorted(tree.rglob("*")):
        regular = path.is_file() and not path.is_symlink()
        if regular and path.stat().st_size >= LEAST_BYTES and _begins(path, b"\x7fELF"):
            yield path


def _begins(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def card_for(tree: Path) -> Card | None:
    """The card that a build is to be benched on, open; None for a build without code for any.

    Raises as `check_card`.
    """
    archs = archs_of(tree)
    if not archs:
        return None
    card = first_card()
    try:
        check_card(archs, card.facts() if card else None)
    except JobFailure:
        if card:
            card.close()
        raise
    return card


def check_card(archs: CudaArchs, card: Mapping[str, Any] | None) -> None:
    """Refuse a build that no kernel of could run here, before anything is started.

    `card` is what `Card.facts` says, None where the machine has none. A build without code for any
    card runs anywhere; one whose card does not say what it is gets the benefit of the doubt.
    """
    if not archs:
        return
    if card is None:
        raise JobFailure(
            f"this build is for cards ({archs}), and this machine shows none",
            failure_class="no_card",
            blame=Blame.ENVIRONMENT,
            phase=PHASE,
            advice="Look at the driver (nvidia-smi) and at nvidia-ml-py, or bench on another rig.",
        )
    compute = card.get("compute")
    if not compute or archs.runs_on(*compute):
        return
    major, minor = compute
    raise JobFailure(
        f"this build has code for {archs}, and {card.get('name')} is sm_{major}{minor}",
        failure_class="arch_mismatch",
        blame=Blame.CONFIGURATION,
        phase=PHASE,
        advice=f'Build it for this card: cuda_arch = "{major}{minor}".',
    )
