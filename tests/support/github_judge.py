"""GitHub's own OpenAPI description as a judge of the stand-in; fetched for a test, never kept."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from openapi_schema_validator import OAS30Validator, oas30_format_checker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

PACKAGE = "@octokit/openapi@23.0.2"
MEMBER = "package/generated/api.github.com.json"
SPEC = "urn:github"


class Judge:
    """Says what is wrong with a reply, by the path and status of the description."""

    def __init__(self, spec: dict[str, Any]) -> None:
        wanted = {path: item for path, item in spec["paths"].items() if _is_ours(path)}
        self.spec = {"paths": wanted, "components": spec["components"]}
        resource = Resource(contents=self.spec, specification=DRAFT4)
        self._registry = Registry().with_resource(SPEC, resource)

    def complaints(self, path: str, status: int, body: Any) -> list[str]:
        """Nothing where the reply is one that GitHub describes."""
        replies = self.spec["paths"][path]["get"]["responses"]
        if str(status) not in replies:
            return [f"{path} does not answer {status}"]
        place = f"/paths/{path.replace('/', '~1')}/get/responses/{status}"
        if "$ref" in replies[str(status)]:
            place = replies[str(status)]["$ref"].removeprefix("#")
        schema = {"$ref": f"{SPEC}#{place}/content/application~1json/schema"}
        validator = OAS30Validator(
            schema, registry=self._registry, format_checker=oas30_format_checker
        )
        return [f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator.iter_errors(body)]


def fetch(folder: Path) -> Judge:
    """The judge of the published package; only the one file is unpacked, into memory."""
    words = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=300)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as package:
        member = package.extractfile(MEMBER)
        assert member is not None
        spec = json.load(member)
    archive.unlink()
    return Judge(spec)


def _is_ours(path: str) -> bool:
    return path == "/rate_limit" or path.startswith("/repos/{owner}/{repo}")
