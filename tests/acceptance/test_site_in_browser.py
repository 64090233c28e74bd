"""The exported site in a real browser: narrow and wide, light and dark, without JavaScript."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import uvicorn
from playwright.sync_api import Browser, sync_playwright
from support.example import fill, write_log

from jobs import db
from jobs.config import Settings
from web.app import create_app
from web.export import export
from web.site import site_of

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = Settings(home=tmp_path_factory.mktemp("browser") / "var", _env_file=None)
    engine = db.open_database(settings)
    ids = fill(engine)
    write_log(settings, ids["failed"], "a long line " * 100 + "\n<b>not bold</b>\n")
    front = export(engine, settings.resolved_site, site=site_of(settings))
    engine.dispose()
    return front.parent


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(QUIET)
        )
        yield running
        running.close()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scripts", [True, False])
def test_pages_fit_and_complain_about_nothing(
    folder: Path, browser: Browser, width: int, scripts: bool
) -> None:
    """No page is wider than the window, none logs an error, all need no JavaScript."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        java_script_enabled=scripts,
        color_scheme="light" if scripts else "dark",
    )
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(f"failed: {request.url}"))
    page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    for path in sorted(folder.rglob("*.html")):
        page.goto(path.as_uri())
        name = str(path.relative_to(folder))
        assert page.locator("h1").count() == 1, name
        body = page.locator("body").bounding_box()
        assert body is not None
        assert body["width"] <= width, name
        if scripts:
            reach = page.evaluate("document.documentElement.scrollWidth")
            assert reach <= width, f"{name} is {reach} wide"
    context.close()
    assert said == []


@pytest.mark.needs("chromium")
def test_a_reader_walks_from_the_front_page_to_the_samples(folder: Path, browser: Browser) -> None:
    """Front page, leaderboard, result: the leader's samples and command are two clicks away."""
    page = browser.new_page(java_script_enabled=False)
    page.goto((folder / "index.html").as_uri())
    page.get_by_role("link", name="Leaderboard", exact=True).click()
    page.locator("tr.first a").first.click()
    assert page.get_by_role("heading", name="Every run").is_visible()
    assert page.get_by_role("heading", name="Reproduce it").is_visible()
    assert page.get_by_role("img", name="Decode speed of every run").is_visible()
    assert page.get_by_text("uncaged").first.is_visible()
    page.close()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1440])
def test_a_long_chain_is_drawn_inside_its_box(folder: Path, browser: Browser, width: int) -> None:
    """Forty members scroll in their own box, the page does not; the shown one is marked."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((folder / "forks.html").as_uri())
    page.get_by_role("link", name="wide-39", exact=True).first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawing = page.get_by_role("img", name="The chain of wide-39")
    assert drawing.locator("g.node").count() == 40
    box = drawing.bounding_box()
    assert box is not None
    assert box["width"] > 500
    frame = page.locator("figure.lineage .scroll").bounding_box()
    assert frame is not None
    assert frame["width"] <= width
    marked = drawing.locator("g.shown")
    assert marked.count() == 1
    assert (marked.text_content() or "").split()[0] == "wide-39"
    page.close()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The live site of the example on loopback."""
    settings = Settings(home=tmp_path_factory.mktemp("live") / "var", _env_file=None)
    engine = db.open_database(settings)
    fill(engine)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(engine, settings), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    engine.dispose()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1440])
def test_a_wish_is_judged_without_scripts(live: str, browser: Browser, width: int) -> None:
    """The form is filled in and sent; the answer stands above the table that explains it."""
    page = browser.new_page(viewport={"width": width, "height": 900}, java_script_enabled=False)
    page.goto(f"{live}/fit.html")
    page.locator("[name=target]").select_option("Qwen3.6-27B:Q4_K_M")
    page.locator("[name=engine]").select_option("beellama@0.1")
    page.locator("[name=context]").fill("262144")
    page.locator("[name=ubatch]").fill("256")
    page.locator("[name=kv]").fill("turbo3")
    page.get_by_role("button", name="Judge").click()
    assert "fit.html?target=Qwen3.6-27B" in page.url
    assert page.locator("#answer strong").inner_text().startswith("Fits: ")
    assert page.get_by_role("region", name="What takes memory").is_visible()
    assert page.locator("[name=kv]").input_value() == "turbo3"
    body = page.locator("body").bounding_box()
    assert body is not None
    assert body["width"] <= width
    page.close()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [390, 1440])
def test_every_column_of_the_fit_page_can_be_seen(live: str, browser: Browser, width: int) -> None:
    """No table of it is cut off, and fields of a row are of one height."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(f"{live}/fit.html?{urlencode({'target': 'Qwen3.6-27B:Q4_K_M', 'gpu': '24GiB'})}")
    cut = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)"
    assert page.evaluate(f"{cut}.map(e => e.ariaLabel)") == []
    heights = "[...document.querySelectorAll('.field :is(input, select)')].map(e => e.offsetHeight)"
    assert len(set(page.evaluate(heights))) == 1
    page.close()


@pytest.mark.needs("chromium")
def test_an_odd_wish_is_one_sentence(live: str, browser: Browser) -> None:
    """And what was typed is shown as text."""
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{live}/fit.html?target=%3Cb%3Ex%3C/b%3E")
    assert page.get_by_role("heading", name="That cannot be done as asked").is_visible()
    assert "'<b>x</b>' is no known model file" in page.locator(".lead").inner_text()
    page.close()
