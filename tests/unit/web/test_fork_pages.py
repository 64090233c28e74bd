"""The pages of forks from values: numbers in words, strangers' text harmless."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from xml.etree import ElementTree

import pytest
from support.fork_rows import HARM, SCRIPT
from support.fork_values import APART, SYNC, detail, fork, standing
from support.rows import NOON

from jobs.store.shown import ShownEvent
from jobs.store.shown_forks import (
    Ability,
    Beyond,
    ForkDetail,
    Forks,
    OtherFork,
    ShownDistance,
    ShownIssue,
    ShownScore,
)
from web import fork_pages, words
from web.pages import Page
from web.redact import redact
from web.render import Renderer

UPSTREAM, TURBO = fork("upstream"), fork("turboquant", "upstream")
BUUN = fork("buun", "turboquant")


def _html(page: Page) -> str:
    return Renderer(partial(redact, names=["alice"])).html(page, now=NOON)


def test_a_fork_page_tells_where_it_stands() -> None:
    """Staleness in words, the sync, who was absorbed, abilities, a way to GitHub."""
    html = _html(fork_pages.fork(detail(BUUN, UPSTREAM, TURBO), now=NOON))
    assert "on upstream of 2026-04-30, 187 days old, and lacks 229 commits of upstream" in html
    assert 'href="https://github.com/owner/buun"' in html
    assert "262 patches, 319 commits as they were" in html
    assert "26 pull requests picked one by one" in html
    assert "Beyond turboquant" in html
    assert "<code>--tree-budget</code>" in html
    assert f'href="../forks/{TURBO.id}.html"' in html


def test_the_drawing_is_well_formed_and_has_words() -> None:
    """The SVG parses, is named and described, and needs no style of its own."""
    html = _html(fork_pages.fork(detail(BUUN, UPSTREAM, TURBO), now=NOON))
    (svg,) = re.findall(r"<svg width.*?</svg>\s*</div>", html, re.DOTALL)
    root = ElementTree.fromstring(svg.removesuffix("</div>"))  # noqa: S314  (our own markup)
    assert root.attrib["aria-labelledby"] == "lineage-title lineage-words"
    assert root.find("title").text == "The chain of buun, upstream at the top"
    assert "turboquant is under upstream" in root.find("desc").text
    assert "style=" not in html
    assert "<script" not in html


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (standing(from_upstream=None), "It is the upstream of its chain"),
        (standing(from_upstream=ShownDistance(3, 0, "a" * 40)), "everything that upstream had"),
        (standing(from_upstream=ShownDistance(3, 9, None), last_sync=None), "no commit in common"),
        (standing(from_upstream=ShownDistance(3, 1, "a" * 40)), "lacks 1 commit of upstream"),
    ],
)
def test_staleness_is_a_sentence(found, sentence: str) -> None:
    """Also where there is nothing to be behind of."""
    assert sentence in words.staleness(found, now=SYNC.upstream_at + timedelta(days=1))


def test_a_clock_before_the_commit_gives_no_negative_age() -> None:
    """A committer's date in the future is no age below zero."""
    assert "0 days old" in words.staleness(standing(), now=SYNC.upstream_at - timedelta(days=3))


def test_an_engine_that_was_not_seen_says_what_to_do() -> None:
    """No zeros are shown for what is not known."""
    unseen = fork("unseen", "upstream", standing=None)
    html = _html(fork_pages.fork(detail(unseen, UPSTREAM), now=NOON))
    assert "forkscout scout run" in html
    assert "ahead of upstream" not in html
    assert "Not read yet." in html


def test_what_a_base_does_not_say_is_told_so() -> None:
    """Neither "nothing" nor a number; what was not shown is counted."""
    abilities = (
        Ability("spec_types", 9, None, Beyond(0, ())),
        Ability("flags", 900, Beyond(300, ("--a",)), None),
    )
    shown = fork("buun", "turboquant", standing=standing(abilities=abilities))
    html = _html(fork_pages.fork(detail(shown, UPSTREAM, TURBO), now=NOON))
    assert "not said" in html
    assert "and 299 more" in html


