"""Where the links of a folder of HTML pages lead."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.found.append(value)
            if name == "id" and value is not None:
                self.ids.add(value)


def dead_links(folder: Path) -> list[str]:
    """`page: link` for each link that leads nowhere or out of the folder, save to GitHub."""
    pages = {page.resolve(): _read(page) for page in folder.rglob("*.html")}
    dead = []
    for page, links in pages.items():
        for link in links.found:
            parts = urlsplit(link)
            if (parts.scheme, parts.netloc) == ("https", "github.com"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            outside = parts.scheme or parts.netloc or not target.is_relative_to(folder.resolve())
            lost = parts.fragment and parts.fragment not in pages.get(target, _Links()).ids
            if outside or not target.is_file() or lost:
                dead.append(f"{page.name}: {link}")
    return dead


def _read(page: Path) -> _Links:
    links = _Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links
