"""The compiler's cache in real cages: what is reused, by whom, and what a poisoner reaches."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.place import CAGED, Place

from jobs.model import Step, Trust
from workers.compiler_cache import (
    STATISTICS,
    Counts,
    Layer,
    counts,
    layer_key,
    open_layer,
    trim,
)
from workers.sandbox import Mount, Sandbox

pytestmark = pytest.mark.needs("ccache", "cc")
HONEST = "int answer(void) { return 1; }\n"
POISON = "int answer(void) { return 66; }\n"

Build = Callable[..., Counts]


@pytest.fixture
def build(sandbox: Sandbox, tmp_path: Path) -> Build:
    """Compile the honest source as an engine of some trust, and say what the cache said."""
    number = iter(range(99))

    def run(
        *, engine: str = "fork", trust: Trust = Trust.AUTO, base: bool = False, then: str = ""
    ) -> Counts:
        folder = tmp_path / f"build-{next(number)}"
        folder.mkdir()
        place = Place(sandbox, folder)
        source = folder / "source"
        source.mkdir()
        (source / "x.c").write_text(HONEST)
        (source / "evil.c").write_text(POISON)
        layer = _layer(tmp_path, place, engine=engine, trust=trust, base=base)
        place.mounts = (*place.mounts, Mount(source, "/source"), *layer.mounts)
        script = f"ccache cc -c /source/x.c -o /job/x.o && {then or 'true'}"
        step = Step(name="compile", argv=("/bin/sh", "-c", script), env=layer.env, cwd="/job")
        place.run_step(step)
        run.made = (folder / "work" / "x.o").read_bytes()  # type: ignore[attr-defined]
        run.log = place.log.read_text()  # type: ignore[attr-defined]
        return counts(place.mount.host)

    return run


def _layer(root: Path, place: Place, *, engine: str, trust: Trust, base: bool) -> Layer:
    return open_layer(
        root / "cache",
        place.sandbox,
        engine=engine,
        source=f"someone/{engine}",
        trust=trust,
        work=place.mount,
        size_bytes=100 << 20,
        writes_base=base,
    )


@CAGED
def test_the_same_engine_compiles_once(build: Build) -> None:
    """The second build of one engine at one trust takes what the first made, and says so."""
    assert build() == Counts(misses=1)
    first = build.made  # type: ignore[attr-defined]
    assert build() == Counts(hits=1)
    assert build.made == first  # type: ignore[attr-defined]


@CAGED
def test_the_base_is_reused_by_all_and_written_by_one(build: Build) -> None:
    """What the engine that a person named compiled is a hit for others; they write only theirs."""
    build(engine="upstream", base=True)
    assert build(engine="fork") == Counts(hits=1, base_hits=1)
    then = "! touch /cache/base/planted && ! rm -rf /cache/base/* 2>/dev/null && echo kept"
    build(engine="other", then=then)
    assert "kept" in build.log  # type: ignore[attr-defined]


@CAGED
def test_poison_stays_with_its_engine_and_trust(build: Build) -> None:
    """A fork that plants wrong code for an honest source harms itself alone (case C107)."""
    build(engine="honest")
    honest = build.made  # type: ignore[attr-defined]
    poisoning = (
        "cd /cache/layer && mine=$(find . -name '*R') && "
        "ccache cc -c /source/evil.c -o /job/evil.o && "
        'evil=$(find . -name \'*R\' | grep -vF "$mine") && cp "$evil" "$mine"'
    )
    build(engine="fork", trust=Trust.AUTO, then=poisoning)
    assert build(engine="fork", trust=Trust.AUTO).hits == 1
    assert build.made != honest, "the poison works where it was planted"  # type: ignore[attr-defined]
    for engine, trust in (
        ("fork", Trust.APPROVE),
        ("honest", Trust.AUTO),
        ("other", Trust.AUTO),
        ("other", Trust.APPROVE),
    ):
        build(engine=engine, trust=trust)
        assert build.made == honest, (engine, trust)  # type: ignore[attr-defined]


@CAGED
def test_statistics_that_are_no_file_are_no_statistics(sandbox: Sandbox, tmp_path: Path) -> None:
    """A link, a pipe or a folder in the place of the statistics is not read."""
    (tmp_path / "secret").write_text("# x\ncache_miss\n")
    for number, make in enumerate(
        (
            lambda path: path.symlink_to(tmp_path / "secret"),
            os.mkfifo,
            lambda path: path.mkdir(),
        )
    ):
        work = tmp_path / str(number)
        work.mkdir()
        make(work / STATISTICS)
        assert counts(work) == Counts()


def test_layers_go_by_their_use_and_size(tmp_path: Path) -> None:
    """Over the bound the layer longest unused goes whole; one too large goes whatever its age."""
    keys = [layer_key("e", str(n), Trust.AUTO, cage="x") for n in range(4)]
    for number, (key, size) in enumerate(zip(keys, (40, 40, 40, 200), strict=True)):
        store = tmp_path / "layers" / key / "store"
        store.mkdir(parents=True)
        (store / "object").write_bytes(bytes(size << 10))
        os.utime(store.parent, (number, number))
    (tmp_path / "base").mkdir()
    assert trim(tmp_path, 200 << 10, keep=keys[0]) >= 240 << 10
    assert {path.name for path in (tmp_path / "layers").iterdir()} == {keys[0], keys[2]}


def test_the_base_loses_its_oldest_entries(tmp_path: Path) -> None:
    """The base stays under its half, newest entries kept."""
    (tmp_path / "base").mkdir()
    (tmp_path / "layers").mkdir()
    for number in range(4):
        path = tmp_path / "base" / str(number)
        path.write_bytes(bytes(40 << 10))
        os.utime(path, (number, number))
    trim(tmp_path, 200 << 10)
    assert {path.name for path in (tmp_path / "base").iterdir()} == {"2", "3"}


def test_without_a_size_or_a_cage_there_is_no_layer(tmp_path: Path) -> None:
    """Switched off, or where layers could not be kept apart, builds go without."""
    from workers.bubblewrap import Bubblewrap
    from workers.uncaged import Uncaged

    wanted = {
        "engine": "e",
        "source": "s",
        "trust": Trust.AUTO,
        "work": Mount(tmp_path, "/job", writable=True),
    }
    assert open_layer(tmp_path, Bubblewrap(), size_bytes=0, **wanted) == Layer()
    assert open_layer(tmp_path, Uncaged(), size_bytes=1 << 30, **wanted) == Layer()
    assert replace(open_layer(tmp_path, Bubblewrap(), size_bytes=1 << 30, **wanted), env={}).key
