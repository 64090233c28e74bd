"""Finds the file that `hf:owner/repo/file` or `owner/repo:QUANT` names; reads no byte of it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from jobs.errors import Permanent, Transient, UsageError, did_you_mean
from jobs.gguf.file_names import quant_label
from jobs.hub_names import checked_repo, is_below
from scout.hub.answers import Answer, Kind
from scout.hub.client import Client
from scout.hub.sets import Weights, is_calibration, is_gguf, is_projector, weights_of
from scout.hub.values import HubFile, Snapshot, read_snapshot

_FILE = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)/(?P<path>.+)", re.ASCII)
_QUANT = re.compile(r"(?:hf:)?(?P<repo>[\w.-]+/[\w.-]+):(?P<quant>[\w.-]+)", re.ASCII)
_FORM = "Write hf:OWNER/REPO/FILE.gguf or OWNER/REPO:QUANT."
_CLOSED = {
    Kind.GATED: "Accept the terms on its page, then set FORKSCOUT_HF_TOKEN.",
    Kind.DISABLED: "Name another source of this model.",
}


@dataclass(frozen=True)
class Located:
    """One file at the commit that is its repository's head now."""

    url: str
    repo: str
    commit: str
    file: HubFile


def is_hub_place(text: str) -> bool:
    """Whether a place names a file of the hub; what lies on this disk is never one."""
    named = _FILE.fullmatch(text) or _QUANT.fullmatch(text)
    return named is not None and not os.path.lexists(text)


def locate(text: str, open_client: Callable[[], Client]) -> Located:
    """The file, by its name or by its quantisation; a set of shards is named by its first.

    Raises `UsageError` where no file or several are meant, `Transient` where the hub does not say.
    """
    named = _FILE.fullmatch(text) or _QUANT.fullmatch(text)
    if named is None:
        raise UsageError(
            f"{text[:80]!r} names no file of the hub",
            advice=_FORM,
        )
    words = named.groupdict()
    try:
        repo = checked_repo(named["repo"])
    except ValueError as fault:
        raise UsageError(str(fault), advice=_FORM) from fault
    if not is_below(words.get("path", "file")):
        raise UsageError(f"{words['path'][:80]!r} is no path in a repository", advice=_FORM)
    client = open_client()
    answer = client.model(repo)
    snapshot = read_snapshot(answer.body) if answer.kind is Kind.PAGE else None
    if snapshot is None:
        raise _refusal(answer, repo)
    file = (
        _by_path(snapshot, words["path"])
        if "path" in words
        else _by_quant(snapshot, words["quant"])
    )
    listed = snapshot.listed
    url = client.file_url(listed.full_name, listed.sha, file.path)
    return Located(url, listed.full_name, listed.sha, file)


def _by_path(snapshot: Snapshot, path: str) -> HubFile:
    found = {file.path: file for file in snapshot.files}
    if path in found:
        return found[path]
    raise UsageError(
        f"{snapshot.listed.full_name} has no file {path[:80]!r}",
        advice=did_you_mean(path, [name for name in found if is_gguf(name)]),
    )


def _by_quant(snapshot: Snapshot, quant: str) -> HubFile:
    """As llama.cpp reads `-hf owner/repo:QUANT`, but two that fit are asked about."""
    models = [
        each
        for each in weights_of(snapshot.files)
        if is_gguf(each.first.path) and not _is_beside(each.first.path)
    ]
    labels = {_label(each): each for each in models}
    found = [each for each in models if _label(each).lower() == quant.lower()]
    found = found or [each for each in models if _stem(each).lower() == quant.lower()]
    if len(found) == 1:
        return found[0].first
    if found:
        names = ", ".join(each.first.path for each in found[:4])
        raise UsageError(
            f"{snapshot.listed.full_name}:{quant[:40]} means {len(found)} files",
            advice=f"Name one with hf:{snapshot.listed.full_name}/FILE: {names}",
        )
    raise UsageError(
        f"{snapshot.listed.full_name} has no {quant[:40]!r}",
        advice=did_you_mean(quant, [label for label in labels if label]),
    )


def _is_beside(path: str) -> bool:
    return is_projector(path) or is_calibration(path)


def _label(weights: Weights) -> str:
    return quant_label(PurePosixPath(weights.first.path).name)


def _stem(weights: Weights) -> str:
    return PurePosixPath(weights.first.path).stem


def _refusal(answer: Answer, repo: str) -> Permanent | Transient | UsageError:
    if answer.kind is Kind.MISSING:
        return UsageError(
            f"{repo[:80]} is not on the hub, or not for us to see",
            advice="Check the name; for a private one set FORKSCOUT_HF_TOKEN.",
        )
    if answer.kind in (Kind.GATED, Kind.DISABLED):
        return Permanent(f"{repo[:80]}: {answer.reason}", advice=_CLOSED[answer.kind])
    why = answer.reason or "the hub told no files of it"
    return Transient(f"{repo[:80]}: {why}", advice="Try again later.")
