"""The compiler's cache: one layer per engine and trust over a base that forks only read.

It hands out mounts and variables and bounds the disk; what lies in a layer it never opens.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jobs.errors import Permanent
from jobs.model import Trust
from jobs.trees import entries, remove
from workers.sandbox import STEP_PATH, Mount, Sandbox

LAYER_PLACE = "/cache/layer"
BASE_PLACE = "/cache/base"
STATISTICS = ".compiler-cache-statistics"
STATISTICS_BYTES = 16 * 2**20
LAYER_SHARE = 2  # one layer may take half of all, the base as much
LANGUAGES = ("C", "CXX", "CUDA", "HIP")
HITS = frozenset({"direct_cache_hit", "preprocessed_cache_hit"})
NOT_COUNTED = 2**62
"""The size of a layer that no compiler's cache looks like: too deep, or closed."""

_KEY = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Layer:
    """What the steps of one build need to use the cache; empty where there is none."""

    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    key: str = ""


@dataclass(frozen=True)
class Counts:
    """What the compiler's cache said of one build; a stranger's build may have written it."""

    hits: int = 0
    misses: int = 0
    base_hits: int = 0
    uncacheable: int = 0

    def stored(self) -> dict[str, int]:
        """As it is kept with the build."""
        return {
            "hits": self.hits,
            "misses": self.misses,
            "base_hits": self.base_hits,
            "uncacheable": self.uncacheable,
        }


def open_layer(
    root: Path,
    sandbox: Sandbox,
    *,
    engine: str,
    source: str,
    trust: Trust,
    work: Mount,
    size_bytes: int,
    writes_base: bool = False,
) -> Layer:
    """The layer of this engine at this trust, made where it is missing; its base is read-only.

    `writes_base` is for the one engine whose builds a person trusts for all.
    Empty without `size_bytes`, without ccache, and without a cage that keeps layers apart.
    """
    if not size_bytes or not sandbox.caged or shutil.which("ccache", path=STEP_PATH) is None:
        return Layer()
    key = layer_key(engine, source, trust, cage=sandbox.name)
    store = root / "layers" / key / "store"
    base = root / "base"
    for folder in (store, base):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    os.utime(store.parent)
    layer = Mount(store, LAYER_PLACE, writable=True)
    shared = Mount(base, BASE_PLACE, writable=writes_base)
    mode = "" if writes_base else "|read-only"
    env = {
        "CCACHE_DIR": sandbox.path(layer),
        "CCACHE_REMOTE_STORAGE": f"file:{sandbox.path(shared)}{mode}",
        "CCACHE_MAXSIZE": str(size_bytes // LAYER_SHARE),
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_STATSLOG": f"{sandbox.path(work)}/{STATISTICS}",
        **{f"CMAKE_{language}_COMPILER_LAUNCHER": "ccache" for language in LANGUAGES},
    }
    return Layer((layer, shared), env, key)


def layer_key(engine: str, source: str, trust: Trust, *, cage: str) -> str:
    """Names a layer: the same engine at another trust, or a namesake elsewhere, has its own.

    So has each kind of cage, whose files belong to another user.
    """
    return hashlib.sha256("\0".join((engine, source, trust, cage)).encode()).hexdigest()[:32]


def counts(work: Path) -> Counts:
    """What was said in this work folder of a build; read bounded, since strangers wrote it."""
    try:
        fd = os.open(work / STATISTICS, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            data = os.read(fd, STATISTICS_BYTES)
        finally:
            os.close(fd)
    except OSError:
        return Counts()
    return count(data.decode(errors="replace"))


def count(text: str) -> Counts:
    """Counts of a statistics log: a line with # begins the words of one compilation."""
    hits = misses = base_hits = uncacheable = 0
    for block in re.split(r"^# .*$", text, flags=re.MULTILINE)[1:]:
        words = set(block.split())
        if words & HITS:
            hits += 1
            base_hits += "remote_storage_hit" in words
        elif "cache_miss" in words:
            misses += 1
        else:
            uncacheable += 1
    return Counts(hits, misses, base_hits, uncacheable)


def trim(root: Path, size_bytes: int, *, keep: str = "") -> int:
    """Bring the cache under its size, whatever builds did to theirs; says how many bytes went.

    Layers that were not used for long go first, whole; of the base its oldest entries.
    """
    bound = size_bytes // LAYER_SHARE
    freed = _trim_base(root / "base", bound)
    layers = [(path, _size_bytes(path)) for path in _layers(root)]
    gone = {path for path, size in layers if size > bound}
    total = sum(size for path, size in layers if path not in gone)
    for path, size in layers:
        if total > bound and path not in gone and path.name != keep:
            gone.add(path)
            total -= size
    for path, size in layers:
        if path in gone:
            remove(path)
            freed += size
    return freed


def _layers(root: Path) -> list[Path]:
    """All layers, the one least recently used first."""
    folder = root / "layers"
    found = [path for path in folder.iterdir() if _KEY.fullmatch(path.name)]
    return sorted(found, key=lambda path: (path.stat().st_mtime, path.name))


def _size_bytes(tree: Path) -> int:
    try:
        return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in entries(tree))
    except (Permanent, PermissionError):
        return NOT_COUNTED


def _trim_base(base: Path, bound: int) -> int:
    held = sorted(_files(base))
    total = sum(size for _, size, _ in held)
    freed = 0
    for _, size, path in held:
        if total <= bound:
            break
        path.unlink(missing_ok=True)
        total -= size
        freed += size
    return freed


def _files(base: Path) -> Iterator[tuple[float, int, Path]]:
    for entry in entries(base):
        if entry.is_file(follow_symlinks=False):
            found = entry.stat(follow_symlinks=False)
            yield found.st_mtime, found.st_blocks * 512, Path(entry.path)
