"""The static export: whole, linked, without anything private, and swapped in at once."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.example import fill
from support.links import dead_links

from jobs.errors import UsageError
from web.export import export
from web.site import site_of


def test_an_export_has_every_page_and_no_dead_link(example) -> None:
    """All results and jobs have their page, and every link leads to a file of the export."""
    front = export(example.engine, example.settings.resolved_site, site=site_of(example.settings))
    folder = front.parent
    assert dead_links(folder) == []
    assert (folder / f"results/{example.ids['chained']}.html").is_file()
    assert (folder / f"jobs/{example.ids['waiting']}.html").is_file()
    assert (folder / "static/style.css").is_file()


def test_an_export_of_nothing_has_no_dead_link(empty) -> None:
    """An empty database gives a whole site, too."""
    front = export(empty.engine, empty.settings.resolved_site, site=site_of(empty.settings))
    assert dead_links(front.parent) == []


def test_an_export_tells_nothing_about_the_machine(example) -> None:
    """No page holds a home folder, the installation's folder, a token or live markup."""
    front = export(example.engine, example.settings.resolved_site, site=site_of(example.settings))
    pages = list(front.parent.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        for private in ("/home/alice", str(example.settings.root), "hf_abc", "<img src=x"):
            assert private not in text, f"{private} in {page.name}"


def test_both_databases_give_the_same_pages(database: Engine, empty) -> None:
    """The export reads one snapshot of either kind."""
    ids = fill(database)
    front = export(database, empty.settings.resolved_site, site=site_of(empty.settings))
    assert dead_links(front.parent) == []
    assert (front.parent / f"results/{ids['first']}.html").is_file()


def test_the_old_site_stands_until_the_new_one_is_whole(example) -> None:
    """A crash in the middle changes nothing and leaves no half folder."""
    site, folder = site_of(example.settings), example.settings.resolved_site
    front = export(example.engine, folder, site=site)
    before = {page.relative_to(folder) for page in folder.rglob("*")}
    calls = 0

    def crash(text: str) -> str:
        nonlocal calls
        calls += 1
        if calls > 500:
            raise OSError(28, "No space left on device")
        return text

    with pytest.raises(OSError, match="No space left"):
        export(example.engine, folder, site=dataclasses.replace(site, clean=crash))
    assert front.read_text()
    assert {page.relative_to(folder) for page in folder.rglob("*")} == before
    assert len(list(folder.parent.glob(".site-*"))) == 2  # the site and its lock


def test_a_second_export_replaces_the_first_by_one_rename(example) -> None:
    """The folder is a link to a sibling; the old sibling goes, what a crash left goes, too."""
    site, folder = site_of(example.settings), example.settings.resolved_site
    export(example.engine, folder, site=site)
    old = folder.resolve()
    (folder.parent / ".site-crashed_").mkdir()
    export(example.engine, folder, site=site)
    assert folder.is_symlink()
    assert folder.resolve() != old
    assert not old.exists()
    assert not (folder.parent / ".site-crashed_").exists()


def test_a_folder_of_somebody_else_is_never_replaced(example, tmp_path: Path) -> None:
    """A folder that holds anything but an export is refused and stays as it was."""
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat.png").write_bytes(b"x")
    with pytest.raises(UsageError, match="no forkscout site"):
        export(example.engine, folder, site=site_of(example.settings))
    assert (folder / "cat.png").read_bytes() == b"x"
    (folder / "cat.png").unlink()
    export(example.engine, folder, site=site_of(example.settings))
    assert (folder / "index.html").is_file()


@pytest.mark.parametrize("name", ["site", "*", "[a-z]", "?", "sites with space"])
def test_neighbours_with_a_like_name_are_left_alone(example, tmp_path: Path, name: str) -> None:
    """What is swept is what an export made; a name that is a pattern is a plain name."""
    public = tmp_path / "public"
    public.mkdir()
    site = site_of(example.settings)
    other = export(example.engine, public / f"{name}-test", site=site)
    foreign = [public / f".{name}-backup", public / f".{name}-original", public / ".config-x"]
    for folder in foreign:
        folder.mkdir()
        (folder / "precious").write_text("kept")
    (public / f".{name}-abcdefgh").mkdir()
    for _ in range(2):
        export(example.engine, public / name, site=site)
    assert other.is_file()
    assert all((folder / "precious").exists() for folder in foreign)
    assert not (public / f".{name}-abcdefgh").exists()
    made = [path for path in public.iterdir() if path.is_dir() and path not in foreign]
    assert len(made) == 4
