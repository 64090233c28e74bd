"""Which files of a repository make one model: shards together, others alone; pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from jobs.gguf.file_names import shard_of
from scout.hub.values import HubFile

DRAFTER_NAME = re.compile(r"dflash2?|dspark|eagle-?3|mtp|nextn|draft(?:er)?", re.IGNORECASE)
_TENSORS_SHARD = re.compile(
    r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors", re.ASCII
)
MOST_SHARDS = 1000


@dataclass(frozen=True)
class Weights:
    """One model's files in the order of their numbers; `is_whole` once none is missing.

    A file whose name claims a place that no set has is never whole.
    """

    files: tuple[HubFile, ...]
    is_whole: bool

    @property
    def first(self) -> HubFile:
        """The file whose header describes the model."""
        return self.files[0]

    @property
    def identity(self) -> str:
        """The hash of the one file, or a digest of the hashes of all shards."""
        if len(self.files) == 1:
            return self.first.content
        joined = "\n".join(file.content for file in self.files)
        return hashlib.sha256(joined.encode()).hexdigest()

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all files; None where one of them is not told."""
        sizes = [file.size_bytes for file in self.files]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


def is_gguf(path: str) -> bool:
    """Whether a file claims to be one."""
    return path.lower().endswith(".gguf")


def is_safetensors(path: str) -> bool:
    """Whether a file claims to hold tensors without a header of ours."""
    return path.lower().endswith(".safetensors")


def is_weight(path: str) -> bool:
    """Whether a file claims to hold tensors, in either form."""
    return is_gguf(path) or is_safetensors(path)


def is_projector(path: str) -> bool:
    """Whether a name claims a projector."""
    return PurePosixPath(path).name.lower().startswith("mmproj")


def is_calibration(path: str) -> bool:
    """Whether a name claims an importance matrix, which is no model."""
    return "imatrix" in PurePosixPath(path).name.lower()


def is_card(path: str) -> bool:
    """Whether a file says nothing of the weights."""
    name = PurePosixPath(path).name.lower()
    words = (".md", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".txt")
    return name == ".gitattributes" or name.startswith("license") or name.endswith(words)


def weights_of(files: Iterable[HubFile]) -> list[Weights]:
    """The models in a list of files, by the path of their first file."""
    alone: list[Weights] = []
    parts: dict[tuple[str, int], dict[int, HubFile]] = {}
    for file in files:
        if not is_weight(file.path) or is_calibration(file.path):
            continue
        place = _place(file.path)
        if _names_no_set(file.path):
            alone.append(Weights((file,), is_whole=False))
        elif place is None:
            alone.append(Weights((file,), is_whole=True))
        else:
            stem, number, count = place
            parts.setdefault((stem, count), {})[number] = file
    sets = [
        Weights(
            tuple(shards[number] for number in sorted(shards)),
            is_whole=len(shards) == count,
        )
        for (_, count), shards in parts.items()
    ]
    return sorted([*alone, *sets], key=lambda weights: weights.first.path)


def _names_no_set(path: str) -> bool:
    """Whether a name claims a place that no set has, as part 0 of 3, or a set beyond any size."""
    shard = shard_of(PurePosixPath(path).name)
    return shard is not None and not (shard.is_possible and shard.count <= MOST_SHARDS)


def _place(path: str) -> tuple[str, int, int] | None:
    """The set, the number and the count of a shard; None for a file that stands alone."""
    pure = PurePosixPath(path)
    shard = shard_of(pure.name)
    if shard is not None:
        stem, number, count = shard.stem, shard.number, shard.count
    elif found := _TENSORS_SHARD.fullmatch(pure.name):
        stem, number, count = found["stem"], int(found["number"]), int(found["count"])
    else:
        return None
    if not 1 <= number <= count <= MOST_SHARDS:
        return None
    return f"{pure.parent}/{stem}{pure.suffix}", number, count
