"""Watches a package index through pip: the newest wheels this machine can use; installs none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from jobs import pip
from scout.sources.base import Sighting, Watched

YANKED_SPARE = 10  # versions looked at beyond the newest asked for, when some were yanked
ORDER_PARTS, ORDER_DIGITS = 6, 14


def watches(engine: Watched) -> bool:
    """Engines that are released as a package."""
    return engine.package is not None


def look(
    engine: Watched,
    known: Mapping[str, str],  # noqa: ARG001  a known version is seen again: its file may differ
    *,
    log: Path | None,
) -> Sequence[Sighting]:
    """The newest versions with a wheel for this machine, yanked ones left out."""
    package = engine.package or ""
    seen: list[Sighting] = []
    for version in pip.versions(package, log=log)[: engine.newest + YANKED_SPARE]:
        wheel = pip.sight(package, version, log=log)
        if wheel.yanked:
            continue
        details = {"package": package, "filename": wheel.filename, "sha256": wheel.sha256}
        seen.append(Sighting(version, wheel.sha256, order_key(version), details))
        if len(seen) == engine.newest:
            break
    return seen


def order_key(version: str) -> str:
    """Text that sorts as versions do, digits only so that every database agrees."""
    parsed = Version(version)
    release = [*parsed.release, *[0] * ORDER_PARTS][:ORDER_PARTS]
    post = 0 if parsed.post is None else parsed.post + 1
    highest = 10**ORDER_DIGITS - 1
    return "".join(f"{min(n, highest):0{ORDER_DIGITS}d}" for n in (parsed.epoch, *release, post))
