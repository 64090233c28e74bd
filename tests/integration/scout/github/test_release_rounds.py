"""Releases and their files, read in rounds."""

from __future__ import annotations

from support import github_json as make
from support.scene import UPSTREAM, Scene


def test_a_list_that_is_empty_for_an_empty_repository(chain: Scene) -> None:
    """409 is an answer: nothing there yet."""
    chain.github.fail("releases", times=9, status=409)
    assert chain.look("github_releases").new == ()
    assert not any(key.startswith("src:") for key in chain.told())


def test_releases_and_their_files(chain: Scene) -> None:
    """A release, files that come a day later, one that is replaced; drafts are nothing."""
    old = make.release(1, "b9100", "2026-05-17T00:00:00Z", author=None,
                       assets=[make.asset(10, "linux.tar.gz")])  # fmt: skip
    chain.github.put(UPSTREAM, "releases", old)
    chain.look()
    new = make.release(2, "b9200", "2026-05-18T12:03:00Z", author=None)
    draft = make.release(3, "v3", None)
    chain.github.put(UPSTREAM, "releases", draft, new, old)
    chain.later(minutes=6)
    assert [each.key for each in chain.look().new] == ["gh:rel:2"]
    event = chain.event("gh:rel:2")
    assert event.title == "ggml-org/llama.cpp released b9200 (no files yet)"
    assert event.payload["author"] is None
    assert event.payload["assets_awaited_until"] == "2026-05-18T18:03:00+00:00"
    chain.github.put(UPSTREAM, "releases", {**new, "assets": [make.asset(20, "cuda.zip")]}, old)
    chain.later(minutes=6)
    (added,) = chain.look().new
    assert added.kind == "release_assets_changed"
    assert added.payload["added"] == ["20"]
    assert str(added.payload["assets"][0]["digest"]).startswith("sha256:")
    swapped = make.asset(20, "cuda.zip", "other bytes")
    chain.github.put(UPSTREAM, "releases", {**new, "assets": [swapped]}, old)
    chain.later(minutes=6)
    (replaced,) = chain.look().new
    assert replaced.key.startswith("gh:relassets:2:")
    assert replaced.payload["replaced"] == ["20"]
    chain.later(minutes=6)
    assert chain.look().new == ()


def test_an_old_release_that_surfaces_is_no_news(chain: Scene) -> None:
    """Deleting a newer one moves older ones into the page."""
    chain.look()
    chain.github.put(UPSTREAM, "releases", make.release(1, "b1", "2026-01-01T00:00:00Z"))
    chain.later(minutes=6)
    assert chain.look().new == ()


def test_many_releases_at_once_are_read_to_the_first_known(chain: Scene) -> None:
    """Fifty in one night are two pages; one page that fails leaves it all for later."""
    old = make.release(1, "b1", "2026-05-17T00:00:00Z")
    chain.github.put(UPSTREAM, "releases", old)
    chain.look()
    many = [make.release(100 - n, f"b{100 - n}", f"2026-05-18T12:{59 - n:02d}:00Z")
            for n in range(50)]  # fmt: skip
    chain.github.put(UPSTREAM, "releases", *many, old)
    chain.github.fail("releases.*page=2", status=502, body=b"<html>")
    chain.later(minutes=60)
    assert chain.look().new == ()
    chain.later(minutes=6)
    assert len([k for k in [each.key for each in chain.look().new] if "gh:rel:" in k]) == 50


def test_a_tag_that_moves_is_told_as_one(chain: Scene) -> None:
    """`nightly` is put on new files every day: that is no release, and never the latest."""
    old = make.release(1, "v1.0", "2026-05-17T00:00:00Z")
    chain.github.put(UPSTREAM, "releases", old)
    chain.look()
    nightly = make.release(2, "nightly", "2026-05-18T12:03:00Z")
    chain.github.put(UPSTREAM, "releases", nightly, old)
    chain.later(minutes=6)
    (told,) = chain.look().new
    assert (told.kind, told.key) == ("tag_moved", "gh:rel:2")
    assert told.title == "ggml-org/llama.cpp: nightly, a tag that moves, has a new release " + (
        "(no files yet)"
    )
