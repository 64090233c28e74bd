"""Every source by name; holds the list and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from scout.sources import package_index
from scout.sources.base import Source

SOURCES: Mapping[str, Source] = {
    "package_index": package_index,
}
