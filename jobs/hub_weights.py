"""What the hub says of one weight, as the value our rows are made of; asks and stores nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from jobs.errors import UsageError, did_you_mean
from jobs.hub import HubFile, Snapshot
from jobs.hub_names import HubPlace, set_sha256, shard_files

LONGEST_NAME = 200


@dataclass(frozen=True)
class HubWeight:
    """A weight at one commit; `shards` are the digests of its files where it is a set."""

    repo: str
    commit: str
    file: str
    sha256: str
    size_bytes: int
    shards: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What we call it; the commit tells it from what lay there before."""
        return f"{self.repo}:{self.file}"[-LONGEST_NAME:]

    @property
    def stem(self) -> str:
        """The file's own name without folder and suffix."""
        return PurePosixPath(self.file).stem

    @property
    def source(self) -> dict[str, object]:
        """Where a worker fetches it."""
        place: dict[str, object] = {
            "repo": self.repo,
            "file": self.file,
            "revision": self.commit,
        }
        return place | ({"shards": list(self.shards)} if self.shards else {})


def hub_weight(found: Snapshot, wanted: HubPlace) -> HubWeight:
    """The weight a place names; raises `UsageError` where it is not all there."""
    names = shard_files(wanted.file)
    files = [_file(found, name, wanted) for name in names]
    digests = tuple(str(file.sha256) for file in files)
    return HubWeight(
        repo=found.repo,
        commit=found.commit,
        file=names[0],
        sha256=set_sha256(digests) if len(digests) > 1 else digests[0],
        size_bytes=sum(file.size_bytes or 0 for file in files),
        shards=digests if len(digests) > 1 else (),
    )


def _file(found: Snapshot, name: str, wanted: HubPlace) -> HubFile:
    file = found.files.get(name)
    if file is None:
        weights = [each for each in found.files if each.endswith(".gguf")]
        missing = "" if name == wanted.file else f", of the set of {wanted.file[-80:]!r}"
        raise UsageError(
            f"{found.repo} has no file {name[-80:]!r} at {found.commit[:12]}{missing}",
            advice=did_you_mean(name, weights),
        )
    if file.sha256 is None or not file.size_bytes:
        raise UsageError(
            f"the hub gives no sha256 for {name[-80:]!r} of {found.repo}",
            advice="only files in LFS have one; `forkscout weights add PATH` takes any other",
        )
    return file
