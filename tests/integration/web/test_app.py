"""The live site: pages, JSON, and what it refuses."""

from __future__ import annotations

import json

import pytest
from support.asgi import ask
from support.example import write_log
from support.rows import NOON, Rows

from jobs import db
from jobs.config import Settings
from jobs.planning.drafts import LeftOut, Why
from jobs.store import rules
from web import pages
from web.app import create_app, hosts

FIXED = ("/", *(f"/{path}" for path in pages.FIXED))


def _strict(text: str):
    def refuse(word: str):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def app(example):
    return create_app(example.engine, example.settings)


@pytest.mark.parametrize("path", FIXED)
def test_every_page_is_there_full_and_empty(empty, app, path: str) -> None:
    """The fixed pages answer, and the front page is also at the root."""
    answer = ask(app, path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "forkscout" in answer.text


def test_results_and_jobs_have_pages(app, example) -> None:
    """A result shows samples, digests and the command; a job its reason and its log."""
    result = ask(app, f"/results/{example.ids['second']}.html").text
    for part in ("73.9 t/s", "warm-up", "Cannot tell below 9.4 %.", "forkscout submit bench"):
        assert part in result
    assert "ran without a sandbox" in result
    job = ask(app, f"/jobs/{example.ids['blocked']}.html").text
    assert "apt install bubblewrap" in job


def test_nothing_private_or_alive_leaves_with_a_log(app, example) -> None:
    """Log page and log API hide home folders, our own folders and tokens, and run nothing."""
    number = example.ids["failed"]
    for path in (f"/jobs/{number}.html", f"/api/v1/jobs/{number}/log"):
        answer = ask(app, path)
        assert answer.status_code == 200
        for private in ("alice", str(example.settings.root), "hf_abc", "\x1b"):
            assert private not in answer.text
        assert "x.cu:12" in answer.text
    assert "<script>" not in ask(app, f"/jobs/{number}.html").text
    assert ask(app, f"/api/v1/jobs/{number}/log").headers["content-type"].startswith("text/plain")


def test_a_log_is_read_on_from_an_offset(app, example) -> None:
    """The answer names the next offset; a line still being written waits for it."""
    write_log(example.settings, example.ids["running"], "one\ntwo\nthr")
    first = ask(app, f"/api/v1/jobs/{example.ids['running']}/log")
    assert first.text == "one\ntwo\n"
    write_log(example.settings, example.ids["running"], "one\ntwo\nthree\n")
    offset = first.headers["x-next-offset"]
    assert ask(app, f"/api/v1/jobs/{example.ids['running']}/log?offset={offset}").text == "three\n"
    assert ask(app, f"/api/v1/jobs/{example.ids['running']}/log?offset=99999").text == ""


def test_a_log_answer_is_bounded(app, example) -> None:
    """Of a huge log the page shows the end and the API a piece."""
    number = example.ids["failed"]
    write_log(example.settings, number, "a line of the log\n" * 200_000 + "the end\n")
    page = ask(app, f"/jobs/{number}.html").text
    assert len(page) < 200_000
    assert "the end" in page
    assert len(ask(app, f"/api/v1/jobs/{number}/log").content) <= 256 * 1024


def test_the_api_speaks_strict_json(app, example) -> None:
    """Leaderboard, jobs, job and result parse without NaN (C126) and carry no private path."""
    board = _strict(ask(app, "/api/v1/leaderboard").text)
    lines = [line for group in board["groups"] for line in group["entries"]]
    assert {line["rank"] for line in lines} == {1, 3, None}
    assert {line["acceptance"] for line in lines if line["engine"] != "beellama"} == {None}
    assert _strict(ask(app, "/api/v1/jobs?limit=3").text)["jobs"][0]["id"]
    failed = ask(app, f"/api/v1/jobs/{example.ids['failed']}")
    assert "alice" not in failed.text
    assert _strict(failed.text)["blame"] == "engine"
    result = _strict(ask(app, f"/api/v1/results/{example.ids['second']}").text)
    assert len(result["boots"]) == 3
    assert len(result["boots"][0]["samples"]) == 4


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/results/999.html", 404),
        ("/jobs/0.html", 404),
        ("/forks/999.html", 404),
        ("/forks/0.html", 404),
        ("/forks/%3Cscript%3E.html", 404),
        ("/jobs/99999999999999999999.html", 404),
        ("/jobs/1.html/x", 404),
        ("/nothing", 404),
        ("/../../etc/passwd", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/static/../app.py", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/static/..%2fapp.py", 404),
        ("/jobs/%3Cscript%3E.html", 404),
        ("/api/v1/jobs/999", 404),
        ("/api/v1/results/999", 404),
        ("/api/v1/forks/999", 404),
        ("/api/v1/forks/x", 422),
        ("/api/v1/lineage/nobody", 404),
        ("/api/v1/lineage/%3Cscript%3E", 404),
        (f"/api/v1/lineage/{'n' * 300}", 422),
        ("/api/v1/jobs/1/log", 404),
        ("/api/v1/jobs/x", 422),
        ("/api/v1/jobs/-1", 422),
        ("/api/v1/jobs/99999999999999999999", 422),
        ("/api/v1/jobs?limit=0", 422),
    ],
)
def test_what_is_not_there_is_refused_in_our_look(app, path: str, status: int) -> None:
    """Unknown and hostile addresses get a page or JSON that says so, never a file."""
    answer = ask(app, path)
    assert answer.status_code == status
    assert "root:" not in answer.text
    assert "<script>" not in answer.text
    if path.startswith("/api/"):
        assert _strict(answer.text)["detail"]
    else:
        assert "static/style.css" in answer.text


