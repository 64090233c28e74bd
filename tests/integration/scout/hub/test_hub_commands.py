"""Watching the hub as a person does it: watch list, looks, lists of models, files by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from structlog.testing import capture_logs
from support.gguf_files import dflash, projector, small
from support.hugging_face import HuggingFace
from typer.testing import CliRunner

from jobs import clock
from jobs.config import Settings
from jobs.db import open_database, reading, writing
from jobs.errors import Permanent, Transient, UsageError
from jobs.store import hub as store
from jobs.worker import open_station
from scout.cli import app
from scout.hub.schedule import hub_round

NAME = "spiritbuun/Qwen3.6-27B-DFlash-GGUF"
LIST = """
[[models]]
watch = "author:spiritbuun"
roles = ["drafter", "target"]
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HuggingFace]:
    """A hub, and settings that lead to it."""
    with HuggingFace() as found:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
        monkeypatch.setenv("FORKSCOUT_HF_ENDPOINT", found.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        yield found


def run(*words: str) -> Result:
    with capture_logs():
        result = CliRunner().invoke(app, list(words))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def said(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


@pytest.fixture
def watched(server: HuggingFace, tmp_path: Path) -> HuggingFace:
    """One author is watched, and was looked at before his drafter appeared."""
    (tmp_path / "list.toml").write_text(LIST)
    run("watchlist", "import", "list.toml")
    assert run("scout", "run", "--source", "hf").exit_code == 0
    server.add(NAME, {"x-DFlash-q8_0.gguf": dflash(), "bad\x1b[31m-Q4_K_M.gguf": b"no"})
    return server


def test_a_look_by_hand_finds_a_drafter(watched: HuggingFace) -> None:
    """`scout run --source hf` looks whether it is due or not, and tells what is new."""
    found = said("scout", "run", "--source", "hf")
    kinds = [each["kind"] for each in found["new"]]
    assert kinds == ["hf_repo_created", "target_published", "drafter_published"]
    assert found["hub"]["looked"] > 0
    assert found["github"] is None
    assert said("scout", "run", "--source", "hf")["new"] == []


def test_found_models_are_listed(watched: HuggingFace) -> None:
    """With role, repository, file, quantisation, size and since when; hostile names are shown."""
    run("scout", "run", "--source", "hf_lists")
    assert said("models") == []
    run("scout", "run", "--source", "hf_repositories")
    drafter, broken = sorted(said("models"), key=lambda each: each["role"])
    assert (drafter["role"], drafter["repo"], drafter["quant"]) == ("drafter", NAME, "Q8_0")
    assert (drafter["dialect"], drafter["size_bytes"]) == ("dflash-draft", dflash().size_bytes)
    assert drafter["since"]
    assert (broken["read"], broken["role"], broken["quant"]) == (False, "target", "Q4_K_M")
    assert "DFlash" in run("events", "--kind", "drafter_published").stdout
    text = run("models").stdout
    assert "\x1b[31m-Q4" not in text
    assert "drafter" in text
    assert len(said("models", "--role", "drafter")) == 1
    with pytest.raises(UsageError, match="no role"):
        run("models", "--role", "drafters")


def test_one_repository_is_shown_whole(watched: HuggingFace) -> None:
    """With what headers say, and why one could not be read."""
    run("scout", "run", "--source", "hf")
    shown = said("models", "show", NAME.lower())
    assert (shown["repo"], shown["state"]) == (NAME, "known")
    facts = {each["path"]: each["facts"] for each in shown["files"]}
    assert facts["x-DFlash-q8_0.gguf"]["arch"] == "dflash-draft"
    assert "instead of b'GGUF'" in run("models", "show", NAME).stdout
    with pytest.raises(UsageError, match="was found"):
        run("models", "show", "nobody/none")


def test_names_that_are_refused_are_shown_with_the_reason(watched: HuggingFace) -> None:
    """What leads out of its repository is never asked for, and not silent either."""
    odd = {"../../etc/x-Q8_0.gguf": b"no", f"{'n' * 600}.gguf": b"no"}
    watched.push(NAME, odd)
    run("scout", "run", "--source", "hf")
    refused = {each["path"]: each["why"] for each in said("models", "show", NAME)["refused"]}
    assert "leads out of its repository" in refused["../../etc/x-Q8_0.gguf"]
    assert any("605 characters" in why for why in refused.values())
    assert "refused ../../etc/x-Q8_0.gguf: " in run("models", "show", NAME).stdout
    assert not [each for each in watched.asked if "etc" in each.path]


def test_the_same_bytes_are_listed_once(watched: HuggingFace) -> None:
    """The other repository stands beside it."""
    other = "spiritbuun/again"
    watched.add(other, {"copy-DFlash-q8_0.gguf": dflash()})
    run("scout", "run", "--source", "hf")
    [drafter] = said("models", "--role", "drafter")
    places = {f"{drafter['repo']}/{drafter['path']}", *drafter["also"]}
    assert places == {f"{NAME}/x-DFlash-q8_0.gguf", f"{other}/copy-DFlash-q8_0.gguf"}
    assert "also " in run("models", "--role", "drafter").stdout


def test_an_unwatched_hub_is_not_asked(server: HuggingFace, tmp_path: Path) -> None:
    """Nothing on the watch list means no request; asking for it by name says what to do."""
    with pytest.raises(UsageError, match="nothing on the model hub"):
        run("scout", "run", "--source", "hf")
    assert server.asked == []
    assert said("models") == []


def test_a_place_that_left_the_list_is_watched_no_more(
    watched: HuggingFace, tmp_path: Path
) -> None:
    """`--replace` retires it; what was found stays."""
    run("scout", "run", "--source", "hf")
    (tmp_path / "other.toml").write_text(LIST.replace("spiritbuun", "Anbeeld"))
    run("watchlist", "import", "other.toml", "--replace")
    database = open_database(Settings())
    with reading(database) as session:
        assert [row.watch for row in store.watches(session)] == ["author:Anbeeld"]
    database.dispose()
    assert len(said("models")) == 2
    watched.push(NAME, {"README.md": b"new"})
    asked = len(watched.asked)
    run("scout", "run", "--source", "hf")
    assert "spiritbuun" not in "".join(each.path for each in watched.asked[asked:])


def test_a_set_of_files_is_one_row(watched: HuggingFace) -> None:
    """A person reads one model with its whole size; a program keeps every file."""
    parts = [f"Q4/Big-Q4_K_M-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    for name, there in (("whole", parts), ("half", parts[:2])):
        files = {path: small(f"llama{n}") for n, path in enumerate(there)}
        watched.add(f"spiritbuun/{name}", files)
    run("scout", "run", "--source", "hf")
    listed = " ".join(run("models", "show", "spiritbuun/whole").stdout.split())
    assert "(3 files)" in listed
    assert "00002-of-00003" not in listed
    assert [each["path"] for each in said("models", "show", "spiritbuun/whole")["files"]] == parts
    assert "(2 of 3 files)" in " ".join(run("models", "show", "spiritbuun/half").stdout.split())


def test_the_schedule_looks_once_per_slot(watched: HuggingFace) -> None:
    """Two ringers, one round; a hint has a slot of its own; nothing happens when it is off."""
    station = open_station(Settings(hf_minutes=10_000.0), "scout")
    found = hub_round(station)
    assert found is not None
    assert hub_round(station) is None
    with writing(station.database) as session:
        assert store.add_hint(session, "ab12", name=NAME, scope="repo", new_sha="", now=clock.now())
    assert hub_round(station) is not None
    silent = open_station(Settings(hf_minutes=0), "scout")
    asked = len(watched.asked)
    assert hub_round(silent) is None
    assert len(watched.asked) == asked
    for each in (station.database, silent.database):
        each.dispose()


def test_an_unknown_source_is_corrected(server: HuggingFace) -> None:
    """A near word is offered."""
    with pytest.raises(UsageError) as caught:
        run("scout", "run", "--source", "hf_list")
    assert "hf_lists" in caught.value.advice


def test_gguf_takes_files_of_the_hub(server: HuggingFace) -> None:
    """By name and by quantisation, at the commit that is the head now."""
    repo = server.add(NAME, {"sub/x-DFlash-q8_0.gguf": dflash(), "y-Q4_K_M.gguf": small(),
                             "mmproj-Q4_K_M.gguf": projector()})  # fmt: skip
    found = said("gguf", f"hf:{NAME}/sub/x-DFlash-q8_0.gguf")
    assert found["facts"]["dialect"] == "dflash-draft"
    assert repo.head.sha in found["place"]
    assert said("gguf", f"{NAME}:q4_k_m")["file_name"] == "y-Q4_K_M.gguf"
    assert said("gguf", f"{NAME}:Q8_0")["facts"]["role"] == "drafter"


def test_gguf_says_what_the_hub_lacks(server: HuggingFace) -> None:
    """A missing repository, file or quantisation, two that fit, and a hub that is away."""
    server.add(NAME, {"a-Q4_K_M.gguf": small(), "b-Q4_K_M.gguf": small("qwen2")})
    for place, says in (
        (f"{NAME}:Q4_K_M", "means 2 files"),
        (f"{NAME}:Q5_K_M", "has no 'Q5_K_M'"),
        (f"hf:{NAME}/c-Q4_K_M.gguf", "has no file"),
        ("nobody/none:Q4_K_M", "is not on the hub"),
    ):
        with pytest.raises(UsageError, match=says):
            run("gguf", place)
    server.fail("/api/models/", status=503)
    with pytest.raises(Transient):
        run("gguf", f"{NAME}:Q4_K_M")
    server.repos[NAME].gated = "auto"
    with pytest.raises(Permanent, match="is gated") as caught:
        run("gguf", f"hf:{NAME}/a-Q4_K_M.gguf")
    assert "FORKSCOUT_HF_TOKEN" in caught.value.advice
    server.repos[NAME].disabled = True
    with pytest.raises(Permanent, match="disabled"):
        run("gguf", f"{NAME}:Q4_K_M")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ENDPOINT", "huggingface", "no address of an API"),
        ("ENDPOINT", "https://a..b", "no address of an API"),
        ("ENDPOINT", "https://a:b@host", "a name or a password"),
        ("ENDPOINT", "http://hub.example", "in clear"),
    ],
)
def test_wrong_settings_are_said(
    server: HuggingFace, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    """Before anything is asked, and without the token in the message."""
    monkeypatch.setenv("FORKSCOUT_HF_TOKEN", "hf_secret")
    monkeypatch.setenv(f"FORKSCOUT_HF_{name}", value)
    with pytest.raises(UsageError, match=says) as caught:
        run("gguf", f"{NAME}:Q4_K_M")
    assert "hf_" not in caught.value.message
    assert server.asked == []


def test_the_library_stays_in_our_home(server: HuggingFace, tmp_path: Path) -> None:
    """huggingface_hub is told where to write, and told to be silent."""
    import subprocess
    import sys

    script = (
        "from jobs.config import Settings; from scout.hub.desk import open_client;"
        "open_client(Settings());"
        "from huggingface_hub import constants as c;"
        "print(c.HF_HOME, c.HF_HUB_DISABLE_TELEMETRY, c.HF_HUB_DISABLE_IMPLICIT_TOKEN,"
        "c.HF_HUB_DISABLE_XET)"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True,
        env={"FORKSCOUT_HOME": str(tmp_path / "var"), "PYTHONPATH": str(root), "HOME": "/"},
    )  # fmt: skip
    assert done.stdout.split() == [str(tmp_path / "var" / "hub"), "True", "True", "True"]
