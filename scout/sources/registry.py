"""Every source by name; holds the list and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from scout.sources import git_refs, package_index
from scout.sources.base import RefSource, Source

SOURCES: Mapping[str, Source] = {
    "package_index": package_index,
}

REF_SOURCES: Mapping[str, RefSource] = {
    "git_refs": git_refs,
}
