"""GitHub's own descriptions as judges of the stand-in; fetched for a test, never kept."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from graphql import GraphQLSchema, build_schema, graphql_sync
from openapi_schema_validator import OAS30Validator, oas30_format_checker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4

PACKAGE = "@octokit/openapi@23.0.2"
MEMBER = "package/generated/api.github.com.json"
SPEC = "urn:github"
GRAPHQL_PACKAGE = "@octokit/graphql-schema@15.26.1"
GRAPHQL_MEMBER = "package/schema.graphql"


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

    def offered(self, path: str) -> dict[str, Any]:
        """What may be asked of a path: the schema of each parameter, by name."""
        found = {}
        for each in self.spec["paths"][path]["get"]["parameters"]:
            if "$ref" in each:
                each = self.spec["components"]["parameters"][each["$ref"].rpartition("/")[2]]
            found[each["name"]] = each["schema"]
        return found


class GraphQLJudge:
    """Says what is wrong with a question or with what was answered to it."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema

    def complaints(self, question: str, variables: dict[str, Any], reply: Any) -> list[str]:
        """Nothing where GitHub's types, filled with the reply's own data, answer the same."""
        root = {**reply["data"], "repository": _typed(reply["data"]["repository"])}
        found = graphql_sync(self._schema, question, root, variable_values=variables)
        wrong = [error.message[:200] for error in found.errors or []]
        if not wrong and found.data != reply["data"]:
            wrong.append("holds what was not asked for, or lacks what was")
        return wrong


def _typed(repository: Any) -> Any:
    """With the one type named that GitHub's description leaves open: what a branch points to."""
    nodes = [
        {**node, "defaultBranchRef": {**branch, "target": {**branch["target"], **_COMMIT}}}
        if node and (branch := node["defaultBranchRef"])
        else node
        for node in repository["forks"]["nodes"]
    ]
    return {**repository, "forks": {**repository["forks"], "nodes": nodes}}


_COMMIT = {"__typename": "Commit"}


def fetch(folder: Path) -> Judge:
    """The judge of the published package; only the one file is unpacked, into memory."""
    return Judge(json.loads(_packed(folder, PACKAGE, MEMBER)))


def fetch_graphql(folder: Path) -> GraphQLJudge:
    """The judge of questions in GraphQL."""
    text = _packed(folder, GRAPHQL_PACKAGE, GRAPHQL_MEMBER).decode()
    return GraphQLJudge(build_schema(text, assume_valid=True))


def _packed(folder: Path, published: str, path: str) -> bytes:
    words = ["npm", "pack", published, "--silent", "--pack-destination", str(folder)]
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=300)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as package:
        member = package.extractfile(path)
        assert member is not None
        content = member.read()
    archive.unlink()
    return content


def _is_ours(path: str) -> bool:
    alone = ("/rate_limit", "/search/repositories")
    return path in alone or path.startswith("/repos/{owner}/{repo}")
