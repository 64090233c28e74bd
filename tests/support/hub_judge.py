"""The hub's own JavaScript clients as judges of the stand-in; fetched for a test, never kept."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("@huggingface/hub@2.17.5", "@huggingface/gguf@0.4.6")
SCRIPT = """
import {
  downloadFile, fileDownloadInfo, listCommits, listFiles, listModels, modelInfo,
} from "@huggingface/hub";
import { gguf } from "@huggingface/gguf";
const [hubUrl, name, path, small] = process.argv.slice(2);
const all = async (found) => {
  const items = [];
  for await (const each of found) items.push(each);
  return items;
};
const search = { owner: name.split("/")[0] };
const repo = { type: "model", name };
const said = {};
said.models = await all(listModels({ search, sort: "createdAt", hubUrl }));
said.model = await modelInfo({ name, hubUrl, additionalFields: ["sha", "tags"] });
said.files = await all(listFiles({ repo, recursive: true, hubUrl }));
said.commits = await all(listCommits({ repo, hubUrl }));
said.info = await fileDownloadInfo({ repo, path, hubUrl });
said.text = await (await downloadFile({ repo, path: small, hubUrl, xet: false })).text();
const read = await gguf(`${hubUrl}/${name}/resolve/main/${path}`);
said.metadata = read.metadata;
said.tensors = read.tensorInfos.length;
const plain = (_, value) => typeof value === "bigint" ? Number(value) : value;
console.log(JSON.stringify(said, plain));
"""


class NodeJudge:
    """A folder with the packages, and what they say of a hub."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        words = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(
            [*words, *PACKAGES], cwd=folder, check=True, capture_output=True, timeout=300
        )
        (folder / "judge.mjs").write_text(SCRIPT)

    def said(self, url: str, name: str, path: str, small: str) -> dict[str, Any]:
        """What the clients make of a repository, a model file and a text in it."""
        done = subprocess.run(
            ["node", "judge.mjs", url, name, path, small],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        found: dict[str, Any] = json.loads(done.stdout)
        return found
