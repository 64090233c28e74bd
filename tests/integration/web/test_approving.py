"""The form that lets a commit in: for this machine and a token alone, and for that exact commit."""

from __future__ import annotations

from urllib.parse import urlencode

import httpx
import pytest
from pydantic import SecretStr, ValidationError
from support.asgi import ask
from support.rows import NOON, Rows

from jobs import db, planner
from jobs.config import Settings
from jobs.dispatch import revision_value
from jobs.model import BuildTarget, Lane, State, Trust
from jobs.store import approvals, work
from jobs.tables import JobRow
from web.app import create_app
from web.export import export
from web.site import site_of

TOKEN = "a token that nobody guesses"
SHA = "a1" * 20
HERE = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}


class Scene:
    """A build that waits for a person, and the site that shows it."""

    def __init__(self, database, home, token=TOKEN):
        self.database = database
        self.settings = Settings(home=home, admin_token=SecretStr(token))
        self.settings.prepare()
        self.app = create_app(database, self.settings)
        with db.writing(database) as session:
            rows = Rows(session)
            engine = rows.engine(name="fork", repo="owner/fork", trust=Trust.APPROVE)
            revision = rows.revision(engine, commit=SHA, label="main@a1a1a1a1a")
            request = planner.build_request(
                revision_value(engine, revision),
                revision.id,
                BuildTarget("cpu", "cmake"),
                lane=Lane.FRESH,
                reason="a push",
            )
            [job] = work.enqueue(session, [request], NOON).values()
            self.number = job.id

    def page(self, **sent) -> str:
        return ask(self.app, f"/jobs/{self.number}.html", **sent).text

    def send(self, *, headers=None, host="localhost", **fields) -> httpx.Response:
        body = urlencode({"token": TOKEN, "commit": SHA} | fields)
        return ask(
            self.app,
            f"/jobs/{self.number}/approve",
            method="POST",
            host=host,
            headers=HERE | (headers or {}),
            content=body,
        )

    @property
    def waits(self) -> bool:
        with db.reading(self.database) as session:
            return session.get_one(JobRow, self.number).state == State.BLOCKED


@pytest.fixture
def scene(database, tmp_path) -> Scene:
    return Scene(database, tmp_path / "home")


def test_the_page_shows_the_commit_and_the_form_lets_it_in(scene):
    """For fourteen days, said before and kept after; then there is no form any more."""
    page = scene.page()
    assert f"forkscout approve fork@{SHA}" in page
    assert "Let a1a1a1a1a1a1 in for 14 days" in page
    assert TOKEN not in page
    answer = scene.send()
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{scene.number}.html")
    assert not scene.waits
    with db.reading(scene.database) as session:
        [word] = approvals.approvals(session, db.database_now(session))
    assert (word.commit, word.approved_by, word.note) == (SHA, "the site's form", "job 1")
    assert (word.expires_at - word.approved_at).days == 14
    assert "<form" not in scene.page()
    assert scene.send().status_code == 409


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"token": ""}, 401),
        ({"token": TOKEN[:-1]}, 401),
        ({"token": "ä" * 20}, 401),
        ({"commit": "b2" * 20}, 409),
        ({"commit": ""}, 409),
        ({"headers": {"Sec-Fetch-Site": "cross-site"}}, 403),
        ({"headers": {"Sec-Fetch-Site": "same-site"}}, 403),
        ({"headers": {"X-Forwarded-For": "203.0.113.9"}}, 403),
        ({"headers": {"Forwarded": "for=203.0.113.9"}}, 403),
        ({"host": "evil.example.org"}, 400),
        ({"more": "x" * 5000}, 413),
        ({str(number): "x" for number in range(20)}, 400),
    ],
)
def test_anything_else_lets_nothing_in(scene, sent, status):
    """A wrong token, another commit, another site, a proxy, a body without end."""
    assert scene.send(**sent).status_code == status
    assert scene.waits


def test_another_machine_sees_no_form_and_is_refused(database, tmp_path):
    """Whatever name it calls the site by."""
    scene = Scene(database, tmp_path / "home")

    async def from_afar(scope, receive, send):
        await scene_app({**scope, "client": ("203.0.113.9", 5)}, receive, send)

    scene_app, scene.app = scene.app, from_afar
    assert "<form" not in scene.page()
    assert scene.send().status_code == 403
    assert scene.waits


def test_without_a_token_there_is_no_form(database, tmp_path):
    """And no address that takes one."""
    scene = Scene(database, tmp_path / "home", token="")
    assert "<form" not in scene.page()
    assert f"forkscout approve fork@{SHA}" in scene.page()
    assert scene.send(token="").status_code == 405


def test_a_static_export_shows_no_form(scene, tmp_path):
    """It shows the commit and the command."""
    export(scene.database, tmp_path / "site", site=site_of(scene.settings))
    page = (tmp_path / "site/jobs" / f"{scene.number}.html").read_text()
    assert f"forkscout approve fork@{SHA}" in page
    assert "<form" not in page


@pytest.mark.parametrize("token", ["short", "x" * 201, "ä" * 30])
def test_a_token_that_could_be_guessed_is_refused(tmp_path, token):
    """At the start, and the message does not repeat it."""
    with pytest.raises(ValidationError) as caught:
        Settings(home=tmp_path, admin_token=SecretStr(token))
    assert token not in str(caught.value)
