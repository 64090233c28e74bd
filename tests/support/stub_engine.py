"""A stand-in server that speaks llama-server's HTTP over a unix socket and misbehaves on request.

Run as a program with one JSON argument: `socket`, `model`, `alias`, `context` and any of the
fields of `Behaviour`.
"""

from __future__ import annotations

import json
import os
import signal
import socketserver
import sys
import threading
import time
from dataclasses import dataclass, field, fields
from http.server import BaseHTTPRequestHandler

WORDS = (
    *("the", "quick", "brown", "fox", "jumps", "over", "one"),
    *("lazy", "dog", "while", "seven", "small", "birds", "watch"),
)


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


@dataclass
class Behaviour:
    """What the server does wrong; the defaults are an honest server."""

    load_seconds: float = 0.0
    load_line_seconds: float = 0.0
    exit_on_load: int | None = None
    say: str = ""
    exit_on_post: int | None = None
    posts_before_exit: int = 0
    hang_after_tokens: int | None = None
    ignore_term: bool = False
    shown_alias: str | None = None
    echo: str | None = None
    shown_context: int | None = None
    shown_slots: int = 1
    cache_n: int = 0
    predicted_n: int | None = None
    text: str = "words"
    timings: str = "honest"
    endless: bool = False
    tokens_per_chunk: int = 1
    reasoning_tokens: int = 0
    token_seconds: float = 0.001
    drafts: list[int] = field(default_factory=list)
    status: int = 200
    error: str = ""
    error_event: str = ""
    junk_lines: bool = False
    slots_status: int = 200
    log_flood: bool = False
    tokenizes: bool = True
    prompt_n: int | None = None
    say_on_post: str = ""
    speculative: bool | None = None
    predicted_ms: float | None = None
    cold_posts: int = 0


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, asked: dict, behaviour: Behaviour) -> None:
        self.asked, self.behaviour = asked, behaviour
        self.loaded = threading.Event()
        self.posts = 0
        super().__init__(asked["socket"], Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *words: object) -> None:
        say(f"done request: {self.command} {self.path} {words[1]}")

    def do_GET(self) -> None:
        asked, behaviour = self.server.asked, self.server.behaviour
        if not self.server.loaded.is_set():
            self.reply(503, {"error": {"code": 503, "message": "Loading model"}})
            return
        alias = behaviour.shown_alias or asked["alias"]
        context = behaviour.shown_context or asked["context"]
        if self.path == "/health":
            self.reply(200, {"status": "ok"})
        elif self.path == "/props":
            self.reply(
                200,
                {
                    "default_generation_settings": {"n_ctx": context},
                    "total_slots": behaviour.shown_slots,
                    "model_alias": alias,
                    "model_path": asked["model"],
                    "build_info": "b0-stub",
                },
            )
        elif self.path == "/slots" and behaviour.slots_status == 200:
            drafting = behaviour.speculative
            drafting = bool(behaviour.drafts) if drafting is None else drafting
            slot = {"n_ctx": context, "speculative": drafting}
            self.reply(200, [{"id": n, **slot} for n in range(behaviour.shown_slots)])
        else:
            self.reply(501, {"error": {"message": "not supported"}})

    def do_POST(self) -> None:
        behaviour = self.server.behaviour
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            ids = [len(word) for word in body["content"].split()]
            self.reply(200 if behaviour.tokenizes else 501, {"tokens": ids})
            return
        self.server.posts += 1
        if behaviour.say_on_post:
            say(behaviour.say_on_post)
        if behaviour.exit_on_post is not None and self.server.posts > behaviour.posts_before_exit:
            say(behaviour.say)
            die(behaviour.exit_on_post)
        if behaviour.status != 200:
            self.reply(behaviour.status, {"error": {"message": behaviour.error}})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.stream(body)

    def stream(self, body: dict) -> None:
        behaviour = self.server.behaviour
        if behaviour.error_event:
            self.send({"error": {"message": behaviour.error_event}})
        chat = self.path.startswith("/v1/")
        asked = body["max_tokens"] if chat else body["n_predict"]
        wanted = asked if behaviour.predicted_n is None else behaviour.predicted_n
        name = behaviour.echo or body["model"]
        if chat:
            self.send(chunk(name, {"role": "assistant", "content": None}))
        if behaviour.junk_lines:
            self.wfile.write(b'data: {"choices": [\ndata: 17\ndata: null\nhello\n\n: ping\n')
        began = time.perf_counter()
        token = 0
        while token < wanted or behaviour.endless:
            if token == behaviour.hang_after_tokens:
                time.sleep(3600)
            count = min(behaviour.tokens_per_chunk, max(1, wanted - token))
            text = "".join(spoken(behaviour.text, token + n) for n in range(count))
            token += count
            kind = "reasoning_content" if token <= behaviour.reasoning_tokens else "content"
            if chat:
                self.send(chunk(name, {kind: text}))
            else:
                self.send({"content": text, "stop": False, "tokens_predicted": token})
            if not behaviour.endless:
                cold = self.server.posts <= behaviour.cold_posts and token < wanted * 0.6
                time.sleep(behaviour.token_seconds * count * (10 if cold else 1))
        milliseconds = (time.perf_counter() - began) * 1000
        prompt = body.get("prompt")
        filled = len(prompt) if isinstance(prompt, list) else 24
        milliseconds = behaviour.predicted_ms or milliseconds
        timings = self.timings(token, milliseconds, behaviour.prompt_n or filled)
        if chat:
            self.send(chunk(name, {}, finish="length"))
            last = {"choices": [], "model": name, "usage": {"completion_tokens": token}}
        else:
            last = {"content": "", "stop": True, "model": name, "stop_type": "limit"}
        self.send(last | ({"timings": timings} if timings is not None else {}))
        if chat:
            self.wfile.write(b"data: [DONE]\n\n")

    def timings(self, tokens: int, milliseconds: float, prompt_n: int) -> dict | None:
        behaviour = self.server.behaviour
        honest = {
            "cache_n": behaviour.cache_n,
            "prompt_n": prompt_n,
            "prompt_ms": 0.5,
            "prompt_per_second": prompt_n * 2000.0,
            "predicted_n": tokens,
            "predicted_ms": milliseconds,
            "predicted_per_second": tokens / milliseconds * 1000 if milliseconds else 0,
        }
        if behaviour.drafts:
            honest |= dict(zip(("draft_n", "draft_n_accepted"), behaviour.drafts, strict=True))
        match behaviour.timings:
            case "none":
                return None
            case "nan":
                return honest | {"predicted_ms": float("nan"), "predicted_per_second": float("inf")}
            case "wrong types":
                return {key: [str(value)] for key, value in honest.items()}
            case "boastful":
                return honest | {"predicted_per_second": honest["predicted_per_second"] * 10}
            case "lying":
                return honest | {
                    "predicted_ms": milliseconds / 10,
                    "predicted_per_second": tokens / milliseconds * 10000,
                }
        return honest

    def send(self, event: dict) -> None:
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def reply(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def chunk(name: str, delta: dict, finish: str | None = None) -> dict:
    return {"model": name, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def spoken(kind: str, token: int) -> str:
    match kind:
        case "slashes":
            return "/"
        case "nothing":
            return ""
        case "red":
            return "red " if not token else WORDS[token % len(WORDS)] + " "
        case "one word":
            return "never "
        case "decay":
            return WORDS[token] + " " if token < 6 else "/"
        case "hostile":
            return "\x00\ud800<script>" + WORDS[token % len(WORDS)]
    return WORDS[token % len(WORDS)] + " "


def die(code: int) -> None:
    """End with `code`; beyond 128 by the signal itself, as a crash does."""
    if code > 128:
        os.kill(os.getpid(), code - 128)
        time.sleep(5)
    os._exit(code)


def main(argument: str) -> None:
    wanted = json.loads(argument)
    known = {entry.name for entry in fields(Behaviour)}
    behaviour = Behaviour(**{key: value for key, value in wanted.items() if key in known})
    if behaviour.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if behaviour.say and behaviour.exit_on_post is None:
        say(behaviour.say)
    if behaviour.exit_on_load is not None:
        time.sleep(behaviour.load_seconds)
        die(behaviour.exit_on_load)
    server = Server(wanted, behaviour)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    deadline = time.monotonic() + behaviour.load_seconds
    while time.monotonic() < deadline:
        time.sleep(behaviour.load_line_seconds or 0.05)
        if behaviour.load_line_seconds:
            say("load_tensors: loading")
    while behaviour.log_flood:
        say("x" * 65536)
    server.loaded.set()
    say("server is listening")
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main(sys.argv[1])