@pytest.mark.parametrize("path", ["/", "/nothing", "/api/v1/leaderboard", "/static/style.css"])
def test_every_answer_is_hardened(app, path: str) -> None:
    """Policy and sniffing headers are on pages, errors, JSON and files."""
    headers = ask(app, path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", FIXED)
def test_pages_keep_their_own_policy(app, path: str) -> None:
    """No script, no inline style: the policy has nothing to forbid."""
    html = ask(app, path).text
    assert "<script" not in html
    assert "style=" not in html


def test_only_known_host_names_are_answered(app) -> None:
    """A foreign Host header is refused, loopback names are not."""
    assert ask(app, "/", host="evil.test").status_code == 400
    assert ask(app, "/", host="127.0.0.1:8450").status_code == 200
    assert ask(app, "/", host="[::1]:8450").status_code == 200
    assert "0.0.0.0" not in hosts(Settings(host="0.0.0.0", hosts="bench.lan, x.test"))  # noqa: S104
    assert "bench.lan" in hosts(Settings(host="0.0.0.0", hosts="bench.lan, x.test"))  # noqa: S104


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_the_site_is_only_read(app, method: str) -> None:
    """Nothing but GET and HEAD is answered."""
    assert ask(app, "/leaderboard.html", method=method).status_code == 405
    assert ask(app, "/leaderboard.html", method="HEAD").status_code == 200


def test_health_and_readiness_are_apart(app, example) -> None:
    """Alive without a database, ready only with one."""
    assert ask(app, "/healthz").json() == {"status": "ok"}
    assert ask(app, "/readyz").status_code == 200
    database = example.settings.root / "forkscout.sqlite"
    example.engine.dispose()
    database.write_bytes(b"no database " * 100)
    assert ask(app, "/healthz").status_code == 200
    assert ask(app, "/readyz").status_code == 503


@pytest.mark.parametrize("path", ["/", "/queue.html", "/api/v1/jobs", "/api/v1/leaderboard"])
def test_a_head_is_a_get_without_its_body(app, path: str) -> None:
    """Pages and JSON answer HEAD alike."""
    assert ask(app, path, method="HEAD").status_code == ask(app, path).status_code == 200


@pytest.mark.parametrize(
    "number",
    ["0", "-1", "%2B1", "1.0", "1e0", "1_0", "%201", "01", "%D9%A1", "1" + "0" * 30, "2147483648"],
)
def test_a_number_has_one_spelling(app, number: str) -> None:
    """Other digits, signs, spaces and numbers no row can have name nothing."""
    for kind in ("jobs", "results", "forks"):
        answer = ask(app, f"/api/v1/{kind}/{number}")
        assert answer.status_code == 422
        assert "positive whole numbers" in answer.json()["detail"]


def test_a_log_offset_is_a_plain_number(app, example) -> None:
    """A negative, huge or odd offset is refused, one behind the end reads nothing."""
    log = f"/api/v1/jobs/{example.ids['failed']}/log"
    for offset in ("-1", "9" * 30, "1e3", "%D9%A1", "nan"):
        assert ask(app, f"{log}?offset={offset}").status_code == 422
    answer = ask(app, f"{log}?offset={2**53}")
    assert (answer.status_code, answer.text) == (200, "")


def test_a_deep_path_makes_no_deep_answer(app) -> None:
    """The way back to the root in an error page does not grow with what was asked."""
    answer = ask(app, "/" + "a/" * 20_000)
    assert answer.status_code == 404
    assert len(answer.content) < 5_000


def test_a_database_that_fails_is_told_in_our_look(app, example) -> None:
    """Pages say that they cannot be read now, with all headers; the API says it in JSON."""
    with example.engine.connect() as connection:
        connection.exec_driver_sql("DROP TABLE sample")
        connection.exec_driver_sql("DROP TABLE job_need")
        connection.commit()
    page = ask(app, "/queue.html")
    assert page.status_code == 503
    assert "does not answer" in page.text
    assert "Content-Security-Policy" in page.headers
    assert "does not answer" in ask(app, "/api/v1/leaderboard").json()["detail"]


def test_rigs_and_workers_are_told_as_json(app, example):
    """State, golden and runs of each rig; condition and age of each worker; alarms."""
    rigs = ask(app, "/api/v1/rigs").json()["rigs"]
    assert {rig["state"] for rig in rigs} == {"unproven"}
    found = ask(app, "/api/v1/workers").json()
    assert {"name", "condition", "beat_age_seconds", "job"} <= set(found["workers"][0])
    assert found["at"].endswith("+00:00")
    page = ask(app, "/workers.html").text
    assert all(worker["label"] in page for worker in found["workers"])


def test_an_event_shows_jobs_and_what_was_left_out(app, example) -> None:
    """Page and JSON; the text of strangers stays text."""
    with db.writing(example.engine) as session:
        rows = Rows(session)
        event = rows.event(title="<b>pushed</b>", key="push:1")
        job = rows.job(cause={"event_id": event.id})
        left = LeftOut("x", "qwen on big", Why.DOES_NOT_FIT, "<i>24 GiB</i>", 0.5)
        rules.leave_out(session, event.id, [left], NOON)
        number, job_id = event.id, job.id
    page = ask(app, f"/events/{number}.html").text
    assert f"jobs/{job_id}.html" in page
    for part in ("&lt;b&gt;pushed", "&lt;i&gt;24 GiB", "does not fit"):
        assert part in page
    found = _strict(ask(app, f"/api/v1/events/{number}").text)
    assert [each["id"] for each in found["led_to"]["jobs"]] == [job_id]
    assert found["led_to"]["left_out"][0]["why"] == "does not fit"
    assert f"events/{number}.html" in ask(app, f"/jobs/{job_id}.html").text
    assert ask(app, "/events/99999.html").status_code == 404


def test_budgets_of_today_are_on_the_queue_page_and_in_the_api(app, example) -> None:
    """Hours a day, used, planned and left; without a budget the page says so."""
    assert "Planning has no bound" in ask(app, "/queue.html").text
    with db.writing(example.engine) as session:
        values = {"rig": "cpu", "source": "", "hours_per_day": 7.25}
        rules.upsert_budget(session, "rig:cpu", now=NOON, values=values)
    page = ask(app, "/queue.html").text
    assert "rig cpu" in page
    assert "7.25" in page
    (only,) = _strict(ask(app, "/api/v1/budgets").text)["budgets"]
    assert (only["rig"], only["hours_per_day"], only["by_default"]) == ("cpu", 7.25, False)
