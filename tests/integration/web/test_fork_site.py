"""Forks on the live site, as JSON and in the export."""

from __future__ import annotations

import json
import re

import pytest
from support.asgi import ask
from support.fork_rows import CHAIN, SCRIPT

from web.app import create_app
from web.export import export
from web.site import site_of


@pytest.fixture
def app(example):
    return create_app(example.engine, example.settings)


def test_a_fork_has_a_page_with_its_chain(app, example) -> None:
    """Each member leads to its own page; results and news of the engine are there."""
    html = ask(app, f"/forks/{example.ids['beellama']}.html").text
    for name in CHAIN:
        assert f'href="../forks/{example.ids[name]}.html"' in html
    assert f'href="../results/{example.ids["chained"]}.html"' in html
    assert "beellama released" in html
    assert 'href="https://github.com/Anbeeld/beellama.cpp/issues/35"' in html
    assert "wide-1" not in html


def test_the_other_pages_lead_there(app, example) -> None:
    """Engines, the front page's news and the list of forks."""
    link = f"forks/{example.ids['beellama']}.html"
    for path in ("/engines.html", "/index.html", "/forks.html"):
        assert f'href="{link}"' in ask(app, path).text, path


def test_the_list_shows_two_hundred_of_the_others(app) -> None:
    """The closest and most starred first; the rest is a number."""
    html = ask(app, "/forks.html").text
    assert "person-199/llama.cpp" in html
    assert "person-200/llama.cpp" not in html
    assert "30 more are known" in html
    assert 'href="https://github.com/Anbeeld/beellama.cpp/issues/36"' in html
    assert "pull request open" in html


def test_harm_is_shown_and_does_nothing(app, example) -> None:
    """Names, branches, descriptions, titles and flags of strangers are text on every page."""
    paths = ["/forks.html", *(f"/forks/{example.ids[name]}.html" for name in ("harm", "long"))]
    for path in paths:
        html = ask(app, path).text
        assert "<script" not in html
        assert "&lt;script&gt;" in html
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", html)


def test_the_same_as_json(app, example) -> None:
    """Forks, one fork, and a lineage by the engine's name carry what the pages carry."""
    forks = ask(app, "/api/v1/forks").json()
    assert (len(forks["others"]), forks["others_total"]) == (200, 230)
    assert len(forks["watched"]) == 47
    assert forks["issues"][0]["number"] == 35
    fork = ask(app, f"/api/v1/forks/{example.ids['beellama']}").json()
    assert [each["engine"] for each in fork["chain"]] == list(CHAIN)
    assert fork["fork"]["standing"]["from_upstream"]["ahead"] == 41
    assert fork["fork"]["standing"]["abilities"][0]["beyond_upstream"]["names"]
    assert fork["events"][0]["kind"] == "release"
    lineage = ask(app, "/api/v1/lineage/buun").json()
    assert [each["parent"] for each in lineage["chain"]] == [None, *CHAIN[:-1]]
    assert ask(app, "/api/v1/forks", method="HEAD").status_code == 200
    unseen = ask(app, "/api/v1/lineage/unseen").json()
    assert unseen["chain"][0]["standing"] is None


def test_json_of_forks_has_nothing_that_drives_a_terminal(app, example) -> None:
    """Reordering marks and colours are gone; markup is a plain string in JSON."""
    answer = ask(app, f"/api/v1/forks/{example.ids['harm']}")
    assert not re.search("[\u202a-\u202e\x1b]", json.dumps(answer.json(), ensure_ascii=False))
    assert answer.json()["fork"]["standing"]["branch"] == SCRIPT
    assert answer.headers["content-type"] == "application/json"


def test_the_export_has_every_fork(example) -> None:
    """A page for each watched repository, also the one that was never seen."""
    front = export(example.engine, example.settings.resolved_site, site=site_of(example.settings))
    assert len(list((front.parent / "forks").glob("*.html"))) == 47
    assert (front.parent / f"forks/{example.ids['unseen']}.html").is_file()
