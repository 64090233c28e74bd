"""A release file through the whole job: fetched over TLS, checked, unpacked, kept, described."""

from __future__ import annotations

import hashlib
import io
import tarfile

import pytest
from support import tiny_engine
from support.certificates import tls_for
from support.release_host import release_host
from support.workshop import workshop

from jobs import db
from jobs.build_tables import BuildFlagsRow
from jobs.dialect.options import from_stored
from jobs.model import Blame, State
from workers import artifacts

pytestmark = pytest.mark.needs("bwrap", "git")
ASSET = "tiny-v1-linux-x64.tar.gz"
SERVER = "#!/bin/sh\ncat <<'END'\n" + tiny_engine.HELP + "END\n"


def packed(files: dict[str, str]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return held.getvalue()


RELEASED = packed({"tiny-v1/bin/llama-server": SERVER, "tiny-v1/LICENSE": "words"})
PINS = {"asset": ASSET, "tag": "v1", "sha256": hashlib.sha256(RELEASED).hexdigest()}


@pytest.fixture
def shop(database, tmp_path, hub, monkeypatch):
    """An engine with a release `v1` of its only commit, and the host that has its file."""
    repository = hub.add("owner/tiny")
    repository.commit({"README.md": "words"})
    repository.git("tag", "v1")
    repository.push("HEAD:refs/heads/main", "v1")
    context, trusted = tls_for(["github.com"], tmp_path / "tls")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with release_host(context, {f"/owner/tiny/releases/download/v1/{ASSET}": RELEASED}) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        yield workshop(database, tmp_path / "home", repository)


def make(shop, ref=None, **pins):
    job = shop.ask_via(ref, rig="cpu", via="asset", **PINS | pins)
    shop.work()
    return shop.job(job.id)


def test_a_release_file_becomes_a_build_that_can_be_benched(shop):
    """By its tag or by its branch; what it understands is known, and it is not made twice."""
    job = make(shop, "v1")
    assert job.state == State.SUCCEEDED, job.message
    [row] = shop.builds()
    names = [each["name"] for each in row.provenance["phases"]]
    assert names == ["fetch", "download", "install", "store", "describe"]
    assert row.provenance["commit"] == shop.repository.git("rev-parse", "HEAD").strip()
    assert row.provenance["pins"] == PINS
    tree = artifacts.find(shop.station.settings.artifacts, row.artifact)
    assert [path.name for path in tree.iterdir()] == ["llama-server"]
    with db.reading(shop.database) as session:
        options = from_stored(session.get_one(BuildFlagsRow, row.id).options)
    assert [each.name for each in options] == ["--model", "--cache-type-k", "--draft-max"]
    assert shop.ask("main").done == 1


@pytest.mark.parametrize(
    ("pins", "failure_class", "blame"),
    [
        ({"sha256": "0" * 64}, "asset_sha256", Blame.CONFIGURATION),
        ({"asset": "tiny-v1-macos.tar.gz"}, "asset_missing", Blame.CONFIGURATION),
        ({"tag": "v2"}, "ref_missing", Blame.CONFIGURATION),
    ],
)
def test_what_was_not_pinned_becomes_no_build(shop, pins, failure_class, blame):
    """Other bytes, no such file, no such tag: the job says which, and nothing is kept."""
    job = make(shop, **pins)
    assert (job.state, job.failure_class, job.blame) == (State.FAILED, failure_class, blame)
    assert job.advice
    assert shop.builds() == []


def test_a_push_after_the_release_is_not_its_file(shop):
    """The file is of the tag's commit alone."""
    shop.repository.commit({"README.md": "more"})
    shop.repository.push()
    job = make(shop, "main")
    assert job.failure_class == "asset_of_another_commit"
