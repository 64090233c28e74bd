"""Watch lists that are right, and the one clear message for each that is not."""

from __future__ import annotations

import pytest
from support.watch_lists import GOOD, line_holding, refused

from jobs.errors import UsageError
from jobs.hub_names import set_sha256
from jobs.toml_lines import Lines
from scout.reading import parse, shipped
from scout.watchlist import WatchList

HUB = """
[[models]]
watch = "author:spiritbuun"
roles = ["drafter"]

[[stack]]
name = "hub"
engine = "fork"
target = "unsloth/Qwen3.6-27B-GGUF:UD-Q3_K_XL"
drafter = "spiritbuun/Qwen3.6-27B-DFlash-GGUF:q8_0"
intent = { speculation = "dflash", kv = "turbo3", context = 262144, batch = 2048, ubatch = 256 }
env = {}
scenarios = ["decode-800", "ladder"]
"""


def test_a_good_list_becomes_values() -> None:
    """Every word of the list is there afterwards."""
    watch = parse(GOOD, "list.toml")
    assert [engine.name for engine in watch.engines] == ["wheel", "fork"]
    assert watch.engines[1].builds[0].cuda_arch == "120"
    assert watch.stacks[0].intent == {"context": 2048, "kv": "turbo3"}
    assert watch.stacks[0].flags == ("--spec-dflash-cross-ctx", "1024")
    assert watch.not_yet() == []


ASSET = f'''via = "asset"
asset = "engine-v1-linux+x64.tar.gz"
tag = "v1"
sha256 = "{"b" * 64}"
'''


def test_a_release_file_is_named_by_tag_and_digest() -> None:
    """All three, and for that way alone."""
    [_, fork] = parse(GOOD.replace('via = "cmake"\n', ASSET), "list.toml").engines
    build = fork.builds[0]
    assert (build.asset, build.tag, build.sha256) == ("engine-v1-linux+x64.tar.gz", "v1", "b" * 64)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        ('via = "asset"\ntag = "v1"\n', "does not name its file"),
        (ASSET.replace('via = "asset"', 'via = "cmake"'), "takes no asset"),
        (ASSET.replace("engine-v1", "../engine"), "is not a file or tag"),
        (ASSET.replace('"v1"', '"--upload-pack=x"'), "is not a file or tag"),
        (ASSET.replace("b" * 64, "b" * 63), "sha256"),
    ],
)
def test_a_release_file_that_cannot_be_meant_is_refused(build: str, says: str) -> None:
    """Incomplete, beside another way, or with a name that climbs."""
    error = refused(GOOD.replace('via = "cmake"\n', build))
    assert says in f"{error.message} {error.advice}"


DOCKER = f"""via = "docker"
dev_image = "images.example.org/cuda-dev@sha256:{"c" * 64}"
run_image = "images.example.org/cuda-run@sha256:{"d" * 64}"
cuda_version = "12.8.1"
"""
IMAGE = f"""via = "docker"
image = "images.example.org/engine@sha256:{"e" * 64}"
tag = "v1"
"""


@pytest.mark.parametrize(
    "build", [DOCKER, f'{DOCKER}dockerfile = "docker/x"\nstage = "a"\n', IMAGE]
)
def test_a_dockerfile_is_named_with_its_bases_and_an_image_with_its_tag(build: str) -> None:
    """Each by its digest; both are built."""
    watch = parse(GOOD.replace('via = "cmake"\n', build), "list.toml")
    assert watch.engines[1].builds[0].via == "docker"
    assert watch.not_yet() == []


@pytest.mark.parametrize(
    ("build", "says"),
    [
        ('via = "docker"\n', "does not name what it starts from"),
        (DOCKER.replace("@sha256:", ":"), "is not an image by its digest"),
        (DOCKER.replace("12.8.1", "12.8.1 --x"), "is not a version of CUDA"),
        (f'{DOCKER}dockerfile = "../x"\n', "is not a path inside"),
        (f'{DOCKER}stage = "--x"\n', "is not a stage"),
        (f'{DOCKER}options = ["-DX=1"]\n', "takes no options"),
        (f'{DOCKER}tag = "v1"\n', "only with an image"),
        (DOCKER.replace('"docker"', '"cmake"'), "takes no cuda_version"),
        (IMAGE.replace('tag = "v1"\n', ""), "names an image of no release"),
        (f'{IMAGE}stage = "server"\n', "names an image and stage"),
        (f'{IMAGE}asset = "x.tar.gz"\n', "takes no asset"),
    ],
)
def test_an_image_that_cannot_be_meant_is_refused(build: str, says: str) -> None:
    """What moves, what climbs, what is an option of docker, and what belongs to another way."""
    error = refused(GOOD.replace('via = "cmake"\n', build))
    assert says in f"{error.message} {error.advice}"


