"""What the hub's JSON, cards and configs of strangers become, and how files make a model."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jobs.errors import UsageError
from scout.hub import news
from scout.hub.answers import Kind, read_quota, sort
from scout.hub.cards import MOST_REFS, drafter_config, engine_refs
from scout.hub.client import Client
from scout.hub.places import is_hub_place, locate
from scout.hub.sets import weights_of
from scout.hub.values import HubFile, base_models, read_listed, read_snapshot

NOW = datetime(2026, 5, 18, 12, tzinfo=UTC)
GOOD = {"_id": "ab12", "id": "a/b", "sha": "5" * 40}
JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=20),
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.dictionaries(
            some.sampled_from(["_id", "id", "sha", "tags", "lfs", "siblings"]), inner
        )
    ),
    max_leaves=12,
)


def file(path: str, content: str = "a") -> HubFile:
    return HubFile(path, 10, (content * 64)[:64], "")


@given(JSON)
def test_any_json_is_read_without_a_crash(item: object) -> None:
    """Whatever a hub sends becomes a value or nothing."""
    for value in (item, {**GOOD, "tags": item}, {**GOOD, "siblings": item}):
        read_listed(value)
        read_snapshot(value)
    drafter_config(json.dumps({"architectures": item, "dflash_config": item}))


@pytest.mark.parametrize(
    "change",
    [{"_id": 5}, {"id": "../b"}, {"id": ".."}, {"id": "a/b/c"}, {"sha": "main"}, {"_id": "a b"}],
)
def test_a_repository_without_identity_is_none(change: dict[str, object]) -> None:
    """Id, name and commit must be what they claim."""
    assert read_listed(GOOD) is not None
    assert read_listed({**GOOD, **change}) is None


def test_bases_are_found_whatever_their_relation() -> None:
    """Tags name a base with and without a relation; hostile ones name nothing."""
    tags = ["base_model:Qwen/Q", "base_model:quantized:Qwen/Q", "base_model:../x", "gguf"]
    assert base_models(tags) == ("Qwen/Q",)


@pytest.mark.parametrize(
    ("status", "headers", "anonymous", "kind"),
    [
        (401, {}, True, Kind.MISSING),
        (401, {}, False, Kind.NOT_KNOWN),
        (401, {"X-Error-Code": "RepoNotFound"}, False, Kind.MISSING),
        (404, {"X-Error-Code": "RevisionNotFound"}, True, Kind.MISSING),
        (403, {"X-Error-Code": "GatedRepo"}, True, Kind.GATED),
        (403, {"X-Error-Message": "Access to this resource is disabled."}, True, Kind.DISABLED),
        (451, {}, True, Kind.DISABLED),
        (403, {}, True, Kind.NOT_KNOWN),
        (408, {}, True, Kind.NOT_KNOWN),
        (429, {}, True, Kind.NOT_KNOWN),
        (500, {}, True, Kind.NOT_KNOWN),
        (504, {}, True, Kind.NOT_KNOWN),
    ],
)
def test_every_status_has_its_kind(
    status: int, headers: dict[str, str], anonymous: bool, kind: Kind
) -> None:
    """Only what the hub says of the repository is believed of it."""
    assert sort(status, headers, anonymous=anonymous, now=NOW).kind is kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"RateLimit": '"api";r=0;t=290'}, 291),
        ({"Retry-After": "12"}, 12),
        ({"Retry-After": "0"}, 1),
        ({"Retry-After": "999999999"}, 3600),
        ({"RateLimit": '"api";r=0;t=999999999'}, 3600),
        ({"RateLimit": "nonsense", "Retry-After": "soon"}, 301),
        ({}, 301),
    ],
)
def test_a_spent_window_tells_how_long(headers: dict[str, str], seconds: float) -> None:
    """The wait is bounded whatever a server writes."""
    answer = sort(429, headers, anonymous=True, now=NOW)
    assert (answer.limited, answer.wait_seconds) == (True, seconds)


def test_quotas_are_read_by_bucket() -> None:
    """As the hub writes them, and nothing where it writes something else."""
    said = {"RateLimit": '"resolvers";r=7;t=60', "RateLimit-Policy": '"fixed window";"x";q=9;w=300'}
    quota = read_quota(said, now=NOW)
    assert quota is not None
    assert (quota.limit, quota.remaining, quota.bucket) == (9, 7, "resolvers")
    assert quota.reset_at == NOW + timedelta(seconds=60)
    assert read_quota({"RateLimit": "5"}, now=NOW) is None


def test_a_card_names_engines_and_commits() -> None:
    """Links to commits, pull requests and trees, bare hashes, and no numbers or words."""
    text = """Use https://github.com/spiritbuun/buun-llama-cpp/commit/b9d01582b or newer (SD-073),
    or https://github.com/ggml-org/llama.cpp/pull/22105. Needs d1b34251b; not 1234567, deadbee-ish
    nor sha256 `{0}`. See github.com/Anbeeld/beellama.cpp.git."""
    assert engine_refs(text.format("a" * 64)) == (
        "spiritbuun/buun-llama-cpp@b9d01582b",
        "ggml-org/llama.cpp#22105",
        "Anbeeld/beellama.cpp",
        "d1b34251b",
    )


def test_a_hostile_card_is_bounded() -> None:
    """However long it is, few names are kept, and time stays small."""
    links = "".join(f"github.com/a/r{number} " for number in range(50_000))
    assert len(engine_refs(links)) == MOST_REFS
    assert engine_refs("github.com/" * 500_000) == ()
    assert engine_refs("a" * 2_000_000) == ()


@pytest.mark.parametrize(
    ("config", "dialect"),
    [
        ({"architectures": ["DFlashDraftModel"]}, "dflash safetensors"),
        ({"architectures": ["LlamaForCausalLMEagle3"]}, "eagle3 safetensors"),
        ({"architectures": ["Qwen3"], "dflash_config": {}}, "dflash safetensors"),
        ({"architectures": ["Qwen3ForCausalLM"]}, None),
        ({"architectures": 5}, None),
        ([], None),
    ],
)
def test_configs_tell_drafters(config: object, dialect: str | None) -> None:
    """Known by architecture or by the table that only drafters have."""
    found = drafter_config(json.dumps(config))
    assert (found.dialect if found else None) == dialect
    assert drafter_config("[" * 100_000) is None


def test_shards_make_one_model() -> None:
    """By folder, stem and count, in order; with a gap or an impossible number none is whole."""
    names = ["q/M-00002-of-00002.gguf", "q/M-00001-of-00002.gguf", "M-00001-of-00003.gguf",
             "x-Q4_K_M.gguf", "imatrix.gguf", "README.md", "M-00000-of-00001.gguf"]  # fmt: skip
    found = {each.first.path: each for each in weights_of(file(name) for name in names)}
    assert set(found) == {
        "q/M-00001-of-00002.gguf",
        "M-00001-of-00003.gguf",
        "x-Q4_K_M.gguf",
        "M-00000-of-00001.gguf",
    }
    assert found["q/M-00001-of-00002.gguf"].is_whole
    assert found["q/M-00001-of-00002.gguf"].size_bytes == 20
    assert not found["M-00001-of-00003.gguf"].is_whole
    assert not found["M-00000-of-00001.gguf"].is_whole


def test_the_same_label_in_two_names_is_two_models() -> None:
    """Files are told apart by their whole names, never by the quantisation in them."""
    names = ["a-Q4_K_M.gguf", "a-mtp-Q4_K_M.gguf", "best-of-breed.gguf"]
    found = weights_of(file(name, name[2]) for name in names)
    assert [each.first.path for each in found] == names
    assert all(each.is_whole for each in found)
    assert len({each.identity for each in found}) == 3


def test_a_set_is_known_by_all_its_hashes() -> None:
    """Another content of one shard is another model; the names are not part of it."""
    first, second = "M-00001-of-00002.gguf", "M-00002-of-00002.gguf"
    one = weights_of([file(first, "a"), file(second, "b")])[0]
    other = weights_of([file(first, "a"), file(second, "c")])[0]
    moved = weights_of([file(f"d/{first}", "a"), file(f"d/{second}", "b")])[0]
    assert one.identity == moved.identity != other.identity


def test_a_difference_is_of_contents() -> None:
    """A file is changed where its hash is; a new card alone changes no weights."""
    before = {"a.gguf": "a" * 64, "b.gguf": "b" * 64, "README.md": "1"}
    same = [file("a.gguf", "a"), file("b.gguf", "b"), HubFile("README.md", 1, "", "1")]
    assert news.difference(before, same).paths == frozenset()
    card = news.difference(before, [*same[:2], HubFile("README.md", 1, "", "2")])
    assert card.is_card_only
    moved = news.difference(before, [file("a.gguf", "c"), file("c.gguf", "b"), same[2]])
    paths = [[each.path for each in part] for part in (moved.added, moved.removed, moved.changed)]
    assert paths == [["c.gguf"], ["b.gguf"], ["a.gguf"]]
    assert not moved.is_card_only


def test_a_weight_that_left_its_path_names_its_successor() -> None:
    """The same bytes elsewhere; else the same name with other bytes; cards have none."""
    before = {
        "a-Q4_K_M.gguf": "a" * 64, "b-Q4_K_M.gguf": "b" * 64, "c.gguf": "c" * 64, "README.md": "1",
    }  # fmt: skip
    now = [
        file("UD/other-name.gguf", "a"), file("UD/a-Q4_K_M.gguf", "d"),
        file("UD/b-Q4_K_M.gguf", "e"), HubFile("old/README.md", 1, "", "1"),
    ]  # fmt: skip
    change = news.difference(before, now)
    assert news.successors(change) == [
        {"path": "a-Q4_K_M.gguf", "now": "UD/other-name.gguf", "same_bytes": True},
        {"path": "b-Q4_K_M.gguf", "now": "UD/b-Q4_K_M.gguf", "same_bytes": False},
    ]


@pytest.mark.parametrize(
    ("text", "is_hub"),
    [
        ("hf:a/b/c.gguf", True),
        ("hf:a/b/sub/c.gguf", True),
        ("a/b:Q4_K_M", True),
        ("a/b", False),
        ("https://host/a/b:Q4", False),
        ("model.gguf", False),
        ("hf:a", False),
    ],
)
def test_places_of_the_hub_are_told_from_others(text: str, is_hub: bool) -> None:
    """Addresses and paths are none."""
    assert is_hub_place(text) is is_hub


def test_a_strange_path_hides_only_itself() -> None:
    """A file without a hash makes the list doubtful, one with an endless name does not."""
    good = {"rfilename": "a.gguf", "lfs": {"sha256": "a" * 64, "size": 7}}
    long = {"rfilename": "x" * 5000, "blobId": "b" * 40}
    found = read_snapshot({**GOOD, "siblings": [good, long]})
    assert found is not None
    assert [each.path for each in found.files] == ["a.gguf"]
    assert read_snapshot({**GOOD, "siblings": [good, {"rfilename": "b.gguf"}]}) is None


@pytest.mark.parametrize("place", ["hf:../../x.gguf", "hf:a/../x.gguf", "hf:a/b/../x.gguf"])
def test_a_place_that_leads_out_of_its_repository_is_refused(place: str) -> None:
    """The hub is not even asked."""

    def unasked() -> Client:
        raise AssertionError("the hub was asked")

    with pytest.raises(UsageError):
        locate(place, unasked)
