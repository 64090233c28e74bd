"""What a round over the model hub finds, tells once, and leaves alone."""

from __future__ import annotations

from datetime import timedelta

from support.gguf_files import dflash, projector, qwen36, small
from support.hub_scene import HubScene

BUUN = "spiritbuun/Qwen3.6-27B-DFlash-GGUF"
DRAFTER = "Qwen3.6-27B-DFlash-q8_0.gguf"


def test_what_was_there_at_first_sight_is_no_news(scene: HubScene) -> None:
    """The first look at an author keeps repositories and files and tells of none of them."""
    repo = scene.hub.add(BUUN, {DRAFTER: dflash(), "README.md": b"a card"})
    scene.watch("author:spiritbuun")
    found = scene.look()
    assert (found.troubles, found.waiting, scene.kinds()) == ((), (), [])
    assert scene.row(repo.hub_id).sha == repo.head.sha
    files = scene.files(repo.hub_id)
    assert set(files) == {DRAFTER, "README.md", ".gitattributes"}
    assert (files[DRAFTER].role, files[DRAFTER].facts["dialect"]) == ("drafter", "dflash-draft")
    assert scene.look().looked == 0, "nothing is due again at once"


def test_a_new_drafter_is_told_with_what_its_header_says(scene: HubScene) -> None:
    """A repository created after the first look is told, and its drafter with facts and links."""
    scene.watch("author:spiritbuun")
    scene.look()
    scene.later(minutes=10)
    card = b"Needs [buun](https://github.com/spiritbuun/buun-llama-cpp/commit/b9d01582b) or newer"
    repo = scene.hub.add(
        BUUN,
        {DRAFTER: dflash(), "README.md": card},
        tags=["gguf", "base_model:quantized:Qwen/Qwen3.6-27B"],
    )
    scene.look()
    assert scene.kinds() == ["hf_repo_created", "drafter_published"]
    created, drafter = scene.events()
    assert created.key == f"hf:repo:{repo.hub_id}"
    sha256 = repo.head.files[DRAFTER].sha256
    assert drafter.key == f"hf:drafter:{sha256}"
    wanted = {
        "hf_id": repo.hub_id,
        "repo_id": BUUN,
        "sha": repo.head.sha,
        "path": DRAFTER,
        "lfs_sha256": sha256,
        "size": repo.head.files[DRAFTER].size_bytes,
        "role": "drafter",
        "arch": "dflash-draft",
        "dialect": "dflash-draft",
        "quant": "Q8_0",
        "base_models": ["Qwen/Qwen3.6-27B"],
        "min_engine_refs": ["spiritbuun/buun-llama-cpp@b9d01582b"],
        "unread": "",
    }
    assert {key: drafter.payload[key] for key in wanted} == wanted
    assert drafter.title == f"{BUUN} published the drafter {DRAFTER} (dflash-draft, Q8_0)"
    assert drafter.payload["block_size"]
    assert drafter.payload["target_layers"]
    scene.later(hours=25)
    scene.look()
    assert len(scene.events()) == 2, "it is told once"


def test_a_card_alone_queues_nothing(scene: HubScene) -> None:
    """Another README is told as a card, under the key of its commit, and reads no header."""
    repo = scene.hub.add(BUUN, {DRAFTER: dflash(), "README.md": b"one"})
    scene.watch("author:spiritbuun")
    scene.look()
    reads = scene.hub.file_reads
    scene.later(minutes=10)
    sha = scene.hub.push(BUUN, {"README.md": b"two"})
    scene.look()
    assert [(row.kind, row.key) for row in scene.events()] == [
        ("hf_card_changed", f"hf:rev:{repo.hub_id}:{sha}")
    ]
    assert scene.hub.file_reads == reads


def test_a_date_alone_is_no_event(scene: HubScene) -> None:
    """The same commit under a later date is not even looked at."""
    repo = scene.hub.add(BUUN, {DRAFTER: dflash()})
    scene.watch("author:spiritbuun")
    scene.look()
    scene.later(minutes=10)
    repo.commits[-1] = type(repo.head)(repo.head.sha, scene.now, "again", repo.head.files)
    calls = scene.hub.api_calls
    scene.look()
    assert scene.kinds() == []
    assert scene.hub.api_calls - calls == 2, "one list in two orders"


