"""Release files: brought by digest and tag, unpacked within bounds, whatever strangers packed."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from support.place import CAGED, Place

from jobs import git
from jobs.engines.base import BuildPlaces
from jobs.engines.registry import FAMILIES
from jobs.errors import JobFailure, Stopped, Transient
from jobs.model import Blame, BuildTarget, Revision
from workers.release_file import bring_release_file
from workers.sandbox import Limits, Mount
from workers.steps import StepFailed, run_step
from workers.unpacking import Bounds, unpack

SERVER = b"#!/bin/sh\necho '--slots'\n"
HONEST = {
    "engine-b1/bin/llama-server": SERVER,
    "engine-b1/bin/libggml.so.0.9": b"library",
    "engine-b1/bin/llama-bench": b"not kept",
    "engine-b1/LICENSE": b"words",
}


def tar(path: Path, files: dict[str, bytes], *odd: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
        for member in odd:
            archive.addfile(member)
    return path


def odd(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


def link_in_zip(archive: zipfile.ZipFile, name: str, target: str) -> None:
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o120777 << 16
    archive.writestr(member, target)


def test_an_honest_archive_is_unpacked(tmp_path):
    """Files, folders, links between libraries; the right to run is kept and no other."""
    link = odd("engine-b1/bin/libggml.so", tarfile.SYMTYPE, "libggml.so.0.9")
    made = tar(tmp_path / "a.tar.gz", HONEST, odd("engine-b1/empty", tarfile.DIRTYPE), link)
    unpack(made, tmp_path / "tree")
    server = tmp_path / "tree/engine-b1/bin/llama-server"
    assert server.read_bytes() == SERVER
    assert server.stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "tree/engine-b1/bin/libggml.so").read_bytes() == b"library"
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("bin/llama-server", SERVER)
        link_in_zip(archive, "bin/libx.so", "libx.so.1")
        archive.writestr("bin/libx.so.1", "library")
    unpack(tmp_path / "a.zip", tmp_path / "zipped")
    assert (tmp_path / "zipped/bin/libx.so").read_bytes() == b"library"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([odd("../evil", tarfile.REGTYPE)], "path that is not taken"),
        ([odd("/etc/evil", tarfile.REGTYPE)], "path that is not taken"),
        ([odd("a/../../evil", tarfile.REGTYPE)], "path that is not taken"),
        ([odd("a\x1b[2J", tarfile.REGTYPE)], "path that is not taken"),
        ([odd("x" * 500, tarfile.REGTYPE)], "path that is not taken"),
        ([odd("link", tarfile.SYMTYPE, "/etc/passwd")], "leads out"),
        ([odd("link", tarfile.SYMTYPE, "../../etc/passwd")], "leads out"),
        ([odd("link", tarfile.SYMTYPE, "..")], "leads out"),
        ([odd("hard", tarfile.LNKTYPE, "/etc/passwd")], "neither file, folder nor link"),
        ([odd("device", tarfile.CHRTYPE)], "neither file, folder nor link"),
        ([odd("disk", tarfile.BLKTYPE)], "neither file, folder nor link"),
        ([odd("pipe", tarfile.FIFOTYPE)], "neither file, folder nor link"),
        (
            [
                odd("d", tarfile.SYMTYPE, "e"),
                odd("e", tarfile.DIRTYPE),
                odd("d/f", tarfile.REGTYPE),
            ],
            "through a link",
        ),
        ([odd("twice", tarfile.REGTYPE), odd("twice", tarfile.REGTYPE)], "comes twice"),
        ([odd("a", tarfile.SYMTYPE, "b"), odd("a", tarfile.REGTYPE)], "comes twice"),
    ],
    ids=lambda value: value[-1].name[:12] if isinstance(value, list) else None,
)
def test_a_hostile_archive_is_refused(tmp_path, members, words):
    """Nothing lies outside the folder afterwards."""
    made = tar(tmp_path / "a.tar.gz", {}, *members)
    with pytest.raises(JobFailure, match=words) as caught:
        unpack(made, tmp_path / "tree")
    assert caught.value.failure_class == "archive_refused"
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar.gz", "tree"}


def test_links_and_paths_in_a_zip_are_judged_the_same(tmp_path):
    """A link is its content there."""
    for number, name in enumerate(("../evil", "C:\\evil", "/evil")):
        with zipfile.ZipFile(tmp_path / f"{number}.zip", "w") as archive:
            archive.writestr(zipfile.ZipInfo(name), "x")
        with pytest.raises(JobFailure, match="not taken"):
            unpack(tmp_path / f"{number}.zip", tmp_path / f"tree{number}")
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        link_in_zip(archive, "link", "/etc/passwd")
    with pytest.raises(JobFailure, match="leads out"):
        unpack(tmp_path / "link.zip", tmp_path / "tree")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_bomb_stops_at_its_bound(tmp_path, kind):
    """By what really comes out, and by the number of entries."""
    zeros = bytes(4_000_000)
    made = tmp_path / f"a.{kind}"
    if kind == "tar":
        tar(made, {"bomb": zeros})
    else:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb", zeros)
    assert made.stat().st_size < 10_000
    with pytest.raises(JobFailure, match="unpacks to more than"):
        unpack(made, tmp_path / "tree", bounds=Bounds(size_bytes=1_000_000))
    many = tar(tmp_path / "many.tar.gz", {str(number): b"" for number in range(20)})
    with pytest.raises(JobFailure, match="more than 10 entries"):
        unpack(many, tmp_path / "many", bounds=Bounds(files=10))


@pytest.mark.parametrize(
    "content",
    [b"", b"words", gzip.compress(b"no tar"), b"PK\x03\x04 broken", b"PK\x05\x06" + bytes(18)],
)
def test_what_is_no_archive_is_refused(tmp_path, content):
    """Damage is a refusal, not a crash; an empty archive is just empty."""
    path = tmp_path / "a"
    path.write_bytes(content)
    with suppress(JobFailure):
        unpack(path, tmp_path / "tree")
    assert list((tmp_path / "tree").iterdir()) == []


def test_a_cancel_ends_it_within_one_piece(tmp_path):
    """The worker's own check is asked as it goes."""

    def stop() -> None:
        raise Stopped("cancelled")

    with pytest.raises(Stopped):
        unpack(tar(tmp_path / "a.tar.gz", HONEST), tmp_path / "tree", check=stop)


