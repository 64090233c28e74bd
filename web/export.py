"""The static export: the whole site in a fresh folder, swapped in by one rename or not at all."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine

from jobs import db
from jobs.errors import UsageError
from web.render import FOLDER, Renderer
from web.site import Site

MARKER = ".forkscout-site"


def export(engine: Engine, folder: Path, *, site: Site) -> Path:
    """Write every page and make `folder` lead to them; the old site stays until that moment.

    `folder` becomes a link to a sibling, so that the swap is one rename. A folder that holds
    anything but an earlier export is refused.
    """
    _refuse_foreign(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        fresh = Path(tempfile.mkdtemp(prefix=_prefix(folder), dir=folder.parent))
        try:
            _write(engine, fresh, site=site)
            fresh.chmod(0o755)
            _swap(folder, fresh)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        _sweep(folder, keep=fresh)
    return folder / "index.html"


def _write(engine: Engine, fresh: Path, *, site: Site) -> None:
    renderer = Renderer(site.clean)
    now = datetime.now(UTC)
    (fresh / MARKER).write_text("Written whole by forkscout publish; changes here are lost.\n")
    shutil.copytree(FOLDER / "static", fresh / "static")
    with db.reading(_frozen(engine)) as session:
        for path in site.paths(session):
            page = site.page(path, session, now=now)
            if page is None:
                raise LookupError(f"{path} vanished while the site was written")
            target = fresh / path
            target.parent.mkdir(exist_ok=True)
            target.write_text(renderer.html(page, now=now), encoding="utf-8")
            session.expunge_all()


def _frozen(engine: Engine) -> Engine:
    """One snapshot for all pages, so that no link points at what came later."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ")
    return engine


def _prefix(folder: Path) -> str:
    return f".{folder.name}-"


def _refuse_foreign(folder: Path) -> None:
    if folder.is_symlink():
        target = folder.parent / folder.readlink()
        ours = not target.exists() or (target / MARKER).exists()
    elif folder.is_dir():
        ours = (folder / MARKER).exists() or not any(folder.iterdir())
    else:
        ours = not folder.exists()
    if not ours:
        raise UsageError(
            f"{folder} holds something that is no forkscout site",
            advice="Name another folder with FORKSCOUT_SITE, or move that one away.",
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One export at a time; the lock goes with the process that holds it."""
    with (folder.parent / f"{_prefix(folder)}lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _swap(folder: Path, fresh: Path) -> None:
    link = fresh.parent / f"{fresh.name}.link"
    link.symlink_to(fresh.name, target_is_directory=True)
    if folder.is_dir() and not folder.is_symlink():
        folder.rename(fresh.parent / f"{fresh.name}.old")
    os.replace(link, folder)  # noqa: PTH105  (Path.replace follows the same rules; this is the swap)


def _sweep(folder: Path, *, keep: Path) -> None:
    """Remove what earlier exports and crashed ones left; other people's files are none of it."""
    ours = re.compile(rf"{re.escape(_prefix(folder))}[a-z0-9_]{{8}}(\.old|\.link)?")
    for found in folder.parent.iterdir():
        if found == keep or not ours.fullmatch(found.name):
            continue
        if found.is_symlink():
            found.unlink(missing_ok=True)
        elif found.is_dir() and ((found / MARKER).exists() or not any(found.iterdir())):
            shutil.rmtree(found, ignore_errors=True)
