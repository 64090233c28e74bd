"""A bench of a server that runs already: in vLLM's shape, in OpenAI's, and a real one."""

from __future__ import annotations

import json
import socket
import subprocess

import pytest
from support.stub_openai import Manner, served

from jobs.errors import Transient, UsageError
from workers import url_command

OWN = """
[[scenario]]
name = "short"
version = 1
prompt = "Say something."
tokens = 32

[[scenario]]
name = "deep"
version = 1
endpoint = "filled"
filled_tokens = 300
tokens = 32
"""


@pytest.fixture
def ask(tmp_path, capsys):
    """Runs the command with a short scenario; its exit code, its JSON and what it said."""
    own = tmp_path / "own.toml"
    own.write_text(OWN)

    def run(url, *words, scenario="short"):
        asked = ["--url", url, "--scenarios", str(own), "--scenario", scenario, "--wait", "0"]
        code = url_command.main([*asked, "--json", *words])
        said = capsys.readouterr()
        return code, json.loads(said.out), said.err

    return run


def test_vllm_is_measured_by_our_own_clock(ask):
    """Counts are the server's, times ours, and the source says so; every field it knows is sent."""
    manner = Manner()
    with served(manner) as url:
        code, document, said = ask(url, "--runs", "3")
    assert code == 0
    server = document["servers"]["A"]
    assert (server["kind"], server["version"], server["model"]) == ("vllm", "0.19.1", "stub-model")
    assert server["context_tokens"] == 4096
    [result] = document["results"]
    assert (result["validity"], result["source"], result["runs_used"]) == ("ok", "wall", 3)
    assert [m["run"] for m in result["samples"]] == [0, 1, 2, 3]
    for sample in result["samples"]:
        assert (sample["predicted_n"], sample["draft_n"], sample["predicted_ms"]) == (
            32,
            None,
            None,
        )
        assert sample["decode_tps"] == sample["arrival_tps"] > 0
        assert sample["inter_token_p99_ms"] >= sample["inter_token_p50_ms"] > 0
    first, second = manner.asked[1], manner.asked[2]
    assert first["ignore_eos"] is True
    assert first["min_tokens"] == first["max_tokens"] == 32
    assert first["chat_template_kwargs"] == {"enable_thinking": False}
    assert {"temperature", "top_k", "top_p", "min_p", "seed", "repetition_penalty"} <= set(first)
    assert first["messages"] != second["messages"]
    assert "warm-up" in said
    assert "run 3 of 3" in said
    assert "s left" in said


def test_a_plain_server_is_sent_no_field_of_others(ask):
    """What OpenAI's shape does not have would be refused."""
    manner = Manner(vllm=False)
    with served(manner) as url:
        code, document, _ = ask(url, "--runs", "3")
    assert (code, document["servers"]["A"]["kind"]) == (0, "openai")
    extra = {"top_k", "min_p", "ignore_eos", "min_tokens", "chat_template_kwargs"}
    assert not extra & set(manner.asked[0])


@pytest.mark.parametrize(
    ("manner", "validity", "words"),
    [
        ({"cached": 20}, "cached", "20 prompt tokens"),
        ({"usage": False}, "inconsistent", "counts no tokens"),
        ({"tokens": 9}, "too_short", "9 of 32 tokens"),
        ({"text": "/"}, "broken_output", "only repeats '/'"),
        ({"tokens_per_chunk": 32}, "inconsistent", "in 1 pieces"),
        ({"rename_after": 2}, "wrong_server", "'another'"),
    ],
)
def test_a_foreign_server_is_believed_no_more_than_ours(ask, manner, validity, words):
    """Every way to be fooled that can be seen from outside has its state, and exit code 1."""
    with served(Manner(**manner)) as url:
        code, document, _ = ask(url, "--runs", "3")
    [result] = document["results"]
    assert (code, result["validity"]) == (1, validity)
    assert words in result["reason"]


def test_a_context_is_filled_in_the_servers_own_words(ask):
    """vLLM tokenises too; the count is read back."""
    manner = Manner()
    with served(manner) as url:
        code, document, _ = ask(url, "--runs", "1", scenario="deep")
    assert code == 0
    assert len(manner.asked[-1]["prompt"]) == 300
    assert document["results"][0]["samples"][-1]["prompt_n"] == 300
    with served(Manner(vllm=False)) as url, pytest.raises(UsageError, match="known depth"):
        ask(url, scenario="deep")


