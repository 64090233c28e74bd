"""Judging weights before they are fetched, as a person does it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support import gguf_files as files
from support.fit_rows import said, shaped_file
from support.range_server import RangeServer
from support.rows import Rows
from support.shapes import LLAMA_8B, MIB, qwen36
from support.watching import engine
from typer.testing import CliRunner, Result

from jobs.config import Settings
from jobs.db import open_database, writing
from jobs.errors import BadGguf, Permanent, UsageError
from jobs.model import Layout
from scout.cli import app

NAME = "Qwen3.6-27B-Q4_K_M.gguf"
BEELLAMA = ("--engine", "beellama@v0.1.2")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; loopback is asked directly."""
    monkeypatch.setenv("FORKSCOUT_HOME", str(tmp_path / "var"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Headers of real shapes; the data are holes."""
    place = tmp_path_factory.mktemp("weights")
    for name, file in {
        "target.gguf": files.qwen36(),
        "mtp.gguf": files.qwen36(heads=1),
        "drafter.gguf": files.dflash(),
        "upstream.gguf": files.dflash("dflash"),
        "projector.gguf": files.projector(),
    }.items():
        (place / name).write_bytes(file.header)
        os.truncate(place / name, file.size_bytes)
    return place


def say(*words: object) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def wish(folder: Path, *more: object, gpu: str = "24GiB", context: int = 262_144) -> Result:
    target = ("--target", folder / "target.gguf")
    return say("fit", *target, "--gpu", gpu, "--context", context, *more)


def test_a_model_that_fits_says_so_and_exits_with_zero(folder: Path) -> None:
    """With the table, the largest context and the sentence."""
    more = ("--drafter", folder / "drafter.gguf", "--kv", "turbo3", "--ubatch", 256, *BEELLAMA)
    result = wish(folder, *more)
    assert result.exit_code == 0
    for word in ("weights", "KV cache", "3,200", "work copy", "1,024", "drafter exchange"):
        assert word in result.stdout
    assert "fits: " in result.stdout
    assert "262,144 tokens at the worst" in result.stdout


def test_a_model_that_does_not_fit_exits_with_one(folder: Path) -> None:
    """And names what is too much."""
    result = wish(folder, gpu="8GiB")
    assert result.exit_code == 1
    assert "does not fit: " in result.stdout
    assert "largest context that fits: none" in result.stdout


def test_what_is_too_close_exits_with_three(folder: Path) -> None:
    """As JSON, with bytes."""
    more = ("--drafter", folder / "drafter.gguf", "--mmproj", folder / "projector.gguf")
    result = wish(folder, *more, "--kv", "turbo3", "--ubatch", 2048, *BEELLAMA, "--json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["verdict"] == "too close to call"
    assert found["deciding"] == "projector buffers"
    assert found["engine"]["state"] == "beellama@0.1"
    band = found["bytes"]["filled"]
    assert band["low"] < band["likely"] < band["high"]
    names = [line["name"] for line in found["components"]]
    assert names[0] == "weights"
    assert found["largest_context"]["surely"] < found["largest_context"]["likely"]


def test_measured_facts_of_the_card_make_it_sure(folder: Path) -> None:
    """Reserve, CUDA context and what others hold."""
    more = ("--reserve", "113MiB", "--held", "0B", "--cuda-context", "400MiB", *BEELLAMA)
    found = json.loads(wish(folder, *more, "--json", context=32_768).stdout)
    assert found["bytes"]["usable"]["low"] == found["bytes"]["usable"]["high"]
    context = next(line for line in found["components"] if line["name"] == "CUDA context")
    assert context["basis"] == "measured"


def test_key_and_value_can_have_types_of_their_own(folder: Path) -> None:
    """K before the stroke."""
    found = json.loads(wish(folder, "--kv", "q8_0/f16", "--json").stdout)
    assert found["cache_types"] == ["q8_0", "f16"]


@pytest.mark.parametrize(
    ("option", "name", "why"),
    [
        ("--drafter", "upstream.gguf", "the drafter has the form dflash"),
        ("--mmproj", "target.gguf", "the mmproj file is no projector"),
    ],
)
def test_files_that_would_not_run_together_are_no_fit(
    folder: Path, option: str, name: str, why: str
) -> None:
    """Memory is not all that counts: the last word and the exit code say so."""
    more = (option, folder / name, *BEELLAMA)
    result = wish(folder, *more, context=4096)
    assert result.stdout.splitlines()[-1].startswith(f"would not run as asked: {why}")
    assert result.exit_code == 1
    assert why in json.loads(wish(folder, *more, "--json", context=4096).stdout)["obstacles"][0]


def test_a_set_of_files_is_taken_together(folder: Path, home: Path) -> None:
    """Any part names the set; a missing part is one clear sentence."""
    target = files.qwen36()
    rest = files.build({"split.no": 1}, [("blk.0.more.weight", (1024, 1024), files.F32)])
    for number, file in ((1, target), (2, rest)):
        place = home / f"big-{number:05d}-of-00002.gguf"
        place.write_bytes(file.header)
        os.truncate(place, file.size_bytes)
    words = ("--gpu", "24GiB", "--context", 4096, "--json")
    whole = json.loads(say("fit", "--target", "big-00002-of-00002.gguf", *words).stdout)
    alone = json.loads(say("fit", "--target", folder / "target.gguf", *words).stdout)
    sizes = [each["components"][0]["loaded"]["likely"] for each in (whole, alone)]
    assert sizes[0] - sizes[1] == 4 * 1024 * 1024
    assert "a set of 2 files" in whole["notes"]
    (home / "big-00001-of-00002.gguf").unlink()
    with pytest.raises(UsageError, match="is not there"):
        say("fit", "--target", "big-00002-of-00002.gguf", *words)


def test_the_baked_in_heads_are_refused_from_the_first_64_kib() -> None:
    """One request, before anything is downloaded."""
    with RangeServer(files.qwen36(heads=1)) as server:
        result = say("pair", "--target", f"{server.url}/{NAME}", *BEELLAMA, "--json")
    assert [headers["Range"] for _, headers in server.asked] == ["bytes=0-65535"]
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["answer"] == "incompatible"
    assert found["findings"][0]["name"] == "mtp_heads"
    assert "866 tensors; the count alone is only a hint" in found["findings"][0]["sentence"]


def test_a_pair_that_goes_together_exits_with_zero(folder: Path) -> None:
    """Each reason is in the table."""
    places = ("--target", folder / "target.gguf", "--drafter", folder / "drafter.gguf")
    result = say("pair", *places, "--mmproj", folder / "projector.gguf", *BEELLAMA)
    assert result.exit_code == 0
    for reason in ("drafter_form", "embedding_width", "projection_width", "vision_with_drafter"):
        assert reason in result.stdout
    assert "compatible with beellama@0.1" in result.stdout


def test_what_nobody_read_cannot_be_told(folder: Path) -> None:
    """With what would tell."""
    places = ("--target", folder / "mtp.gguf", "--engine", "beellama@0.2")
    result = say("pair", *places)
    assert result.exit_code == 3
    assert "would tell" in " ".join(result.stdout.split())


def test_an_engine_of_the_watch_list_that_nobody_read_has_the_common_formats(
    folder: Path, home: Path
) -> None:
    """No guess about its memory; turbo types are refused for it."""
    (home / "list.toml").write_text(engine("mine", "o/mine"))
    say("watchlist", "import", "list.toml")
    result = wish(folder, "--engine", "mine", context=4096)
    assert "memory of mine was not measured" in result.stdout
    with pytest.raises(UsageError, match="is not known for mine"):
        wish(folder, "--engine", "mine", "--kv", "turbo3")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--engine", "nobody"), "nothing was read of an engine named 'nobody'"),
        (("--engine", "beellama@v9"), "nothing was read of beellama at 'v9'"),
        (("--kv", "turbo3"), "is not known for any llama.cpp"),
        (("--kv", "q8_0/"), "is no cache type"),
        (("--held", "2 pounds"), "is no amount of memory"),
        (("--ubatch", 0), "ubatch 0 is out of range"),
    ],
)
def test_impossible_wishes_are_one_clear_sentence(folder: Path, more: tuple, message: str) -> None:
    """Exit 2 with the next step."""
    with pytest.raises(UsageError, match=message) as caught:
        wish(folder, *more)
    assert caught.value.advice


def test_files_that_are_no_models_are_refused(folder: Path, home: Path) -> None:
    """No GGUF, no architecture, no layers."""
    (home / "page.gguf").write_text("<html>not found</html>")
    (home / "bare.gguf").write_bytes(files.build({"general.name": "x"}).header)
    words = ("--gpu", "24GiB", "--context", 4096)
    with pytest.raises(BadGguf):
        say("fit", "--target", "page.gguf", *words)
    with pytest.raises(Permanent, match="names no architecture"):
        say("fit", "--target", "bare.gguf", *words)
    with pytest.raises(UsageError, match="no layers"):
        say("fit", "--target", folder / "projector.gguf", *words)


def test_hostile_counts_are_refused_in_bounded_time(home: Path) -> None:
    """A header that claims four billion layers, and one with a negative width."""
    words = ("--gpu", "24GiB", "--context", 4096)
    for key, value in (("block_count", 2**32 - 1), ("embedding_length", -5)):
        keys = {"general.architecture": "llama", "llama.block_count": 2, f"llama.{key}": value}
        file = files.build(keys, [("token_embd.weight", (64, 80), files.Q8_0)])
        (home / "bad.gguf").write_bytes(file.header)
        os.truncate(home / "bad.gguf", file.size_bytes)
        with pytest.raises(Permanent, match="cannot be right: llama"):
            say("fit", "--target", "bad.gguf", *words)


def test_what_boots_measured_corrects_the_estimate(folder: Path) -> None:
    """Where there is a database; --raw leaves it out, and none is made only to look."""
    more = ("--kv", "f16", *BEELLAMA, "--json")
    settings = Settings()
    assert json.loads(wish(folder, *more, context=32_768).stdout)["corrected_by_boots"] == 0
    assert not settings.home.exists()
    database = open_database(settings)
    with writing(database) as session:
        rows = Rows(session)
        fork = rows.engine(name="bee", repo="Anbeeld/beellama.cpp")
        model = shaped_file(rows, "qwen", qwen36())
        result = rows.result(rows.revision(fork, label="v0.1.2"), model_file=model)
        said(rows, result, Layout(32_768, 2048, 512, "f16", "f16"), compute=990 * MIB)
    database.dispose()
    found = json.loads(wish(folder, *more, context=32_768).stdout)
    assert found["corrected_by_boots"] == 1
    assert found["notes"][-1].startswith(
        "corrected by 1 measured boot of beellama@0.1 with qwen35: "
    )
    raw = json.loads(wish(folder, *more, "--raw", context=32_768).stdout)
    assert raw["corrected_by_boots"] == 0
    assert found["bytes"]["loaded"]["likely"] - raw["bytes"]["loaded"]["likely"] > 400 * MIB


@pytest.mark.parametrize("name", ["plain.gguf", "set-00000-of-00003.gguf"])
def test_one_file_of_a_set_is_never_weighed_as_the_model(home: Path, name: str) -> None:
    """Whether the file says so under another name, or its name says what cannot be."""
    said = {"split.no": 0, "split.count": 3} if name == "plain.gguf" else {}
    keys = {**LLAMA_8B, "llama.attention.key_length": 128, **said}
    (home / name).write_bytes(files.build(keys).header)
    with pytest.raises(Permanent, match=r"one of a set of 3|cannot be"):
        say("fit", "--target", name, "--gpu", "24GiB", "--context", 4096)


def test_heads_behind_the_tokenizer_are_found_by_pair(home: Path) -> None:
    """The header is read on until it is sure."""
    keys = {**LLAMA_8B, "llama.attention.key_length": 128, **files.tokenizer(30_000, 10)}
    file = files.build({**keys, "llama.nextn_predict_layers": 1})
    (home / "late.gguf").write_bytes(file.header)
    result = say("pair", "--target", "late.gguf", *BEELLAMA)
    assert result.exit_code == 1
    assert "mtp_heads" in result.stdout
