"""The whole system on this machine, with the real server: finished, interrupted, killed, again."""

from __future__ import annotations

import json
import os
import signal
import time

import httpx
from redis import Redis
from support.links import dead_links
from support.waiting import wait_for

from jobs.model import State

LONG = ("--runs", "40", "--boots", "3")
ENDLESS = ("--runs", "1000", "--boots", "100")
SHORT_LEASES = {"FORKSCOUT_HEARTBEAT_SECONDS": "3", "FORKSCOUT_LEASE_SECONDS": "15"}
"""Whoever waits for a lost job to be taken back need not wait for the 45 s of an installation."""


def submit(system, *words):
    """Queue a bench by hand; its number."""
    done = system.run("submit", "bench", "--engine", "xllamacpp", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[-1]["id"]


def test_a_demo_ends_with_a_board_and_a_site(demo):
    """The first demo watches, builds, benches, judges, publishes, and leaves nothing running."""
    assert demo.code == 0, demo.said
    assert "xllamacpp" in demo.said
    page = demo.system.settings.resolved_site / "index.html"
    assert str(page) in demo.said
    assert dead_links(page.parent) == []
    assert {row.state for row in demo.system.jobs()} == {State.SUCCEEDED}
    assert demo.system.processes() == {}


def test_a_demo_compares_the_real_servers_cache_with_the_estimate(demo):
    """Its header and its log say the same of what the context takes."""
    page = demo.system.settings.resolved_site / "fit.html"
    text = page.read_text()
    assert "xllamacpp with llama" in text
    row = text.partition('<th scope="row">KV cache</th>')[2].partition("</tr>")[0]
    assert "+0.0 %" in row
    assert "not measured" not in row


def test_a_twin_is_benched_and_never_ranks(system, folder):
    """Random weights of the same shape run like the model; their result is marked and no entry."""
    (weights,) = system.settings.weights.glob("*.gguf")
    twin = folder / "twin.gguf"
    done = system.run("twin", str(weights), "--out", str(twin))
    assert done.returncode == 0, done.stderr
    assert system.run("weights", "add", str(twin), "--name", "shape").returncode == 0
    before = json.loads(system.run("leaderboard", "--json").stdout)["groups"]
    system.up()
    number = submit(system, "--target", "shape", "--runs", "2", "--boots", "1")
    assert system.wait_for_state(number, State.SUCCEEDED).message
    assert system.count("result", f"job_id = {number} and validity = 'twin' and decode_tps > 0")
    groups = json.loads(system.run("leaderboard", "--json").stdout)["groups"]
    assert [group for group in groups if group["group"]["model_class"] != "shape"] == before
    (shape,) = (group for group in groups if group["group"]["model_class"] == "shape")
    assert [entry["rank"] for entry in shape["entries"]] == [None]


def test_a_second_demo_finds_nothing_new(system):
    """It says so, queues nothing, and takes seconds."""
    before = len(system.jobs())
    began = time.monotonic()
    done = system.run("demo")
    assert (done.returncode, time.monotonic() - began < 40) == (0, True), done.stdout
    assert "Nothing new" in done.stdout
    assert "xllamacpp" in done.stdout
    assert len(system.jobs()) == before
    assert system.processes() == {}


def test_sigkill_of_everything_loses_no_job(system):
    """The kernel ends every process with `up`; the next `up` takes the job back and ends it."""
    job = submit(system, *LONG)
    running = system.up(**SHORT_LEASES)
    system.wait_for_runs(job, 20)
    running.send(signal.SIGKILL)
    running.wait()
    system.wait_for_silence(15)
    assert system.job(job).state == State.RUNNING
    again = system.up(**SHORT_LEASES)
    found = system.wait_for_state(job, State.SUCCEEDED, State.FAILED)
    assert (found.state, found.attempts) == (State.SUCCEEDED, 2)
    assert system.count("result", f"job_id = {job}") == 1
    again.send(signal.SIGTERM)
    assert again.wait() == 0
    boots = f"select boot.id from boot join result on result.id = result_id where job_id = {job}"
    started = system.count("boot", f"id in ({boots})")
    assert started >= 3
    assert system.count("sample", f"boot_id in ({boots}) and not warmup") == 40 * started


def test_ctrl_c_gives_the_job_back(system):
    """`up` drains: exit 0, no process, no lease, the attempt forgiven; the next `up` goes on."""
    job = submit(system, *LONG)
    running = system.up()
    system.wait_for_runs(job)
    running.send(signal.SIGINT)
    assert running.wait() == 0, running.said
    assert system.processes() == {}
    assert system.held() == []
    found = system.job(job)
    assert (found.state, found.attempts) == (State.QUEUED, 0)
    again = system.up()
    assert system.wait_for_state(job, State.SUCCEEDED).attempts == 1
    again.send(signal.SIGINT)
    assert again.wait() == 0


def test_a_running_bench_is_cancelled(system):
    """The engine is gone in seconds, and every command tells of it."""
    running = system.up()
    job = submit(system, *ENDLESS)
    system.wait_for_runs(job)
    done = system.run("cancel", str(job))
    assert "asked to stop" in done.stdout
    system.wait_for_state(job, State.CANCELLED, seconds=15)
    assert system.engines() == {}
    assert "cancelled while it ran" in system.run("show", str(job)).stdout
    listed = json.loads(system.run("jobs", "--all", "--json").stdout)
    assert [row["state"] for row in listed if row["id"] == job] == ["cancelled"]
    assert system.run("logs", str(job)).stdout.strip()
    assert "has already ended" in system.run("cancel", str(job)).stderr
    running.send(signal.SIGINT)
    assert running.wait() == 0


def test_an_interrupted_demo_is_finished_by_the_next(make_system):
    """Ctrl-C ends it with 130 and leaves no process and no lease; again, it ends well."""
    system = make_system()
    first = system.start("demo")
    wait_for(
        lambda: (
            system.home.exists()
            and (system.home / "forkscout.sqlite").exists()
            and system.count("sqlite_master", "name = 'job'")
            and system.held()
        ),
        seconds=60,
        what="a job",
    )
    first.send(signal.SIGINT)
    assert first.wait() == 130, first.said
    assert system.processes() == {}
    assert system.held() == []
    done = system.run("demo", seconds=300)
    assert done.returncode == 0, done.stdout
    assert {row.state for row in system.jobs()} == {State.SUCCEEDED}


def test_a_broker_that_forgets_and_dies_loses_no_job(system):
    """Flushed with jobs queued, then killed: the sweep and the supervisor make it good."""
    running = system.up()
    busy = submit(system, *ENDLESS)
    system.wait_for_runs(busy)
    waiting = [submit(system, "--runs", runs, "--boots", "1") for runs in ("3", "4")]
    with Redis(unix_socket_path=str(system.settings.broker_socket)) as client:
        client.flushall()
        pid = client.info()["process_id"]
        assert client.llen("bench.cpu") == 0
    assert pid in system.processes()
    os.kill(pid, signal.SIGKILL)
    assert system.run("cancel", str(busy)).returncode == 0
    for job in waiting:
        assert system.wait_for_state(job, State.SUCCEEDED).attempts == 1
    assert system.job(busy).state == State.CANCELLED
    running.send(signal.SIGINT)
    assert running.wait() == 0, running.said


def test_a_killed_worker_is_started_again_and_its_job_finished(system):
    """The engine dies with its worker; the next life of the worker takes the job back."""
    running = system.up(**SHORT_LEASES)
    job = submit(system, *LONG)
    system.wait_for_runs(job, 5)
    (worker,) = {
        pid for pid, words in system.processes().items() if "worker bench.cpu" in words
    } & _leaders(system)
    os.kill(worker, signal.SIGKILL)
    found = system.wait_for_state(job, State.SUCCEEDED)
    assert found.attempts == 2
    assert system.count("result", f"job_id = {job}") == 1
    running.send(signal.SIGINT)
    assert running.wait() == 0


def _leaders(system):
    return {pid for pid in system.processes() if os.getsid(pid) == pid}


def test_the_live_site_answers_while_the_system_is_up(system):
    """Leaderboard and job page over HTTP; a second system in this home is refused."""
    running = system.up()
    job = system.jobs()[0].id
    wait_for(lambda: _answers(system.address), what="the site")
    assert "xllamacpp" in httpx.get(f"{system.address}/").text
    assert httpx.get(f"{system.address}/jobs/{job}.html").status_code == 200
    assert httpx.get(f"{system.address}/jobs/{10**6}.html").status_code == 404
    for command in ("up", "demo"):
        refused = system.run(command)
        assert (refused.returncode, "already runs here" in refused.stderr) == (2, True)
    running.send(signal.SIGINT)
    assert running.wait() == 0


def _answers(address):
    try:
        return httpx.get(f"{address}/").status_code == 200
    except httpx.TransportError:
        return False