@pytest.fixture
def mirror(tmp_path, hub) -> Path:
    repository = hub.add("owner/engine")
    repository.commit({"a": "1"})
    repository.git("tag", "v1")
    repository.commit({"a": "2"})
    repository.push("HEAD:refs/heads/main", "v1")
    path = tmp_path / "mirror.git"
    git.update_mirror(path, git.repo_url("owner/engine"))
    return path


def bring(mirror, into, answer, *, content=None, sha256="", ref="v1", tag="v1"):
    pins = (
        ("asset", "engine-linux+x64.tar.gz"),
        ("tag", tag),
        ("sha256", sha256 or hashlib.sha256(content or b"").hexdigest()),
    )
    bring_release_file(
        "owner/engine",
        BuildTarget("cpu", "asset", pins=pins),
        into,
        mirror=mirror,
        commit=git.resolve(mirror, ref).sha,
        check=lambda: None,
        transport=httpx.MockTransport(answer),
    )


@pytest.mark.needs("git")
def test_a_release_file_is_brought_by_tag_and_digest(mirror, tmp_path):
    """From the repository's own address, through the one redirect that GitHub makes."""
    content = tar(tmp_path / "a.tar.gz", HONEST).read_bytes()
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        if request.url.host == "github.com":
            return httpx.Response(302, headers={"Location": "https://files.example.org/x"})
        return httpx.Response(200, stream=httpx.ByteStream(content))

    bring(mirror, tmp_path / "tree", answer, content=content)
    assert asked[0].endswith("/owner/engine/releases/download/v1/engine-linux%2Bx64.tar.gz")
    assert (tmp_path / "tree/engine-b1/bin/llama-server").read_bytes() == SERVER
    assert not (tmp_path / "tree.archive").exists()


@pytest.mark.needs("git")
@pytest.mark.parametrize(
    ("changes", "answer", "failure_class"),
    [
        (
            {"sha256": "0" * 64},
            httpx.Response(200, stream=httpx.ByteStream(b"other")),
            "asset_sha256",
        ),
        ({"ref": "main"}, httpx.Response(200), "asset_of_another_commit"),
        ({"tag": "v9"}, httpx.Response(200), "ref_missing"),
        ({}, httpx.Response(404), "asset_missing"),
    ],
)
def test_any_other_file_is_refused(mirror, tmp_path, changes, answer, failure_class):
    """Other bytes, another commit under the tag, no tag, no file: nothing is unpacked."""
    with pytest.raises(JobFailure) as caught:
        bring(mirror, tmp_path / "tree", lambda _request: answer, **changes)
    assert (caught.value.failure_class, caught.value.blame) == (failure_class, Blame.CONFIGURATION)
    assert not (tmp_path / "tree").exists()
    assert not (tmp_path / "tree.archive").exists()


@pytest.mark.needs("git")
@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(503),
        httpx.Response(302, headers={"Location": "http://files.example.org/x"}),
        httpx.Response(302, headers={"Location": "/again"}),
    ],
    ids=["busy", "plain http", "in a circle"],
)
def test_a_server_that_does_not_give_it_is_asked_again(mirror, tmp_path, answer):
    """A redirect away from https is not followed."""
    with pytest.raises(Transient):
        bring(mirror, tmp_path / "tree", lambda _request: answer)
    assert not (tmp_path / "tree.archive").exists()


@CAGED
@pytest.mark.parametrize("packed", [HONEST, {"LICENSE": b"words"}], ids=["honest", "no server"])
def test_server_and_libraries_are_taken_out_in_the_cage(place: Place, tmp_path, packed):
    """Wherever in the archive they lie; one without a server is a failed step that says so."""
    unpack(tar(tmp_path / "a.tar.gz", packed), tmp_path / "source")
    source, output = Mount(tmp_path / "source", "/build/source"), place.mount
    places = BuildPlaces(place.sandbox.path(source), "unused", place.sandbox.path(output))
    revision = Revision("tiny", "llama.cpp", "a" * 40, "v1", "owner/engine")
    [step] = FAMILIES["llama.cpp"].build(revision, BuildTarget("cpu", "asset"), places)

    def run() -> None:
        run_step(
            place.sandbox,
            step,
            (*place.mounts, source),
            log=place.log,
            limits=Limits(),
            control=place.control,
            marker="test",
        )

    if packed is HONEST:
        run()
        made = {path.name for path in output.host.iterdir()}
        assert made == {"llama-server", "libggml.so.0.9"}
    else:
        with pytest.raises(StepFailed):
            run()
        assert "holds no llama-server" in place.log.read_text()
