"""Weights removed by several at once, by one that is killed, and on a disk that fills meanwhile."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.rows import digest
from support.weights_hub import COMMIT, REPO, WeightsHub, sha256_of

from jobs.control import Control
from jobs.errors import Later
from jobs.hub import Hub
from jobs.hub_names import set_sha256, shard_files
from jobs.tables import ModelFileRow
from workers.download_parts import Part, part_of
from workers.weight_bringing import bring
from workers.weight_store import LEAVING, Store, being_read

TESTS = Path(__file__).parents[2]
SET = shard_files("big-00001-of-00024.gguf")
FILES = {name: random.Random(name).randbytes(2_000) for name in SET}
SHARDS = [sha256_of(content) for content in FILES.values()]
SHA = set_sha256(SHARDS)
SET_ROW = {
    "name": "big",
    "model_class": "big",
    "sha256": SHA,
    "source": {"repo": REPO, "file": SET[0], "revision": COMMIT, "shards": SHARDS},
}


@pytest.fixture
def hub() -> Iterator[WeightsHub]:
    with WeightsHub(dict(FILES)) as server:
        yield server


def store_at(root: Path, **rules: object) -> Store:
    return Store(root, **{"kept": set, "let_go": lambda _sha: True, **rules})  # type: ignore[arg-type]


def started(module: str, *words: str) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    environment = {**os.environ, "PYTHONPATH": paths, "NO_PROXY": "127.0.0.1,localhost"}
    return subprocess.Popen(
        [sys.executable, "-m", module, *words], env=environment, stdout=subprocess.PIPE
    )


def brought(hub: WeightsHub, store: Store, scratch: Path) -> tuple[Path, ...]:
    """The set, as soon as nobody else holds it."""
    for _ in range(200):
        try:
            return bring(
                ModelFileRow(**SET_ROW), store, hub=Hub(hub.url), scratch=scratch,
                control=Control(), log=None, say=lambda _words: None,
            )  # fmt: skip
        except (Later, FileNotFoundError):
            time.sleep(0.01)
    raise AssertionError("never free")


def folder_with(root: Path, sha256: str) -> Path:
    """It appears at once, as a set does that was fetched."""
    incoming = root / f".{sha256}.incoming"
    incoming.mkdir(parents=True)
    for name, content in FILES.items():
        (incoming / name).write_bytes(content)
    return incoming.rename(root / sha256)


def test_several_who_remove_the_same_sets_never_trip(tmp_path: Path) -> None:
    """What another took first is simply gone; the room is counted anew."""
    root = tmp_path / "weights"
    root.mkdir()
    rivals = [started("support.evicting", str(root)) for _ in range(2)]
    try:
        for rival in rivals:
            assert rival.stdout is not None
            assert rival.stdout.readline() == b"up\n"
        store = store_at(root)
        for number in range(60):
            folder_with(root, digest(f"set {number}"))
            for entry in store.entries():
                store.remove(entry)
            assert all(rival.poll() is None for rival in rivals)
        deadline = time.monotonic() + 20
        while store.entries() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert store.entries() == []
    finally:
        for rival in rivals:
            rival.kill()
            rival.communicate()


def test_a_set_vanishes_between_being_listed_and_being_removed(tmp_path: Path) -> None:
    """Its removal is no error: it is gone, as was wished."""
    store = store_at(tmp_path)
    folder_with(tmp_path, SHA)
    [entry] = store.entries()
    assert store.remove(entry)
    assert store.remove(entry)


def test_a_removal_that_is_killed_leaves_a_whole_set_or_none(
    tmp_path: Path, hub: WeightsHub
) -> None:
    """Whatever the moment; the next fetch brings all of it, and what was left of it is swept."""
    chance = random.Random(3)
    root = tmp_path / "weights"
    store = store_at(root)
    for _ in range(8):
        brought(hub, store, tmp_path)
        process = started("support.evicting", str(root))
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.004))
        process.kill()
        process.communicate()
        if SHA in store.whole():
            assert len(list((root / SHA).iterdir())) == len(SET)
    paths = brought(hub, store, tmp_path)
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert not list(root.glob(f".*{LEAVING}"))
    assert not list(root.glob("*.part"))


def test_half_a_removed_set_is_not_there(tmp_path: Path) -> None:
    """It is neither listed nor held, and the next sweep takes it, unless somebody is at it."""
    store = store_at(tmp_path)
    rest = folder_with(tmp_path, f".{SHA}{LEAVING}")
    assert (store.entries(), store.whole()) == ([], set())
    with store.alone_with([SHA]):
        store.sweep()
    assert rest.exists()
    store.sweep()
    assert not rest.exists()


def test_a_job_that_comes_while_room_is_made_keeps_its_weights(tmp_path: Path) -> None:
    """Who is needed is asked again at the last moment, whatever was known before."""
    needed: set[str] = set()
    store = store_at(
        tmp_path, kept=set, let_go=lambda sha256: sha256 not in needed, budget_bytes=48_000
    )
    folder_with(tmp_path, SHA)
    needed.add(SHA)
    assert not store.remove(store.entries()[0])
    needed.clear()
    with being_read([tmp_path / SHA / SET[3]]):
        assert not store.remove(store.entries()[0])
    with store.room_kept(1):
        assert store.entries() == []


def test_a_part_stays_writable_until_it_has_its_name(tmp_path: Path) -> None:
    """A worker that dies between its last byte and the name finds a part it may open."""
    content = FILES[SET[0]]
    part = Part(tmp_path, sha256_of(content), len(content))
    list(part.resume())
    part.write(content)
    with pytest.raises(FileNotFoundError):
        part.finish(tmp_path / "nowhere" / "x.gguf")
    assert part_of(tmp_path, sha256_of(content)).stat().st_mode & 0o200
    part.finish(tmp_path / "x.gguf")
    assert (tmp_path / "x.gguf").stat().st_mode & 0o777 == 0o444


FULL_DISK = """
import json, sys, threading, time
from pathlib import Path
from jobs.control import Control
from jobs.errors import JobFailure
from jobs.hub import Hub
from jobs.tables import ModelFileRow
from workers.weight_bringing import bring
from workers.weight_store import Store