def test_two_servers_are_measured_in_turns_and_paired(ask):
    """A, B, A, B; the pairing is stored, and what the two say of each other."""
    fast, slow = Manner(token_seconds=0.002), Manner(token_seconds=0.02)
    with served(fast) as first, served(slow) as second:
        _, document, _ = ask(first, "--against", second, "--runs", "3", "--rounds", "2")
    order = [(each["arm"], each["round"]) for each in document["order"]]
    assert order == [("A", 1), ("B", 1), ("A", 2), ("B", 2)]
    [pair] = document["pairs"]
    assert [each["round"] for each in pair["rounds"]] == [1, 2]
    assert all(each["ratio"] > 1 for each in pair["rounds"])
    assert pair["sentence"].startswith("A ")
    salts = [each["messages"] for each in fast.asked]
    assert salts == [each["messages"] for each in slow.asked]


def test_a_key_goes_to_the_server_and_nowhere_else(ask, tmp_path):
    """From a file, never from the command line; without it the server is not there for us."""
    key = tmp_path / "key"
    key.write_text("secret-key\n")
    with served(Manner(key="secret-key")) as url:
        code, document, said = ask(url, "--key-file", str(key), "--runs", "3")
        assert code == 0
        assert "secret-key" not in json.dumps(document) + said
        with pytest.raises(Transient, match="nothing that can be benched"):
            ask(url)


def test_a_server_that_refuses_or_hangs_is_a_failure_of_its_own(ask, monkeypatch):
    """What it said and what to do; the command ends."""
    with served(Manner(status=500)) as url:
        code, document, said = ask(url)
    assert (code, document["failures"][0]["class"]) == (1, "http_500")
    assert "http_500" in said


def test_an_unknown_model_is_answered_with_those_there_are(ask):
    """A server may have several."""
    with served(Manner()) as url:
        with pytest.raises(UsageError) as caught:
            ask(url, "--model", "third")
        assert "stub-model, other" in caught.value.advice
        _, document, _ = ask(url, "--model", "other", "--runs", "1")
    assert document["servers"]["A"]["model"] == "other"


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:9931",
        "ftp://127.0.0.1/",
        "http://user:pass@127.0.0.1/",
        "http://127.0.0.1:99999",
        "http://a b/",
        "http://",
        "http://h/?q=1",
    ],
)
def test_what_is_no_address_is_refused(ask, url):
    """Before anything is asked."""
    with pytest.raises(UsageError, match="no address"):
        ask(url)


def test_nothing_there_is_no_traceback(ask):
    """A closed port ends with one sentence."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Transient, match="nothing that can be benched"):
        ask(f"http://127.0.0.1:{port}/v1/")


def test_without_json_the_figures_are_sentences(tmp_path, capsys):
    """And the JSON is in the file that was asked for."""
    own, out = tmp_path / "own.toml", tmp_path / "out.json"
    own.write_text(OWN)
    words = ["--scenarios", str(own), "--scenario", "short", "--runs", "3", "--out", str(out)]
    with served(Manner()) as url:
        assert url_command.main(["--url", url, *words]) == 0
    said = capsys.readouterr().out
    assert "A: vllm 0.19.1 at http://127.0.0.1:" in said
    assert "t/s by our own clock, 3 runs" in said
    assert json.loads(out.read_text())["format"] == "forkscout-url-bench"


SERVER = """
import signal, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.n_ctx, params.n_parallel, params.n_gpu_layers = 2048, 1, 0
params.endpoint_slots = params.endpoint_props = True
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
signal.pause()
"""


def test_a_real_server_that_was_started_by_hand(ask, real_artifact, tiny_weights):
    """llama.cpp's own server on a TCP port: its own timings, and no figure of ours needed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(real_artifact / "bin" / "python"),
        "-I",
        "-B",
        "-c",
        SERVER,
        str(tiny_weights),
        str(port),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            code, document, _ = ask(f"http://127.0.0.1:{port}", "--runs", "3", "--wait", "60")
        finally:
            process.kill()
    server = document["servers"]["A"]
    assert (server["kind"], server["slots"], server["context_tokens"]) == ("llama-server", 1, 2048)
    [result] = document["results"]
    measured = [m for m in result["samples"] if not m["warmup"]]
    assert {m["source"] for m in measured} == {"timings"}
    assert {m["predicted_n"] for m in measured} == {32}
    # Random weights say nothing sound; the bench must say that, and nothing else.
    assert {m["validity"] for m in measured} <= {"ok", "broken_output"}
    assert code in (0, 1)
