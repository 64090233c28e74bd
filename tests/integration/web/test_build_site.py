"""Builds on the live site, as JSON and in the export."""

from __future__ import annotations

import json

import pytest
from support.asgi import ask
from support.rows import Rows

from jobs import db
from jobs.build_tables import BuildFlagsRow
from jobs.dialect.options import Option, stored
from jobs.model import Kind, State
from web.app import create_app
from web.export import export
from web.site import site_of

HARM = "<img src=x onerror=alert(1)>"
PHASES = [{"name": "configure", "seconds": 1.25}, {"name": "compile", "seconds": 100.5}]


@pytest.fixture
def numbers(empty):
    """A build with everything, one of before that was kept, and a build that failed."""
    with db.writing(empty.engine) as session:
        rows = Rows(session)
        told = {
            "source": "owner/tiny",
            "phases": PHASES,
            "cache": {"hits": 200, "misses": 44},
            "tools": {"cmake": f"cmake version 3.25 {HARM}"},
            "steps": [["cmake", "-S", "/home/alice/x", HARM]],
        }
        made = rows.build(provenance=told)
        old = rows.build(provenance={})
        options = [
            Option(("-c", "--ctx-size"), hint="N", env=("LLAMA_ARG_CTX_SIZE",), section="common"),
            Option(("--draft-max",), section="speculative", removed=True),
            Option(("--fa",), values=("on", HARM), section="speculative"),
        ]
        session.add(BuildFlagsRow(build_id=made.id, options=stored(options)))
        failed = rows.job(
            kind=Kind.BUILD,
            state=State.FAILED,
            failure_class="compile_error",
            progress={"phase": "compile", "phases": PHASES},
        )
        return {"made": made.id, "old": old.id, "failed": failed.id, "job": made.job_id}


@pytest.fixture
def app(empty, numbers):
    return create_app(empty.engine, empty.settings)


def test_a_build_is_shown_with_all_that_made_it(app, numbers) -> None:
    """Phases, hits in the cache, tools, steps, options by section; linked with its job."""
    html = ask(app, f"/builds/{numbers['made']}.html").text
    for words in ("owner/tiny", "200 of 244 from the cache", "100.5 s", "LLAMA_ARG_CTX_SIZE"):
        assert words in html
    assert html.index("<h3>common</h3>") < html.index("<h3>speculative</h3>")
    assert "removed" in html
    assert f'href="../jobs/{numbers["job"]}.html"' in html
    job = ask(app, f"/jobs/{numbers['job']}.html").text
    assert f'href="../builds/{numbers["made"]}.html"' in job


def test_a_build_that_failed_shows_its_phases_with_its_job(app, numbers) -> None:
    """It has no page of its own: nothing came of it."""
    html = ask(app, f"/jobs/{numbers['failed']}.html").text
    assert "100.5 s" in html
    assert "builds/" not in html


def test_harm_is_shown_and_does_nothing(app, numbers) -> None:
    """Strangers' words are text, and private paths are not told."""
    for path in (f"/builds/{numbers['made']}.html", f"/api/v1/builds/{numbers['made']}"):
        told = ask(app, path).text
        assert "/home/alice" not in told
    assert HARM not in ask(app, f"/builds/{numbers['made']}.html").text


def test_what_was_not_kept_is_not_invented(app, numbers) -> None:
    """An old build has neither phases nor options."""
    html = ask(app, f"/builds/{numbers['old']}.html").text
    assert "Not kept" in html
    assert "not asked" in html
    assert json.loads(ask(app, f"/api/v1/builds/{numbers['old']}").text)["options"] is None


def test_the_api_tells_all_of_it(app, numbers) -> None:
    """One build, and the list with those that failed."""
    found = json.loads(ask(app, f"/api/v1/builds/{numbers['made']}").text)
    assert found["phases"] == PHASES
    assert found["cached"] == {"hits": 200, "misses": 44}
    assert found["options"][0]["spellings"] == ["-c", "--ctx-size"]
    listed = json.loads(ask(app, "/api/v1/builds").text)["builds"]
    assert {each["build_id"] for each in listed} == {numbers["made"], numbers["old"], None}
    assert ask(app, "/api/v1/builds?limit=0").status_code == 422


@pytest.mark.parametrize(("number", "status"), [("9999", 404), ("0", 422), ("1.5", 422)])
def test_a_number_that_is_none_is_refused(app, number, status) -> None:
    """As everywhere in the API."""
    assert ask(app, f"/api/v1/builds/{number}").status_code == status


def test_the_export_holds_a_page_for_each(empty, numbers, tmp_path) -> None:
    """Beside the pages of jobs."""
    export(empty.engine, tmp_path / "site", site=site_of(empty.settings))
    made = {path.name for path in (tmp_path / "site" / "builds").iterdir()}
    assert made == {f"{numbers['made']}.html", f"{numbers['old']}.html"}
