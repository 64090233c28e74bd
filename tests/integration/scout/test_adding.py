"""One engine more or less, by command: refused in the reader's words, undone, kept as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from typer.testing import CliRunner, Result

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.errors import UsageError
from jobs.sightings import RepositoryRow
from jobs.store import catalog
from scout.cli import app
from scout.loading import apply
from scout.reading import parse

BUUN, BEE, MIDDLE = 1188001002, 1188001003, 1188001004


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of its own for every test."""
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def say(*words: str) -> Result:
    result = CliRunner().invoke(app, list(words))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def add(*words: str) -> dict[str, Any]:
    return dict(json.loads(say("watchlist", "add", "--json", *words).stdout))


def engines() -> Mapping[str, dict[str, Any]]:
    listed = json.loads(say("watchlist", "list", "--json").stdout)["engines"]
    return {each["name"]: each for each in listed}


def seen_on_github(github_id: int, name: str, parent: int | None, engine: str = "") -> None:
    database = open_database(Settings())
    with writing(database) as session:
        session.add(
            RepositoryRow(
                github_id=github_id,
                full_name=name,
                parent_github_id=parent,
                engine_id=catalog.engine_named(session, engine).id if engine else None,
                first_seen_at=clock.now(),
                last_seen_at=clock.now(),
            )
        )
    database.dispose()


def test_it_is_watched_and_not_built() -> None:
    """A person approves each commit, and nothing is built until a target is named."""
    ran = say("watchlist", "add", "spiritbuun/buun-llama-cpp")
    assert "watching buun-llama-cpp" in ran.stderr
    assert "it names no [[engine.build]]" in ran.stderr
    engine = engines()["buun-llama-cpp"]
    assert (engine["trust"], engine["family"], engine["rigs"]) == ("approve", "llama.cpp", "")
    assert engine["source"] == "spiritbuun/buun-llama-cpp"


def test_what_it_prints_is_a_watch_list() -> None:
    """Read by the reader of watch lists, it says the same again."""
    added = add("a/b.cpp", "--branch", "main", "--branch", "feature/turbo", "--trust", "auto",
                "--via", "cmake", "--rig", "card-5090", "--cuda-arch", "120",
                "--option", '-DX="a b"')  # fmt: skip
    (engine,) = parse(added["toml"], "list.toml").engines
    assert engine.branches == ("main", "feature/turbo")
    (build,) = engine.builds
    assert (build.rig, build.via, build.cuda_arch) == ("card-5090", "cmake", "120")
    assert build.options == ('-DX="a b"',)
    assert added["not_yet"] == []
    Path("kept.toml").write_text(added["toml"])
    assert "nothing changed" in say("watchlist", "import", "kept.toml").stdout


def test_a_family_nobody_drives_is_watched_and_not_built() -> None:
    """It is in the list without a rig, and what cannot be done yet is said."""
    added = add("vllm-project/vllm", "--family", "vllm", "--via", "cmake")
    assert added["not_yet"] == [
        "engine vllm is watched, and not built yet: family vllm is not driven yet"
    ]
    (row,) = json.loads(say("watchlist", "list", "--json").stdout)["engines"]
    assert (row["name"], row["family"], row["rigs"]) == ("vllm", "vllm", "")


def test_a_rig_need_not_be_named() -> None:
    """It is this machine's."""
    assert 'rig = "cpu"' in add("a/b", "--via", "cmake")["toml"]


def test_the_parent_is_the_nearest_one_that_is_watched() -> None:
    """As the network of forks is known so far; a step nobody watches is passed over."""
    add("spiritbuun/buun-llama-cpp", "--name", "buun")
    seen_on_github(BUUN, "spiritbuun/buun-llama-cpp", None, "buun")
    seen_on_github(MIDDLE, "some/middle", BUUN)
    seen_on_github(BEE, "Anbeeld/beellama.cpp", MIDDLE)
    added = add("anbeeld/BeeLlama.cpp")
    assert (added["parent"], added["name"]) == ("buun", "BeeLlama.cpp")
    assert add("no/where")["parent"] is None


def test_a_name_is_made_unique() -> None:
    """By the owner, then by a number."""
    assert add("a/llama.cpp")["name"] == "llama.cpp"
    assert add("b/llama.cpp")["name"] == "b-llama.cpp"
    assert add("c/x", "--name", "d-llama.cpp")["name"] == "d-llama.cpp"
    assert add("d/llama.cpp")["name"] == "d-llama.cpp-2"
    assert add("e/_.odd")["name"] == "odd"


REFUSED = {
    "no repository": (["nowhere"], "'nowhere' is not an owner/name"),
    "an address": (["https://github.com/a/b"], "is not an owner/name"),
    "a path": (["a/../b"], "is not an owner/name"),
    "an ending of git's": (["a/b.git"], "is not a repository"),
    "lines of TOML": (['a/b"\n[[engine]]'], "is not an owner/name"),
    "half a character": (["a/b\udce9"], "is not an owner/name"),
    "a name of signs": (["a/b", "--name", "--x"], "is not a name of letters"),
    "escape codes": (["a/b", "--name", "\x1b[31mx\x7f"], "is not a name of letters"),
    "an unknown parent": (["a/b", "--parent", "bunn"], "unknown engine 'bunn'"),
    "itself": (["a/b", "--name", "x", "--parent", "x"], "is its own ancestor"),
    "a branch that is an option": (["a/b", "--branch=--upload-pack=x"], "not the name of a branch"),
    "an unknown family": (["a/b", "--family", "llama.cp"], "family cannot be 'llama.cp'"),
    "a family of packages": (["a/b", "--family", "xllamacpp"], "is for packages"),
    "an unknown trust": (["a/b", "--trust", "yes"], "trust cannot be 'yes'"),
    "a trust of packages": (["a/b", "--trust", "package"], "is for packages"),
    "a wheel": (["a/b", "--via", "wheel"], "a repo cannot be built via 'wheel'"),
    "an unknown way": (["a/b", "--via", "make"], "via cannot be 'make'"),
    "a rig with spaces": (["a/b", "--via", "cmake", "--rig", "a b"], "is not a rig's name"),
    "a rig and no way": (["a/b", "--rig", "x"], "a build needs to know how"),
    "a wrong architecture": (["a/b", "--via", "cmake", "--cuda-arch", "new"], "a CUDA arch"),
    "a taken name": (["a/b", "--name", "buun"], "a second engine 'buun'"),
    "a taken repository": (["SpiritBuun/buun-llama-cpp"], "is watched already, as 'buun'"),
}


