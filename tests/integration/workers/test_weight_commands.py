"""`forkscout weights` on a real installation: lists, adds, removes and prunes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support import gguf_files as files
from support.rows import NOON, Rows, digest
from support.weights_hub import REPO, WeightsHub, sha256_of
from typer.testing import CliRunner

from jobs import db
from jobs.cli.work import app as jobs_app
from jobs.config import Settings
from jobs.errors import UsageError
from jobs.hub_names import set_sha256
from jobs.model import State
from jobs.store import catalog, weights
from workers.cli import app
from workers.store_name import NAME_FILE

GGUF = files.small().fetch(0, files.small().size_bytes)
HUB = {"repo": "a/b", "file": "c.gguf", "revision": "main"}
HERE = "a" * 32


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    monkeypatch.setenv("FORKSCOUT_MIN_FREE_BYTES", "0")
    monkeypatch.setenv("COLUMNS", "200")
    settings = Settings()
    settings.weights.mkdir(parents=True)
    (settings.weights / NAME_FILE).write_text(HERE)
    return settings


@pytest.fixture
def opened(settings: Settings) -> Engine:
    return db.open_database(settings)


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["weights", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def put(settings: Settings, name: str) -> str:
    sha256 = digest(name)
    (settings.weights / f"{sha256}.gguf").write_bytes(GGUF)
    return sha256


def model(database: Engine, name: str, **values: object) -> int:
    with db.writing(database) as session:
        row = Rows(session).model_file(
            name=name, **{"sha256": digest(name), "stored_in": HERE, "source": HUB, **values}
        )
        return row.id or 0


def present(database: Engine) -> dict[str, bool]:
    with db.reading(database) as session:
        return {
            row.name: HERE in weights.stores_of(session, row.id or 0)
            for row in catalog.model_files(session)
        }


def test_an_empty_store_says_how_to_fill_it(opened: Engine) -> None:
    """With and without the word list."""
    assert "submit fetch" in run()
    assert json.loads(run("list", "--json")) == []


def test_what_lies_there_is_listed_with_who_wants_it(settings: Settings, opened: Engine) -> None:
    """Model, size and last use; as a table and for programs."""
    number = model(opened, "tiny:q4")
    with db.writing(opened) as session:
        Rows(session).job(payload={"model_file_id": number}, state=State.QUEUED)
    sha256 = put(settings, "tiny:q4")
    put(settings, "nobody's")
    assert "tiny:q4" in run("list")
    assert "a job" in run()
    lines = {line["sha256"]: line for line in json.loads(run("list", "--json"))}
    assert len(lines) == 2
    assert lines[sha256]["models"] == ["tiny:q4"]
    assert lines[sha256]["needed"] is True
    assert lines[sha256]["size_bytes"] == len(GGUF)


def test_a_persons_file_becomes_a_model(settings: Settings, opened: Engine, tmp_path: Path) -> None:
    """It is copied under its digest, read-only, and can be named as a target."""
    mine = tmp_path / "mine-Q4_K_M.gguf"
    mine.write_bytes(GGUF)
    added = json.loads(run("add", str(mine), "--json"))
    assert added == {
        "sha256": sha256_of(GGUF),
        "size_bytes": len(GGUF),
        "models": ["mine-Q4_K_M"],
    }
    stored = settings.weights / f"{added['sha256']}.gguf"
    assert stored.read_bytes() == GGUF
    assert stored.stat().st_mode & 0o777 == 0o444
    assert present(opened) == {"mine-Q4_K_M": True}
    with db.reading(opened) as session:
        (row,) = catalog.model_files(session)
    assert (row.facts["architecture"], row.header_fault) == ("llama", "")
    assert "mine-Q4_K_M" in run("add", str(mine), "--name", "another")
    assert list(present(opened)) == ["mine-Q4_K_M"]
    assert list(settings.weights.glob(".adding-*")) == []


def test_what_is_no_model_file_is_refused(opened: Engine, tmp_path: Path) -> None:
    """Folders, other files, missing ones, headers cut short, names that drive a terminal."""
    cut, part = tmp_path / "cut.gguf", tmp_path / "part.gguf"
    cut.write_bytes(b"GGUF")
    part.write_bytes(files.build({"general.architecture": "llama", "split.count": 3}).header)
    other = tmp_path / "other.gguf"
    other.write_bytes(b"PK\x03\x04")
    good = tmp_path / "good.gguf"
    good.write_bytes(GGUF)
    for words in (
        [str(tmp_path)],
        [str(other)],
        [str(tmp_path / "missing.gguf")],
        [str(cut)],
        [str(part)],
        [str(good), "--name", "\x1b[2J"],
        [str(good), "--name", "x" * 81],
    ):
        with pytest.raises(UsageError):
            run("add", *words)
    assert present(opened) == {}


def test_what_was_promised_what_was_not_and_what_is_damaged_are_counted_apart(
    settings: Settings, opened: Engine, tmp_path: Path
) -> None:
    """A source's digest makes it verified; a file of one's own has only ours; damage is found."""
    for name in ("promised", "damaged"):
        model(opened, name, sha256=sha256_of(GGUF + name.encode()))
        path = settings.weights / f"{sha256_of(GGUF + name.encode())}.gguf"
        path.write_bytes(GGUF + (name if name == "promised" else "Damaged").encode())
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(GGUF)
    run("add", str(mine))
    (settings.weights / f"{digest('coming')}.part").write_bytes(b"x")
    shards = [sha256_of(b"one"), sha256_of(b"two")]
    folder = settings.weights / set_sha256(shards)
    folder.mkdir()
    for number, content in enumerate((b"one", b"two"), start=1):
        (folder / f"a-0000{number}-of-00002.gguf").write_bytes(content)
    assert "2 verified, 2 unverified, 1 part" in run()
    told = {line["state"] for line in json.loads(run("list", "--json"))}
    assert told == {"verified", "unverified", "part"}
    done = CliRunner().invoke(app, ["weights", "verify"])
    assert done.exit_code == 1
    assert f"{sha256_of(GGUF + b'damaged')[:12]} file mismatch" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 verified, 2 unverified, 1 mismatch, 1 part"
    (settings.weights / f"{sha256_of(GGUF + b'damaged')}.gguf").unlink()
    lines = json.loads(run("verify", "--json"))
    assert {line["sha256"] for line in lines if line["state"] == "unverified"} == {
        sha256_of(GGUF),
        folder.name,
    }


def test_removing_says_how_it_comes_back(settings: Settings, opened: Engine) -> None:
    """By the first digits of its digest; the row says that it is gone."""
    model(opened, "tiny:q4")
    sha256 = put(settings, "tiny:q4")
    assert "forkscout submit fetch a/b/c.gguf@main" in run("remove", sha256[:7])
    assert present(opened) == {"tiny:q4": False}
    assert list(settings.weights.glob("*.gguf")) == []


def test_what_a_job_needs_is_not_removed(settings: Settings, opened: Engine) -> None:
    """And neither is what nobody can tell apart or has never heard of."""
    number = model(opened, "tiny:q4")
    with db.writing(opened) as session:
        Rows(session).job(payload={"model_file_id": number}, state=State.BLOCKED)
    sha256 = put(settings, "tiny:q4")
    for word, says in ((sha256, "in use"), (sha256[:3], "no weights"), ("../..", "no weights")):
        with pytest.raises(UsageError, match=says):
            run("remove", word)
    assert (settings.weights / f"{sha256}.gguf").exists()
    assert present(opened) == {"tiny:q4": True}


def test_prune_names_first_and_removes_on_yes(settings: Settings, opened: Engine) -> None:
    """What a stack benches, a job needs or a person added stays."""
    model(opened, "asked")
    needed = model(opened, "needed")
    model(opened, "mine", source={})
    model(opened, "spare")
    with db.writing(opened) as session:
        rows = Rows(session)
        rows.job(payload={"model_file_id": needed}, state=State.RUNNING)
        values = {"engine_id": rows.engine().id, "target": "asked"}
        catalog.upsert_stack(session, "s", now=NOON, values=values)
    shas = {name: put(settings, name) for name in ("asked", "needed", "mine", "spare", "unknown")}
    spare = {shas["spare"], shas["unknown"]}
    told = json.loads(run("prune", "--json"))
    assert (told["removed"], {each["sha256"] for each in told["weights"]}) == (False, spare)
    assert "would remove" in run("prune")
    assert len(list(settings.weights.glob("*.gguf"))) == 5
    assert run("prune", "--yes").count("removed the file") == 2
    left = {path.stem for path in settings.weights.glob("*.gguf")}
    assert left == set(shas.values()) - spare
    assert run("prune") == "nothing to remove\n"


def test_a_file_of_the_hub_is_submitted_by_its_name(
    opened: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set by any of its files; a hostile name is refused before the hub is asked."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    shards = {"a-00001-of-00002.gguf": b"one", "a-00002-of-00002.gguf": b"two"}
    with WeightsHub(shards) as hub:
        monkeypatch.setenv("FORKSCOUT_HF_ENDPOINT", hub.url)
        words = ["submit", "fetch", f"{REPO}/a-00002-of-00002.gguf", "--json"]
        done = CliRunner().invoke(jobs_app, words, catch_exceptions=False)
        [job] = json.loads(done.stdout)
        assert job["title"] == f"fetch {REPO}:a-00001-of-00002.gguf"
        for hostile in (f"{REPO}/../../etc/passwd", f"{REPO}/x\x1b.gguf", "--help/../x"):
            failed = CliRunner().invoke(jobs_app, ["submit", "fetch", "--", hostile])
            assert isinstance(failed.exception, UsageError)
        assert hub.count("api") == len(hub.asked) == 1