def test_an_empty_list_watches_nothing() -> None:
    """Nothing at all is a list too."""
    assert parse("", "list.toml") == WatchList()


def test_words_of_later_releases_are_known_and_said() -> None:
    """Hub weights, drafters and ladders parse, and are told as not yet possible."""
    notes = parse(GOOD + HUB, "list.toml").not_yet()
    assert not any("author:spiritbuun" in note for note in notes)
    assert any("stack hub is not benchable yet: weights from the hub" in note for note in notes)


@pytest.mark.parametrize("name", ["demo", "fork-chain"])
def test_shipped_lists_are_right(name: str) -> None:
    """What we ship loads, and every stack in it can be benched."""
    watch = parse(shipped(name).read_text(), name)
    assert watch.stacks
    assert not [stack for stack in watch.stacks if watch.stack_obstacle(stack)]


def test_undriven_families_are_said() -> None:
    """An engine nobody can drive yet is accepted and watched, and the rest is told."""
    text = GOOD.replace('family = "llama.cpp"', 'family = "vllm"')
    notes = parse(text, "list.toml").not_yet()
    assert "engine fork is watched, and not built yet: family vllm is not driven yet" in notes
    assert any(note.startswith("stack tiny-fork is not benchable yet") for note in notes)


@pytest.mark.parametrize(
    ("old", "new", "says", "advice"),
    [
        ('trust = "auto"', 'trsut = "auto"', "unknown key 'trsut'", "'trust'"),
        ('cuda_arch = "120"', 'cuda_arc = "120"', "unknown key 'cuda_arc'", "'cuda_arch'"),
        ("[[stack]]", "[[stak]]", "unknown key 'stak'", "'stack'"),
        ('trust = "auto"', 'trust = "autos"', "cannot be 'autos'", "'auto'"),
        ('via = "cmake"', 'via = "make"', "cannot be 'make'", "'cmake'"),
        ('family = "llama.cpp"', 'family = "lama.cpp"', "cannot be 'lama.cpp'", "'llama.cpp'"),
        ('name = "fork"', 'name = "wheel"', "a second engine 'wheel'", "another name"),
        ('engine = "fork"', 'engine = "frok"', "unknown engine 'frok'", "'fork'"),
        ('target = "tiny:q4"', 'target = "tiny:q5"', "unknown model 'tiny:q5'", "'tiny:q4'"),
        ("decode-128", "decode-129", "unknown scenario 'decode-129'", "'decode-128'"),
        ("context = 2048", "contxt = 2048", "unknown intent 'contxt'", "'context'"),
        ("context = 2048", "context = 1", "context 1 is not between", ""),
        ("context = 2048", 'context = "2048"', "context is a number of tokens", ""),
        ("context = 2048", "context = 2048.5", "intent.context", ""),
        ('branches = ["main"]', 'branches = ["-x"]', "is not the name of a branch", ""),
        ('branches = ["main"]', 'branches = ["a..b"]', "is not the name of a branch", ""),
        ('branches = ["main"]', "branches = 3", "engine.branches", ""),
        ('branches = ["main"]', 'parent = "whel"', "unknown engine 'whel'", "'wheel'"),
        ('branches = ["main"]', 'parent = "fork"', "is its own ancestor", "parents"),
        ('branches = ["main"]', 'package = "x"', "needs either a repo or a package", "repo"),
        ('branches = ["main"]', 'newest = "3"', "engine.newest", ""),
        ('branches = ["main"]', "newest = 0", "engine.newest", ""),
        ('trust = "auto"', 'trust = "package"', "trust 'package' is for packages", "package"),
        ('via = "cmake"', 'via = "wheel"', "a repo cannot be built via 'wheel'", "cmake"),
        ('sha256 = "aaaa', 'sha256 = "AAAA', "is not a sha256", ""),
        ('version = "1.0"', 'version = ">=1"', "is not one exact version", ""),
        ('name = "tiny-fork"', 'name = "../../x"', "is not a name", ""),
        ('name = "tiny-fork"', 'name = "<img src=x>"', "is not a name", ""),
        ('name = "tiny-fork"', 'name = "a\\nb"', "is not a name", ""),
        ('"Anbeeld/beellama.cpp"', '"--upload-pack=x/y"', "is not an owner/name", ""),
        ('"Anbeeld/beellama.cpp"', '"a/.."', "is not an owner/name", "ggml-org/llama.cpp"),
        (
            '"Anbeeld/beellama.cpp"',
            '"https://github.com/Anbeeld/beellama.cpp.git"',
            "is not an owner/name",
            "write Anbeeld/beellama.cpp",
        ),
        ('package = "tiny-gguf"', 'package = "--index-url=x"', "is not a package name", ""),
        ('rig = "olares-5090m"', 'rig = "a b;rm"', "is not a rig's name", ""),
    ],
)
def test_each_mistake_has_one_message(old: str, new: str, says: str, advice: str) -> None:
    """File, line, what is wrong and the nearest right word, in one error."""
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    error = refused(text)
    line = GOOD[: GOOD.index(old)].count("\n") + 1
    assert f"list.toml, line {line}: " in error.message
    assert says in error.message
    assert advice in error.advice