@pytest.mark.parametrize(("words", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_a_list_could_not_say_is_refused(words: list[str], says: str) -> None:
    """In the same words; nothing is half added."""
    add("spiritbuun/buun-llama-cpp", "--name", "buun")
    with pytest.raises(UsageError) as refused:
        say("watchlist", "add", *words[1:], "--", words[0])
    assert says in refused.value.message
    assert "watchlist add" not in refused.value.message
    assert list(engines()) == ["buun"]


def test_a_circle_over_a_retired_engine_is_seen() -> None:
    """A child that still names its parent makes the parent no child of it."""
    add("a/parent")
    add("b/child", "--parent", "parent")
    say("watchlist", "remove", "parent")
    with pytest.raises(UsageError, match="its own ancestor"):
        say("watchlist", "add", "a/parent", "--parent", "child")


def test_remove_and_add_undo_each_other() -> None:
    """What it was is what it is again, builds and branches included; results were never gone."""
    add("a/b", "--name", "mine", "--branch", "main", "--trust", "never", "--via", "cmake")
    before = engines()
    assert "no longer watching mine" in say("watchlist", "remove", "mine").stdout
    assert engines()["mine"]["retired"] is True
    with pytest.raises(UsageError, match="'mine' is not watched"):
        say("watchlist", "remove", "mine")
    assert "watching again mine" in say("watchlist", "add", "a/b").stderr
    assert engines() == before
    database = open_database(Settings())
    with reading(database) as session:
        assert catalog.engine_named(session, "mine").branches == ["main"]
    database.dispose()


def test_an_engine_nobody_knows_cannot_be_removed() -> None:
    """The nearest name is offered."""
    add("a/b", "--name", "mine")
    with pytest.raises(UsageError) as refused:
        say("watchlist", "remove", "mein")
    assert "mine" in refused.value.advice
    with pytest.raises(UsageError):
        say("watchlist", "remove", "min\udce9")


def test_a_name_that_belonged_to_another_repository_is_refused(home: Path) -> None:
    """Results are kept under it."""
    add("a/b", "--name", "mine")
    say("watchlist", "remove", "mine")
    with pytest.raises(UsageError, match="known as"):
        say("watchlist", "add", "c/d", "--name", "mine")
    assert engines()["mine"]["retired"] is True


def test_a_configured_list_that_would_bring_it_back_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read before every look, so that removing by hand alone does not last."""
    (home / "list.toml").write_text(
        '[[engine]]\nname = "mine"\nfamily = "llama.cpp"\nrepo = "a/b"\n'
    )
    monkeypatch.setenv("FORKSCOUT_WATCHLIST", str(home / "list.toml"))
    with pytest.raises(UsageError, match="watched already"):
        say("watchlist", "add", "a/b")
    ran = say("watchlist", "remove", "mine")
    assert "list.toml still names it" in ran.stdout


def test_what_add_prints_can_be_imported_alone(home: Path) -> None:
    """Its parent is watched already, and `check` says that it builds on that."""
    add("spiritbuun/buun-llama-cpp", "--name", "buun")
    block = add("Anbeeld/beellama.cpp", "--parent", "buun")["toml"]
    (home / "mine.toml").write_text(block)
    said = say("watchlist", "check", "mine.toml").stdout
    assert "parent buun of beellama.cpp is not in this list; it is watched here" in said
    assert "nothing changed" in say("watchlist", "import", "mine.toml").stdout
    with pytest.raises(UsageError, match="unknown engine 'buun'"):
        say("watchlist", "import", "mine.toml", "--replace")
    say("watchlist", "remove", "buun")
    with pytest.raises(UsageError, match="unknown engine 'buun'"):
        say("watchlist", "check", "mine.toml")


def test_a_check_makes_no_home(home: Path) -> None:
    """It reads what is watched where there is something, and writes nothing where there is not."""
    (home / "mine.toml").write_text('[[engine]]\nname = "a"\nfamily = "llama.cpp"\nrepo = "a/b"\n')
    say("watchlist", "check", "mine.toml")
    assert not (home / "var").exists()


def test_a_list_of_many_engines_is_imported(home: Path) -> None:
    """The engines are read once, not once for each."""
    (home / "many.toml").write_text(
        "".join(
            f'[[engine]]\nname = "e{n}"\nfamily = "llama.cpp"\nrepo = "o/e{n}"\n'
            for n in range(300)
        )
    )
    database = open_database(Settings())
    asked: list[str] = []
    event.listen(database, "before_cursor_execute", lambda *words: asked.append(words[2]))
    with writing(database) as session:
        apply(session, parse((home / "many.toml").read_text(), "many"), clock.now())
    whole = [each for each in asked if "FROM engine" in each and "WHERE" not in each]
    assert len(whole) <= 2
