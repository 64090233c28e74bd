"""What fits, on the live site, in the API and in the static copy."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from support.asgi import ask
from support.example import HOSTILE

from web.app import create_app
from web.export import export
from web.site import site_of

QWEN = "Qwen3.6-27B:Q4_K_M"
STORY = {"target": QWEN, "engine": "beellama@0.1", "kv": "turbo3", "context": "262144"}


@pytest.fixture
def app(example):
    return create_app(example.engine, example.settings)


def page(app, **asked: str):
    return ask(app, f"/fit.html?{urlencode(asked)}")


def test_the_page_shows_estimates_beside_measurements(app) -> None:
    """With the error of lines judged by others, and what nobody measured."""
    text = ask(app, "/fit.html").text
    assert "beellama@0.1 with qwen35" in text
    assert "Mean error 1.1 % before" in text
    assert "One layout alone cannot judge" in text
    assert "not measured" in text
    assert "it ran on the host" in text
    assert "Nothing was measured here of upstream@2026-05" in text
    assert 'id="answer"' not in text


def test_a_wish_is_answered_on_the_page_and_in_the_api(app) -> None:
    """The same verdict, corrected unless it is asked raw."""
    text = page(app, **STORY, ubatch="256").text
    assert "Fits: 20." in text
    assert "corrected by 2 measured boots of beellama@0.1 with qwen35" in text
    assert "work copy" in text
    answer = ask(app, f"/api/v1/fit?{urlencode({**STORY, 'ubatch': '256'})}").json()
    assert (answer["verdict"], answer["corrected_by_boots"]) == ("fits", 2)
    assert answer["largest_context"]["surely"] == 262_144
    assert "MiB" not in answer["sentence"]
    raw = ask(app, f"/api/v1/fit?{urlencode({**STORY, 'ubatch': '256', 'raw': '1'})}").json()
    assert raw["corrected_by_boots"] == 0
    assert raw["bytes"]["filled"]["likely"] < answer["bytes"]["filled"]["likely"]
    assert "corrected" not in " ".join(raw["notes"])


def test_drafter_and_projector_come_by_name(app) -> None:
    """And a file in the wrong place is told as what keeps it from running."""
    more = {"drafter": "Qwen3.6-27B-DFlash:Q8_0", "mmproj": "Qwen3.6-27B-mmproj:F16"}
    text = page(app, **STORY, **more, ubatch="2048").text
    assert "Does not fit: " in text
    assert "drafter exchange" in text
    assert "projector buffers" in text
    swapped = ask(app, f"/api/v1/fit?{urlencode({**STORY, 'mmproj': QWEN})}").json()
    assert any("no projector" in each for each in swapped["obstacles"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"target": "nobody"}, "no known model file"),
        ({"target": ""}, "no target is named"),
        ({"target": "a-page"}, "an HTML page"),
        ({"target": QWEN, "context": "9e9"}, "no whole number of tokens"),
        ({"target": QWEN, "context": "-1"}, "no whole number of tokens"),
        ({"target": QWEN, "context": "\u0663"}, "no whole number of tokens"),
        ({"target": QWEN, "context": "999999999"}, "out of range"),
        ({"target": QWEN, "gpu": "24"}, "no amount of memory"),
        ({"target": QWEN, "gpu": "9" * 15 + "TiB"}, "more than any card has"),
        ({"target": QWEN, "kv": "../etc"}, "no cache type"),
        ({"target": QWEN, "kv": "turbo9"}, "turbo9"),
        ({"target": QWEN, "engine": "no<b>body"}, "nothing was read of an engine"),
        ({"target": QWEN, "engine": "beellama@v9"}, "beellama has no known revision"),
        ({"target": QWEN, "parallel": "0"}, "no whole number"),
        ({"target": "x'; DROP TABLE job; --"}, "no known model file"),
        ({"target": QWEN, "raw": "maybe"}, "raw is either"),
        ({HOSTILE: "1"}, "there is no parameter"),
        ({"target": "a\x00b"}, "signs that nobody sees"),
    ],
)
def test_odd_wishes_are_422_and_one_sentence(app, asked, words: str) -> None:
    """On the page and in the API alike; nothing of it becomes markup."""
    for path in ("/fit.html", "/api/v1/fit"):
        answer = ask(app, f"{path}?{urlencode(asked)}")
        assert answer.status_code == 422
        assert words.lower() in answer.text.lower()
        assert path.startswith("/api/") or "<img src=x" not in answer.text
    assert "That cannot be done as asked" in page(app, **asked).text


def test_models_are_listed_with_their_facts(app) -> None:
    """One that cannot be judged says why; no shape leaves the house."""
    models = {each["name"]: each for each in ask(app, "/api/v1/models").json()["models"]}
    assert models[QWEN]["can_be_judged"]
    assert models[QWEN]["facts"]["architecture"] == "qwen35"
    assert models[QWEN]["header"]["architecture"] == "qwen35"
    assert len({tuple(each["facts"]) for each in models.values()}) == 1
    assert "shape" not in models[QWEN]
    assert not models["a-page"]["can_be_judged"]
    assert "HTML" in models["a-page"]["fault"]


def test_the_static_copy_has_the_table_and_no_form(example) -> None:
    """What cannot work there is not there."""
    front = export(example.engine, example.settings.resolved_site, site=site_of(example.settings))
    text = (front.parent / "fit.html").read_text()
    assert "<form" not in text
    assert "beellama@0.1 with qwen35" in text
    assert "<img src=x" not in text


def test_an_empty_installation_says_what_to_do(empty) -> None:
    """No model, no boot, no form."""
    app = create_app(empty.engine, empty.settings)
    text = ask(app, "/fit.html").text
    assert "No model&#39;s header has been read yet" in text or "No model's header" in text
    assert "Nothing was measured" in text
    assert ask(app, "/api/v1/models").json() == {"models": []}
    assert ask(app, "/api/v1/fit").status_code == 422