def test_hostile_text_is_text() -> None:
    """Markup, colours and reordering in names, branch, description and titles do nothing."""
    evil = fork(
        SCRIPT,
        "upstream",
        full_name='x" onmouseover="alert(1)',
        description=HARM,
        standing=standing(branch=SCRIPT, problem=HARM),
    )
    event = ShownEvent("fork_pushed", HARM, SCRIPT, NOON, evil.id, (HARM, SCRIPT))
    page = fork_pages.fork(ForkDetail(evil, (UPSTREAM, evil), (event,), 30, (), 0), now=NOON)
    other = OtherFork(SCRIPT, HARM, 3, 1, None, True, "gone", HARM)
    for html in (_html(page), _html(fork_pages.forks(Forks((evil,), (other,), 9, ()), now=NOON))):
        assert "<script" not in html
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", html)
        assert 'onmouseover="' not in html
        assert "github.com" not in html
    assert "29 older ones" in _html(page)


def test_the_list_is_bounded_and_says_so() -> None:
    """What is beyond the page is counted, and where to see it is told."""
    other = OtherFork("a/b", "ggml-org/llama.cpp", 2, 7, NOON, False, "known", "a fork")
    html = _html(fork_pages.forks(Forks((UPSTREAM,), (other,), 14_000, ()), now=NOON))
    assert "13999 more are known" in html
    assert "a candidate" in html
    assert "2026-11-03" in html


def test_no_page_leads_to_a_blocked_repository() -> None:
    """Its name stays, with the word; neither it nor an issue of it is a link (451)."""
    away = fork("buun", "turboquant", state="blocked")
    issue = ShownIssue("a/b", 7, "issue", "open", "title", "", None, repository_state="blocked")
    other = OtherFork("a/b", None, 2, 7, NOON, False, "blocked", "")
    one = ForkDetail(away, (UPSTREAM, away), (), 0, (), 0, (issue,))
    pages = (fork_pages.fork(one, now=NOON),
             fork_pages.forks(Forks((away,), (other,), 1, (issue,)), now=NOON))  # fmt: skip
    for html in map(_html, pages):
        assert "github.com" not in html
        assert "a/b#7" in html
        assert '<span class="badge bad">blocked</span>' in html


def test_a_score_comes_with_its_reasons_and_its_date() -> None:
    """Rounded, the first three reasons and how many more; who was shut out has no number."""
    reasons = ("+25 40 patches", "+10 speaks of mtp", "+8 a tag", "+3 9 stars")
    scored = OtherFork("a/b", "c/d", 2, 7, NOON, False, "known", "",
                       ShownScore(46.4, reasons, "", NOON))  # fmt: skip
    shut = OtherFork("e/f", "c/d", 2, 7, NOON, False, "known", "",
                     ShownScore(0.0, (), "nobody ever pushed to it", NOON))  # fmt: skip
    html = _html(fork_pages.forks(Forks((), (scored, shut), 2, ()), now=NOON))
    assert "<strong>46</strong>" in html
    assert "+8 a tag</bdi>; 1 more" in html
    assert "nobody ever pushed to it" in html
    assert f'as it was at the last look, <time datetime="{NOON.isoformat()}"' in html


def test_an_empty_list_says_what_to_do() -> None:
    """Each part names the command that fills it."""
    html = _html(fork_pages.forks(Forks((), (), 0, ()), now=NOON))
    for command in ("watchlist import", "scout run --source github_forks", "watch issue"):
        assert command in html


@pytest.mark.parametrize("name", ["a", "a/b/c", "a/../b", "javascript:alert(1)", "a/b?x", "-a/b"])
def test_only_a_repository_has_an_address(name: str) -> None:
    """No other scheme, no path, no query gets into a link."""
    assert fork_pages.address(name) is None
    assert fork_pages.address("a/b", "/issues/3") == "https://github.com/a/b/issues/3"


def test_every_kind_of_ability_and_tier_has_a_word() -> None:
    """A kind that is stored is spoken."""
    assert APART.merge_base
    assert set(words.ABILITY) == {"flags", "ggml_types", "cache_types", "spec_types", "archs"}
    assert set(words.TIER) == {0, 1, 2, 3}


def test_a_fork_page_tells_the_age_of_its_head_and_its_latest_release() -> None:
    """A branch that stands still is seen to (C73); the release is a stranger's text (C66)."""
    stands = standing(committed_at=NOON - timedelta(days=40))
    shown = fork("buun", "turboquant", standing=stands, latest_release=f"v2.8.3{SCRIPT}")
    html = _html(fork_pages.fork(detail(shown, UPSTREAM, TURBO), now=NOON))
    assert ", 40 days ago" in html
    assert "<dt>Latest release</dt><dd><bdi>v2.8.3" in html
    assert SCRIPT not in html
    assert words.age(NOON, now=NOON) == "today"
