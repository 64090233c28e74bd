"""What counts as new in what a source saw."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from scout.news import PACKAGE_CHANGED, RELEASE, whats_new
from scout.sources.base import Sighting
from scout.sources.package_index import order_key


def sighting(label: str, commit: str) -> Sighting:
    return Sighting(label, commit * 64, order_key(label))


def test_unseen_versions_are_releases_oldest_first() -> None:
    """Each gets a key of engine, version and digest."""
    news = whats_new("wheel", [sighting("1.10", "b"), sighting("1.9", "a")], {})
    assert [(each.kind, each.sighting.label) for each in news] == [
        (RELEASE, "1.9"),
        (RELEASE, "1.10"),
    ]
    assert news[0].key == f"release:wheel:1.9:{'a' * 64}"


def test_what_is_known_is_no_news() -> None:
    """The same version with the same file says nothing."""
    assert whats_new("wheel", [sighting("1.9", "a")], {"1.9": "a" * 64}) == []


def test_a_replaced_file_is_told_and_is_no_release() -> None:
    """The same version with another sha256 names both digests."""
    (news,) = whats_new("wheel", [sighting("1.9", "b")], {"1.9": "a" * 64})
    assert news.kind == PACKAGE_CHANGED
    assert news.known_commit == "a" * 64
    assert news.key == f"package_changed:wheel:1.9:{'b' * 64}"
    assert "aaaaaaaaaaaa" in news.title
    assert "bbbbbbbbbbbb" in news.title


def test_what_is_no_longer_seen_is_no_news() -> None:
    """An empty or shorter list never means "gone"."""
    assert whats_new("wheel", [], {"1.9": "a" * 64}) == []


def test_the_same_file_under_two_labels_is_one_revision() -> None:
    """Identity is the digest, the label is only a name."""
    news = whats_new("wheel", [sighting("1.9", "a"), sighting("1.9.0", "a")], {})
    assert len(news) == 1


VERSIONS = st.builds(
    lambda parts, post: ".".join(map(str, parts)) + (f".post{post}" if post else ""),
    st.lists(st.integers(0, 20_261_130), min_size=1, max_size=6),
    st.integers(0, 3),
)


@given(VERSIONS, VERSIONS)
def test_order_keys_sort_as_versions(one: str, other: str) -> None:
    """Text order of the keys is version order, in every database."""
    assert (order_key(one) < order_key(other)) == (Version(one) < Version(other))
