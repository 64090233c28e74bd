"""Which words of a `[[model]]` can be true together; refuses half a source and a wrong set."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.hub_names import set_sha256, shard_files
from scout.problem import Problem
from scout.watchlist import ModelEntry


def wrong_model(here: tuple[str | int, ...], model: ModelEntry) -> Iterator[Problem]:
    """What is wrong with one model at that place of the list."""
    if (model.package is None) == (model.repo is None):
        yield Problem(
            (*here, "repo" if model.repo else "name"),
            f"model {model.name!r} needs either a package or a repo",
            'write package = "name" and version, or repo = "owner/name" and file',
        )
        return
    needs = "file" if model.repo else "version"
    others = ("version",) if model.repo else ("file", "revision", "shards")
    if getattr(model, needs) is None:
        source = "repo" if model.repo else "package"
        yield Problem(
            (*here, source), f"{needs!r} is missing beside the {source}", f"add {needs} = ..."
        )
        return
    for key in others:
        if getattr(model, key):
            source = "a hub's file" if model.repo else "a package"
            yield Problem((*here, key), f"{source} has no {key}", f"leave {key} out")
    if model.file is not None:
        yield from _wrong_shards(here, model, len(shard_files(model.file)))


def _wrong_shards(here: tuple[str | int, ...], model: ModelEntry, count: int) -> Iterator[Problem]:
    given = len(model.shards)
    if given != (count if count > 1 else 0):
        yield Problem(
            (*here, "shards" if given else "file"),
            f"{model.file!r} is one of {count} files, {given} are named in shards",
            "name the sha256 of every file of the set in shards, in order",
        )
    elif given and set_sha256(model.shards) != model.sha256:
        yield Problem(
            (*here, "sha256"),
            f"sha256 of {model.name!r} is not that of its shards",
            f"write sha256 = {set_sha256(model.shards)!r}",
        )
