"""Pip itself against an index on loopback that is healthy, dead, wrong or hostile."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from support.package_index import PackageIndex, sha256_of

from jobs import pip
from jobs.errors import JobFailure, Permanent, Stopped, Transient, UsageError


def test_versions_are_newest_first_without_pre_releases(package_index: PackageIndex) -> None:
    """Versions sort as versions, not as text, and pre-releases are left out."""
    for version in ("1.9", "1.10", "1.2", "2.0rc1", "1.10.post1"):
        package_index.offer("stub", version)
    assert pip.versions("stub") == ["1.10.post1", "1.10", "1.9", "1.2"]


def test_versions_need_a_wheel_for_this_machine(package_index: PackageIndex) -> None:
    """A version whose only wheel is for another system is not offered."""
    package_index.offer("stub", "1.0")
    package_index.offer("stub", "2.0", tag="cp311-cp311-win_amd64")
    assert pip.versions("stub") == ["1.0"]


def test_sight_tells_file_and_digest(package_index: PackageIndex) -> None:
    """A sighting carries the file's name and sha256, and nothing is installed."""
    wheel = package_index.offer("stub-engine", "1.0")
    seen = pip.sight("stub-engine", "1.0")
    assert (seen.filename, seen.sha256, seen.yanked) == (wheel.name, sha256_of(wheel), False)


def test_sight_tells_a_yanked_release(package_index: PackageIndex) -> None:
    """A release its maker took back is still seen, and marked."""
    package_index.offer("stub", "1.0", yanked=True)
    assert pip.sight("stub", "1.0").yanked