def test_files_decide_what_a_commit_changed(scene: HubScene) -> None:
    """Added, changed and removed files are told with their hashes, and new targets by facts."""
    old, new = "Qwen3.6-27B-Q4_K_M.gguf", "Qwen3.6-27B-MTP-UD-Q3_K_XL.gguf"
    repo = scene.hub.add("unsloth/Qwen3.6-27B-GGUF", {old: small(), "x.gguf": small("qwen2")})
    scene.watch("author:unsloth")
    scene.look()
    scene.later(minutes=10)
    heads = qwen36(heads=1, vocabulary=1000)
    sha = scene.hub.push(
        "unsloth/Qwen3.6-27B-GGUF", {new: heads, "x.gguf": small("gemma3")}, remove=(old,)
    )
    scene.look()
    changed = scene.event("hf_files_changed")
    assert changed.key == f"hf:rev:{repo.hub_id}:{sha}"
    assert changed.payload["counts"] == {"added": 1, "removed": 1, "changed": 1}
    assert [each["path"] for each in changed.payload["removed"]] == [old]
    assert len(changed.payload["added"][0]["xet_hash"]) == 64
    mtp = scene.event("mtp_variant_published")
    assert mtp.payload["nextn_predict_layers"] == 1
    assert mtp.payload["context_length"]
    assert mtp.key == f"hf:target:{repo.head.files[new].sha256}"
    assert scene.event("target_published").payload["path"] == "x.gguf"
    assert scene.files(repo.hub_id, gone=True)[old].gone_at == scene.now


def test_the_same_file_in_two_repositories_is_one(scene: HubScene) -> None:
    """A file whose sha256 was there before is read from no server, and is not told again."""
    scene.hub.add(BUUN, {DRAFTER: dflash()})
    scene.watch("author:spiritbuun", "author:copycat")
    scene.look()
    reads = scene.hub.file_reads
    scene.later(minutes=10)
    copy = scene.hub.add("copycat/my-DFlash-GGUF", {"mine-q8_0.gguf": dflash()})
    scene.look()
    assert scene.kinds() == ["hf_repo_created"]
    assert scene.hub.file_reads == reads
    assert scene.files(copy.hub_id)["mine-q8_0.gguf"].role == "drafter"


def test_shards_are_one_target_once_all_are_there(scene: HubScene) -> None:
    """A set that is still being sent is not told; the whole set is, once, under one key."""
    scene.watch("author:unsloth")
    scene.look()
    scene.later(minutes=10)
    name = "unsloth/Big-GGUF"
    first, second = (f"Big-Q4_K_M-0000{n}-of-00002.gguf" for n in (1, 2))
    repo = scene.hub.add(name, {first: small()})
    scene.look()
    assert scene.kinds() == ["hf_repo_created"]
    scene.later(minutes=10)
    scene.hub.push(name, {second: small("qwen2")})
    scene.look()
    target = scene.event("target_published")
    assert [each["path"] for each in target.payload["shards"]] == [first, second]
    sizes = [each.size_bytes for each in repo.head.files.values() if each.size_bytes > 1]
    assert target.payload["size"] == sum(sizes)
    scene.later(hours=25)
    scene.look()
    assert scene.kinds().count("target_published") == 1


def test_a_projector_is_read_only_for_who_asks(scene: HubScene) -> None:
    """Without the role mmproj a projector's header is not asked for."""
    scene.watch("author:unsloth", roles=["target"])
    scene.watch("author:seeing", roles=["mmproj"])
    scene.look()
    scene.later(minutes=10)
    scene.hub.add("unsloth/V-GGUF", {"mmproj-F16.gguf": projector(), "imatrix.gguf": small()})
    scene.look()
    assert scene.hub.file_reads == 0
    repo = scene.hub.add("seeing/V-GGUF", {"mmproj-BF16.gguf": projector(1024)})
    scene.later(minutes=10)
    scene.look()
    assert scene.hub.file_reads == 1
    assert scene.files(repo.hub_id)["mmproj-BF16.gguf"].facts["dialect"] == "clip"


