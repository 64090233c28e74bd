"""Negatives on the live site, as JSON and in the export."""

from __future__ import annotations

import json
import re

import pytest
from support.asgi import ask
from support.example import HOSTILE

from web.app import create_app
from web.export import export
from web.site import site_of


@pytest.fixture
def app(example):
    return create_app(example.engine, example.settings)


def test_what_stands_is_beside_what_was_overturned(app, example) -> None:
    """Days left, what it depended on, what moved; how long it stood and what refuted it."""
    html = ask(app, "/negatives.html").text
    stands, overturned = html.split('id="overturned"')
    assert "4 days 23 h left" in stands
    assert "of 7 days" in stands
    assert "the driver went from 560.1 to 570.86.16" in stands
    assert f'href="jobs/{example.ids["waiting"]}.html"' in stands
    assert "the build of beellama for olares-5090m" in stands
    assert "qwen-dflash-262k on olares-5090m at 262,144 tokens" in stands
    assert "impossible for <strong>3 days 4 h</strong>" in overturned
    assert f'href="results/{example.ids["chained"]}.html"' in overturned
    assert f'href="negatives.html#n{example.ids["believed"]}"' in overturned


def test_harm_is_shown_and_does_nothing(app) -> None:
    """Strangers' words are text, and private paths are not told."""
    html = ask(app, "/negatives.html").text
    assert HOSTILE not in html
    assert "&lt;img src=x" in html
    assert "/home/alice" not in html
    assert "/home/alice" not in ask(app, "/api/v1/negatives").text


def test_an_empty_site_says_what_to_do(empty) -> None:
    """Nothing stands, nothing was overturned."""
    html = ask(create_app(empty.engine, empty.settings), "/negatives.html").text
    assert "Nothing stands as impossible." in html
    assert "forkscout negatives add" in html


def test_the_api_tells_all_of_it(app, example) -> None:
    """Grounds, days left, moves; a chain from any of its members."""
    found = json.loads(ask(app, "/api/v1/negatives").text)
    assert len(found["standing"]) == 3
    (standing,) = [n for n in found["standing"] if n["id"] == example.ids["standing"]]
    assert standing["left"] == "4 days 23 h left"
    assert 0 < standing["left_seconds"] < 5 * 86400
    assert standing["what"] == "qwen-dflash-262k on olares-5090m at 262,144 tokens"
    assert standing["grounds"]["driver"] == "570.86.16"
    assert standing["retest_id"] == example.ids["waiting"]
    assert [n["overturned_by"] for n in found["overturned"]].count(None) == 0
    for name in ("believed", "unstable"):
        chain = json.loads(ask(app, f"/api/v1/negatives/{example.ids[name]}").text)["chain"]
        assert [n["id"] for n in chain] == [example.ids["believed"], example.ids["unstable"]]


@pytest.mark.parametrize(("number", "status"), [("9999", 404), ("0", 422), ("1.5", 422)])
def test_a_number_that_is_none_is_refused(app, number, status) -> None:
    """As everywhere in the API."""
    assert ask(app, f"/api/v1/negatives/{number}").status_code == status


def test_the_export_holds_the_page_and_its_links_lead_somewhere(example, tmp_path) -> None:
    """Jobs, results and anchors of the page itself."""
    site = export(example.engine, tmp_path / "site", site=site_of(example.settings)).parent
    html = (site / "negatives.html").read_text()
    ids = set(re.findall(r'id="([^"]+)"', html))
    for target in re.findall(r'href="((?:jobs|results|negatives)[^"]+)"', html):
        path, _, anchor = target.partition("#")
        assert (site / path).is_file(), target
        assert not anchor or anchor in ids, target


def test_a_forks_page_tells_what_does_not_work_now(app, example) -> None:
    """With a link to all of it."""
    html = ask(app, f"/forks/{example.ids['beellama']}.html").text
    assert f'href="../negatives.html#n{example.ids["standing"]}"' in html
    assert "at 262,144 tokens" in html
    assert "4 days 23 h left" in html