url, row, root = sys.argv[1], json.loads(sys.argv[2]), Path("/tmp/small/weights")
root.mkdir()
store = Store(root, kept=set, let_go=lambda _sha: True, block_bytes=16 * 1024)

def fetch():
    try:
        return bring(ModelFileRow(**row), store, hub=Hub(url), scratch=Path("/tmp"),
                     control=Control(), log=None, say=lambda _w: None)
    except JobFailure as fault:
        return fault.failure_class + ": " + fault.detail

hog = Path("/tmp/small/hog")
def fill():
    while not any(part.stat().st_size == 8_000_000 for part in root.glob("*.part")):
        time.sleep(0.001)
    with hog.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass

thread = threading.Thread(target=fill)
thread.start()
first = fetch()
thread.join()
kept = sum(path.stat().st_size for path in root.glob("*.part"))
hog.unlink()
again = fetch()
left = sorted(path.suffix for path in root.iterdir() if path.suffix != ".lock")
print(json.dumps([first if isinstance(first, str) else "came", kept, str(again), left]))
"""


@pytest.mark.needs("bwrap")
def test_a_disk_that_fills_during_a_download_keeps_what_came(tmp_path: Path) -> None:
    """On a real file system of 12 MB that somebody else fills: one class, and the rest later."""
    content = random.Random(4).randbytes(8_000_000)
    row = {
        "name": "tiny", "model_class": "tiny", "sha256": sha256_of(content),
        "source": {"repo": REPO, "file": "tiny.gguf", "revision": COMMIT},
    }  # fmt: skip
    with WeightsHub({"tiny.gguf": content}) as hub:
        hub.pause_seconds = 0.005
        words = [
            *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/tmp"),
            *("--ro-bind", str(TESTS.parent), str(TESTS.parent)),
            *("--ro-bind", sys.prefix, sys.prefix),
            *("--dir", "/tmp/small", "--size", "12000000", "--tmpfs", "/tmp/small"),
            *("--setenv", "PYTHONPATH", str(TESTS.parent), "--die-with-parent"),
            *(sys.executable, "-c", FULL_DISK, hub.url, json.dumps(row)),
        ]
        environment = {**os.environ, "NO_PROXY": "127.0.0.1,localhost"}
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    first, kept, again, left = json.loads(done.stdout)
    assert first.startswith("disk_full: no room for the weights")
    assert 0 < kept < len(content)
    assert again.startswith("(")
    assert left == [".gguf"]