def test_a_drafter_in_safetensors_is_known_by_its_config(scene: HubScene) -> None:
    """`config.json` names a drafter; other safetensors are no news."""
    scene.watch("author:z-lab", roles=["drafter"])
    scene.look()
    scene.later(minutes=10)
    config = (
        b'{"architectures": ["DFlashDraftModel"], "hidden_size": 5120, "block_size": 16,'
        b' "dflash_config": {"target_layer_ids": [1, 16, 31]}}'
    )
    files = {"model.safetensors": b"tensors", "config.json": config}
    scene.hub.add("z-lab/Qwen3.6-27B-DFlash", files)
    scene.hub.add("z-lab/Plain", {"model.safetensors": b"x", "config.json": b'{"hidden_size":1}'})
    scene.look()
    drafter = scene.event("drafter_published")
    said = {key: drafter.payload[key] for key in ("arch", "dialect", "block_size", "hidden")}
    assert said == {
        "arch": "DFlashDraftModel",
        "dialect": "dflash safetensors",
        "block_size": 16,
        "hidden": 5120,
    }
    assert drafter.payload["target_layers"] == [1, 16, 31]


def test_both_orders_are_asked(scene: HubScene) -> None:
    """An old repository with new files shows only in the order of changes, and is found."""
    for number in range(130):
        scene.hub.now = scene.now.replace(day=1, hour=number % 24)
        scene.hub.add(f"unsloth/M{number:03}-GGUF", {"README.md": b"x"})
    scene.watch("author:unsloth")
    first = scene.look()
    assert first.troubles == ()
    scene.later(minutes=10)
    scene.hub.push("unsloth/M000-GGUF", {"M-Q4_K_M.gguf": small()})
    scene.look()
    assert "target_published" in scene.kinds()
    orders = {each.path.partition("sort=")[2].partition("&")[0] for each in scene.hub.asked}
    assert {"lastModified", "createdAt"} <= orders


def test_a_named_repository_is_looked_at_closely(scene: HubScene) -> None:
    """`repo:` reads its headers at first sight, and waits for one that is still to come."""
    repo = scene.hub.add(BUUN, {DRAFTER: dflash(), "x-Q4_K_M.gguf": small()})
    scene.watch(f"repo:{BUUN}", "repo:spiritbuun/Later-GGUF")
    found = scene.look()
    assert any("Later-GGUF" in line for line in found.troubles)
    assert scene.kinds() == []
    assert all(each.facts for path, each in scene.files(repo.hub_id).items() if "gguf" in path)
    scene.later(minutes=10)
    scene.hub.add("spiritbuun/Later-GGUF", {"later-dflash-q4_0.gguf": dflash("dflash")})
    scene.look()
    assert scene.kinds() == ["hf_repo_created", "drafter_published"]


def test_bases_and_searches_are_watched(scene: HubScene) -> None:
    """`base:` finds by tag and `search:` by words what no watched author published."""
    scene.watch("base:Qwen/Qwen3.6-27B", "search:dflash gguf")
    scene.look()
    scene.later(minutes=10)
    scene.hub.add("a/One", {"one-Q4_K_M.gguf": small()}, tags=["base_model:Qwen/Qwen3.6-27B"])
    scene.hub.add("b/two-DFlash-GGUF", {"two-q8_0.gguf": dflash()})
    scene.look()
    assert sorted(scene.kinds()) == [
        "drafter_published", "hf_repo_created", "hf_repo_created", "target_published",
    ]  # fmt: skip


def test_an_old_repository_beyond_the_first_pages_is_found_late(scene: HubScene) -> None:
    """It is no new one and its targets are none, but a drafter that was added to it is told."""
    old = scene.hub.add("a/Old-GGUF", {"old-Q4_K_M.gguf": small()}, tags=["base_model:Qwen/Q"])
    for number in range(301):
        scene.hub.now = scene.now - timedelta(hours=1)
        name = f"a/M{number:03}"
        scene.hub.add(name, {"README.md": b"x"}, tags=["base_model:Qwen/Q"])
    scene.watch("base:Qwen/Q")
    scene.look()
    scene.later(minutes=10)
    scene.hub.push("a/Old-GGUF", {"old-dflash-q8_0.gguf": dflash()})
    scene.look()
    assert scene.kinds() == ["drafter_published"]
    assert scene.event("drafter_published").payload["hf_id"] == old.hub_id
