"""Servers on loopback that answer as vLLM or OpenAI does, and misbehave on request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = ("grey", "waves", "carried", "letters", "home", "while", "keepers", "slept", "soundly")


@dataclass
class Manner:
    """How it answers; the defaults are an honest vLLM."""

    vllm: bool = True
    usage: bool = True
    cached: int | None = None
    token_seconds: float = 0.005
    tokens: int | None = None
    tokens_per_chunk: int = 1
    text: str = ""
    key: str = ""
    status: int = 200
    hang_after: int | None = None
    rename_after: int | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    manner: Manner

    def log_message(self, *words: object) -> None: ...

    def refused(self) -> bool:
        manner = self.manner
        if manner.key and self.headers.get("Authorization") != f"Bearer {manner.key}":
            self.reply(401, {"error": {"message": "no key"}})
            return True
        return False

    def do_GET(self) -> None:
        if self.refused():
            return
        entry = {"id": "stub-model", "object": "model", "owned_by": "vllm", "max_model_len": 4096}
        if not self.manner.vllm:
            entry = {"id": "stub-model", "object": "model", "owned_by": "someone"}
        answers = {"/v1/models": {"object": "list", "data": [entry, entry | {"id": "other"}]}}
        if self.manner.vllm:
            answers["/version"] = {"version": "0.19.1"}
        if self.path in answers:
            self.reply(200, answers[self.path])
        else:
            self.reply(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused():
            return
        if self.path == "/tokenize":
            self.reply(200, {"tokens": [len(word) for word in body["prompt"].split()]})
            return
        manner = self.manner
        manner.asked.append({"path": self.path, **body})
        if manner.status != 200:
            self.reply(manner.status, {"error": {"message": "who knows"}})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.stream(body, len(manner.asked))

    def stream(self, body: dict[str, Any], number: int) -> None:
        manner, chat = self.manner, self.path == "/v1/chat/completions"
        renamed = manner.rename_after is not None and number > manner.rename_after
        name = "another" if renamed else body["model"]
        wanted = manner.tokens or body["max_tokens"]
        if chat:
            self.send({"model": name, "choices": [choice({"role": "assistant", "content": ""})]})
        token = 0
        while token < wanted:
            if token == manner.hang_after:
                time.sleep(3600)
            count = min(manner.tokens_per_chunk, wanted - token)
            text = "".join(manner.text or WORDS[(token + n) % 9] + " " for n in range(count))
            token += count
            last = "length" if token == wanted else None
            part = (
                choice({"content": text}, last) if chat else {"text": text, "finish_reason": last}
            )
            self.send({"model": name, "choices": [part]})
            time.sleep(manner.token_seconds * count)
        if manner.usage:
            prompt = body.get("prompt")
            counted = len(prompt) if isinstance(prompt, list) else 21
            details = None if manner.cached is None else {"cached_tokens": manner.cached}
            usage = {"prompt_tokens": counted, "completion_tokens": token}
            self.send(
                {"model": name, "choices": [], "usage": usage | {"prompt_tokens_details": details}}
            )
        self.wfile.write(b"data: [DONE]\n\n")

    def send(self, event: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def reply(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


@contextmanager
def served(manner: Manner) -> Iterator[str]:
    """The address of such a server, while the block lasts."""

    class Own(Handler):
        pass

    Own.manner = manner
    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
