"""The bench without queue and database: what it leaves in its file."""

from __future__ import annotations

import json

import pytest
from support.offline_stub import DEEP, PLAIN, SpokenCard, arm, bench

from jobs.control import Control
from workers.offline import combinations, run_in_turns
from workers.offline_record import Wish


def samples(document, combination=0):
    return [
        m for boot in document["combinations"][combination]["boots"] for m in boot["measurements"]
    ]


def test_one_boot_measures_every_scenario(tmp_path):
    """A short answer and a filled context come from the same start, each under its own key."""
    document = bench(tmp_path, scenarios=(PLAIN, DEEP))
    found = [(m["scenario"], m["warmup"]) for m in samples(document)]
    assert found == [("stub.v1", True), ("stub.v1", False), ("ladder.v1@900", False)]
    assert {m["validity"] for m in samples(document)} <= {"ok", "tainted"}
    assert samples(document)[-1]["prompt_n"] == 900


def test_the_file_holds_what_was_returned_and_no_path_of_the_machine(tmp_path):
    """It goes to another machine and is shown to strangers."""
    document = bench(tmp_path)
    text = (tmp_path / "result.json").read_text()
    kept = json.loads(text)
    assert kept["format"] == "forkscout-bench"
    assert kept["combinations"] == json.loads(json.dumps(document["combinations"], default=str))
    assert "secret-name" not in text
    assert kept["caged"] is False


def test_a_context_that_was_filled_less_than_asked_is_not_ok(tmp_path):
    """The depth is what the server counted, not what we meant."""
    document = bench(tmp_path, scenarios=(DEEP,), behaviour={"prompt_n": 10})
    last = samples(document)[-1]
    assert (last["validity"], last["reason"]) == ("config_mismatch", "10 of 900 tokens filled")


def test_a_server_without_tokenizer_fails_its_combination_and_says_so(tmp_path):
    """What was measured before stays in the file."""
    document = bench(tmp_path, scenarios=(PLAIN, DEEP), behaviour={"tokenizes": False})
    combination = document["combinations"][0]
    assert combination["failure"]["class"] == "no_tokenizer"
    assert [m["scenario"] for m in combination["boots"][0]["measurements"]] == [
        "stub.v1",
        "stub.v1",
    ]


def test_a_combination_that_fails_does_not_stop_the_next(tmp_path):
    """Each names its own failure, with the end of the log."""
    document = bench(
        tmp_path, contexts=(1024, 2048), behaviour={"exit_on_load": 3, "say": "it broke"}
    )
    assert [combination["asked"]["context_tokens"] for combination in document["combinations"]] == [
        1024,
        2048,
    ]
    for combination in document["combinations"]:
        assert combination["boots"] == []
        assert combination["failure"]["class"] == "unknown"
        assert "it broke" in combination["failure"]["log"]


@pytest.mark.parametrize("text", ["words", "slashes"])
def test_a_twin_has_its_own_mark_whatever_it_says(tmp_path, text):
    """Random weights speak no language, and their speed never ranks."""
    document = bench(tmp_path, twin=True, behaviour={"text": text})
    assert {m["validity"] for m in samples(document)} == {"twin"}


def test_a_twin_that_is_wrong_in_another_way_is_called_so(tmp_path):
    """The mark hides nothing that matters."""
    document = bench(tmp_path, twin=True, behaviour={"shown_context": 512})
    assert {m["validity"] for m in samples(document)} == {"config_mismatch"}


def test_the_card_is_read_before_loaded_and_after_each_request(tmp_path):
    """Memory of the process and of the card, and the range of clocks, heat and power."""
    document = bench(tmp_path, card=SpokenCard())
    boot = document["combinations"][0]["boots"][0]
    assert document["card"]["name"] == "Stub 9000"
    assert boot["memory"]["process"] == 4321
    assert boot["card_before"]["process_bytes"] is None
    assert boot["environment"]["loaded"]["card"]["process_bytes"] > 1000
    for m in boot["measurements"]:
        card = m["after"]["card"]
        assert card["device_bytes"] == 5000
        assert card["range"]["sm_mhz"] == [1980, 1980, 1980]
    assert boot["environment"]["card_peak_bytes"] >= card["process_bytes"]
    assert any("card 0 MiB" in line for line in document["said"])


def test_every_context_is_measured_with_every_cache_and_ubatch():
    """In the order that was asked for."""
    wish = Wish((PLAIN,), contexts=(1024, 2048), kvs=("f16", "q8_0"), ubatches=(256, 512))
    found = [(c.context_tokens, c.kv, c.ubatch) for c in combinations(wish)]
    assert found[:3] == [(1024, "f16", 256), (1024, "f16", 512), (1024, "q8_0", 256)]
    assert len(set(found)) == 8


def test_two_builds_are_booted_in_turns_and_know_each_other(tmp_path):
    """A, B, A, B in one go: heat and other work fall on both, and each file tells the pairing."""
    arms = [
        arm(tmp_path, "a.json", {}, artifact="a" * 64, boots=2),
        arm(tmp_path, "b.json", {}, artifact="e" * 64, boots=2),
    ]
    said: list[str] = []
    first, second = run_in_turns(arms, control=Control(), say=said.append)
    moments = {
        (boot["started_at"], name, boot["number"])
        for name, document in (("A", first), ("B", second))
        for boot in document["combinations"][0]["boots"]
    }
    order = [f"{name}{number}" for _, name, number in sorted(moments)]
    assert order == ["A1", "B1", "A2", "B2"]
    assert first["pairing"]["id"] == second["pairing"]["id"]
    assert (first["pairing"]["arm"], second["pairing"]["arm"]) == ("A", "B")
    assert first["pairing"]["artifacts"] == {"A": "a" * 64, "B": "e" * 64}
    kept = json.loads((tmp_path / "b.json").read_text())
    assert kept["pairing"] == second["pairing"]


def test_an_arm_that_fails_leaves_the_other_its_boots(tmp_path):
    """One broken build does not take the other's numbers with it."""
    arms = [
        arm(tmp_path, "a.json", {"exit_on_load": 1}, boots=2),
        arm(tmp_path, "b.json", {}, boots=2),
    ]
    first, second = run_in_turns(arms, control=Control(), say=[].append)
    assert first["combinations"][0]["failure"]["ending"] == "exit code 1"
    assert len(second["combinations"][0]["boots"]) == 2


def test_one_build_has_no_pairing(tmp_path):
    """A file says of itself only what happened."""
    assert "pairing" not in bench(tmp_path)