def test_constraints_of_the_machine_do_not_choose(
    package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A constraints file meant for other work changes nothing here."""
    package_index.offer("stub", "1.0")
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("stub<0.5\n")
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nconstraint = {constraints}\nquiet = 3\nuser = true\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    assert pip.versions("stub") == ["1.0"]
    assert pip.sight("stub", "1.0").version == "1.0"


def test_a_file_index_that_is_missing_is_no_fault(
    package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder named as a further index that does not exist is a warning, not a dead index."""
    package_index.offer("stub", "1.0")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file://{tmp_path}/nowhere")
    assert pip.versions("stub") == ["1.0"]


def test_a_dead_index_is_a_passing_fault(
    package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listening means "did not answer", with the reason, and never "unknown package"."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1:1/simple")
    for ask in (lambda: pip.versions("stub"), lambda: pip.sight("stub", "1.0")):
        with pytest.raises(Transient, match=r"did not answer about stub: .*refused") as caught:
            ask()
        assert "secret" not in caught.value.message
        assert caught.value.advice


@pytest.mark.parametrize("status", [403, 429, 500, 503])
def test_a_refusing_index_is_a_passing_fault(package_index: PackageIndex, status: int) -> None:
    """403, 429 and 5xx say nothing about the package."""
    package_index.offer("stub", "1.0")
    package_index.status = status
    with pytest.raises(Transient, match=str(status)):
        pip.versions("stub")


def test_one_dead_index_of_two_makes_no_list(
    package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partial list is no list: the newest release may be on the index that is silent."""
    package_index.offer("stub", "1.0")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://127.0.0.1:1/simple")
    with pytest.raises(Transient):
        pip.versions("stub")


def test_an_unknown_package_is_said(package_index: PackageIndex) -> None:
    """An index that answers 404 does not know the package."""
    with pytest.raises(Permanent, match="knows no package stub"):
        pip.versions("stub")


def test_an_unknown_version_names_the_newest(package_index: PackageIndex) -> None:
    """The advice lists what there is."""
    package_index.offer("stub", "1.0")
    with pytest.raises(Permanent, match=r"no version 9\.9") as caught:
        pip.sight("stub", "9.9")
    assert "1.0" in caught.value.advice


def test_a_wheel_pip_refuses_is_not_called_missing(
    package_index: PackageIndex, tmp_path: Path
) -> None:
    """A wheel with broken metadata is named as such, in pip's words."""
    package_index.offer("stub", "1.0", requires=["not a requirement!"])
    with pytest.raises(Permanent, match=r"refuses the wheel of stub 1\.0"):
        pip.download("stub", "1.0", tmp_path / "in")


def test_a_package_without_usable_wheel_is_said(package_index: PackageIndex) -> None:
    """Wheels for other systems only are told apart from an unknown package."""
    package_index.offer("stub", "1.0", tag="cp311-cp311-win_amd64")
    with pytest.raises(Permanent, match="no wheel this machine"):
        pip.versions("stub")


@pytest.mark.parametrize("name", ["--index-url=x", "a b", "../x", "", "x==1", "a\nb", "-r", "é"])
def test_hostile_names_never_reach_pip(package_index: PackageIndex, name: str) -> None:
    """What is no package name is refused before a process starts."""
    with pytest.raises(UsageError):
        pip.versions(name)
    with pytest.raises(UsageError):
        pip.sight("stub", name)
    assert package_index.asked == []


def test_download_reports_and_checks(package_index: PackageIndex, tmp_path: Path) -> None:
    """A download says how far it is, lands whole, and its log holds what pip said."""
    content = bytes(range(256)) * 4096
    wheel = package_index.offer("stub", "1.0", files={"stub/data.bin": content})
    seen: list[tuple[int, int | None]] = []
    log = tmp_path / "job.log"
    path = pip.download(
        "stub",
        "1.0",
        tmp_path / "in",
        on_progress=lambda done, total: seen.append((done, total)),
        sha256=sha256_of(wheel),
        log=log,
    )
    assert path.read_bytes() == wheel.read_bytes()
    assert [entry.name for entry in (tmp_path / "in").iterdir()] == [wheel.name]
    assert "stub" in log.read_text()
    assert all(total in (None, wheel.stat().st_size) for _, total in seen)


def test_a_download_of_another_digest_is_refused(
    package_index: PackageIndex, tmp_path: Path
) -> None:
    """Both digests are named and the file is gone."""
    wheel = package_index.offer("stub", "1.0")
    with pytest.raises(JobFailure, match=sha256_of(wheel)) as caught:
        pip.download("stub", "1.0", tmp_path / "in", sha256="0" * 64)
    assert caught.value.failure_class == "wheel_sha256"
    assert list((tmp_path / "in").iterdir()) == []


def test_a_file_that_is_not_what_the_index_says_is_refused(
    package_index: PackageIndex, tmp_path: Path
) -> None:
    """Pip checks the index's own digest; a file damaged on the way is never kept."""
    package_index.offer("stub", "1.0", claims="1" * 64)
    with pytest.raises(Transient, match="stub"):
        pip.download("stub", "1.0", tmp_path / "in")
    assert list((tmp_path / "in").iterdir()) == []


def test_a_download_larger_than_allowed_is_refused(
    package_index: PackageIndex, tmp_path: Path
) -> None:
    """The size the index announces counts before the bytes do."""
    content = random.Random(1).randbytes(2_000_000)
    package_index.offer("stub", "1.0", files={"stub/data.bin": content})
    with pytest.raises(JobFailure, match="are allowed") as caught:
        pip.download("stub", "1.0", tmp_path / "in", limit_bytes=1_000_000)
    assert caught.value.failure_class == "download_too_large"
    assert list((tmp_path / "in").iterdir()) == []


def test_a_download_stops_when_asked(package_index: PackageIndex, tmp_path: Path) -> None:
    """A cancel ends a download that waits for a silent index, within two seconds."""
    package_index.offer("stub", "1.0")
    package_index.stalled.set()
    asked_at = time.monotonic() + 1.0

    def check() -> None:
        if time.monotonic() > asked_at:
            raise Stopped("cancelled")

    with pytest.raises(Stopped):
        pip.download("stub", "1.0", tmp_path / "in", check=check)
    assert time.monotonic() < asked_at + 2
    assert list((tmp_path / "in").iterdir()) == []