def test_a_missing_key_is_placed_at_its_table() -> None:
    """What is not there has no line; its table has."""
    text = GOOD.replace('family = "llama.cpp"\n', "")
    error = refused(text)
    table = line_holding(text, 'name = "fork"') - 1
    assert f"line {table}: 'family' is missing" in error.message


def test_several_mistakes_are_one_error() -> None:
    """The first by line is told first, and each of the others below it."""
    text = GOOD.replace('trust = "package"', "trust = 3").replace('trust = "auto"', "trust = 4")
    error = refused(text)
    assert "(and 1 more)" in error.message
    assert f"\n  line {line_holding(text, 'trust = 4')}: " in error.message
    assert f"line {line_holding(text, 'trust = 3')}: " in error.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[[engine]]\nname = "x\n', 2),
        ("[[engine]]\n\nname = \n", 3),
        ('[[engine]]\nflags = ["a",\n"b"\n', 4),
        ("a = 1\na = 2\n", 2),
        ("x = " + "[" * 5000, 1),
    ],
)
def test_broken_toml_is_placed_too(text: str, line: int) -> None:
    """A file that is not TOML gives its line and no traceback."""
    assert f"list.toml, line {line}: not TOML" in refused(text).message


def test_a_line_is_found_behind_lookalikes() -> None:
    """Texts that look like tables, and values over several lines, mislead nobody."""
    text = 'a = """\n[[b]]\nc = 1\n"""\n\n[[b]]\nc = [\n 1,\n 2,\n]\n[[b]]\nc = 3 # c = 4\n'
    assert Lines(text).of(("b", 0, "c", 1)) == 7
    assert Lines(text).of(("b", 1, "c")) == 12
    assert Lines(text).of(("b", 1, "missing")) == 11
    assert Lines(text).of(("nothing",)) == 1


def test_windows_line_ends_are_read() -> None:
    """A list written elsewhere counts its lines the same way."""
    text = GOOD.replace('trust = "auto"', "trust = 3").replace("\n", "\r\n")
    line = line_holding(text, "trust = 3")
    assert f"line {line}: " in refused(text).message


SHARDS = ["1" * 64, "2" * 64]
FROM_HUB = f"""
[[model]]
name = "hub:q4"
repo = "unsloth/Qwen3.6-27B-GGUF"
file = "sub/Q-00001-of-00002.gguf"
revision = "{"c0ffee" + "0" * 34}"
sha256 = "{set_sha256(SHARDS)}"
shards = ["{SHARDS[0]}", "{SHARDS[1]}"]
model_class = "qwen"
"""


def test_a_model_of_the_hub_can_be_benched() -> None:
    """Repository, file and digest are enough; a commit pins it."""
    text = GOOD.replace('target = "tiny:q4"', 'target = "hub:q4"') + FROM_HUB
    watch = parse(text, "list.toml")
    assert watch.models[1].repo == "unsloth/Qwen3.6-27B-GGUF"
    assert watch.models[1].shards == tuple(SHARDS)
    assert watch.not_yet() == []


