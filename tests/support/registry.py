"""A registry of images on this machine's loopback, which an engine fetches from by digest."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar"


@dataclass
class Registry:
    """What it offers by digest, and every path that somebody asked it for."""

    address: str
    blobs: dict[str, tuple[str, bytes | Path]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def offer(self, name: str, layer: bytes | Path, labels: Mapping[str, str] | None = None) -> str:
        """Offer an image of one layer; the name that pulls it by its digest."""
        size = layer.stat().st_size if isinstance(layer, Path) else len(layer)
        content = self._put(LAYER, layer)
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Labels": dict(labels or {})},
            "rootfs": {"type": "layers", "diff_ids": [content]},
        }
        written = json.dumps(config, sort_keys=True).encode()
        parts = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {
                "mediaType": CONFIG,
                "size": len(written),
                "digest": self._put(CONFIG, written),
            },
            "layers": [{"mediaType": LAYER, "size": size, "digest": content}],
        }
        digest = self._put(MANIFEST, json.dumps(parts, sort_keys=True).encode())
        return f"{self.address}/{name}@{digest}"

    def _put(self, kind: str, content: bytes | Path) -> str:
        if isinstance(content, Path):
            with content.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            found = hashlib.sha256(content).hexdigest()
        self.blobs[f"sha256:{found}"] = (kind, content)
        return f"sha256:{found}"


def layer_of(files: Mapping[str, str]) -> bytes:
    """A layer that holds these programs."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


@contextmanager
def registry() -> Iterator[Registry]:
    """Serve one until the block ends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            made.asked.append(self.path)
            digest = self.path.rpartition("/")[2]
            unknown = b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'
            kind, content = made.blobs.get(digest, ("application/json", unknown))
            found = digest in made.blobs or self.path == "/v2/"
            data = content.read_bytes() if isinstance(content, Path) else content
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            if found and digest.startswith("sha256:"):
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Registry(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