@pytest.mark.parametrize(
    ("old", "new", "says", "advice"),
    [
        ("repo = ", "repos = ", "unknown key 'repos'", "'repo'"),
        ("revision = ", "revison = ", "unknown key 'revison'", "'revision'"),
        ('repo = "unsloth/', 'repo = "../', "is not an owner/repository", ""),
        ('file = "sub/', 'file = "../', "is not the name of a .gguf file", ""),
        ('revision = "c0ffee', 'revision = "main', "is not a commit", ""),
        ('repo = "unsloth/Qwen3.6-27B-GGUF"\n', "", "either a package or a repo", "repo ="),
        ('file = "sub/Q-00001-of-00002.gguf"\n', "", "'file' is missing", "add file"),
        ("model_class", 'version = "1"\nmodel_class', "has no version", "leave version out"),
        ("00001-of-00002", "00001-of-00003", "one of 3 files, 2 are named", "in order"),
        (f', "{SHARDS[1]}"', "", "one of 2 files, 1 are named", "in order"),
        (SHARDS[1], "3" * 64, "is not that of its shards", "write sha256 = "),
    ],
)
def test_a_wrong_model_of_the_hub_is_named(old: str, new: str, says: str, advice: str) -> None:
    """With its line and what would be right."""
    assert old in FROM_HUB
    text = GOOD + FROM_HUB.replace(old, new, 1)
    fault = refused(text)
    assert says in fault.detail
    assert advice in fault.advice


def test_a_package_takes_nothing_of_the_hub() -> None:
    """Its version names the bytes."""
    for key, value in (("file", '"a.gguf"'), ("revision", f'"{"a" * 40}"')):
        wrong = f'version = "1.0"\n{key} = {value}'
        assert f"a package has no {key}" in refused(GOOD.replace('version = "1.0"', wrong)).detail


@pytest.mark.parametrize(
    "watch",
    [
        "author:../x", "author:a/b", "repo:a", "repo:a/b/c", "base:a", "search:", "search: x",
        "hub:a", "author:", "repo:a/..", "author:a b", "search:a\\nb",
    ],
)  # fmt: skip
def test_places_of_the_hub_are_checked(watch: str) -> None:
    """What is no author, repository, base or search of the hub is named with its line."""
    assert "watch" in refused(f'[[models]]\nwatch = "{watch}"\n').detail


def test_a_place_of_the_hub_is_named_once() -> None:
    """Two entries of one place would hide the roles of one of them."""
    text = '[[models]]\nwatch = "author:a"\n' * 2
    assert "a second 'author:a'" in refused(text).detail


GOLDEN = """
[[golden]]
rig = "olares-5090m"
stack = "tiny-fork"
revision = "v0.1.2"
decode_tps = [60, 75.5]
"""


def test_a_golden_names_rig_stack_and_revision() -> None:
    """With a band where somebody knows it."""
    (golden,) = parse(GOOD + GOLDEN, "list.toml").goldens
    assert (golden.rig, golden.revision, golden.decode_tps) == (
        "olares-5090m",
        "v0.1.2",
        (60, 75.5),
    )


@pytest.mark.parametrize(
    ("wrong", "right", "says"),
    [
        ('stack = "tiny-forc"', 'stack = "tiny-fork"\nrevision', "unknown stack 'tiny-forc'"),
        ("[75.5, 60]", "[60, 75.5]", "ends below its start"),
        ("[60]", "[60, 75.5]", "decode_tps"),
        ('rig = "cpu"', 'rig = "olares-5090m"\nstack', "fork is not built for rig 'cpu'"),
    ],
)
def test_a_golden_that_cannot_be_is_refused(wrong: str, right: str, says: str) -> None:
    """An unknown stack, a band upside down, a rig that does not build it."""
    old = right.partition("\n")[0]
    text = GOOD + GOLDEN.replace(old, wrong)
    with pytest.raises(UsageError) as caught:
        parse(text, "list.toml")
    assert says in caught.value.message


def test_a_rig_has_one_golden() -> None:
    """A second one is refused."""
    with pytest.raises(UsageError, match="a second golden"):
        parse(GOOD + GOLDEN + GOLDEN, "list.toml")
