"""What a file is that turned out to be no GGUF, told from its first bytes; a hint for people."""

from __future__ import annotations

SNIFFED_BYTES = 256
"""What a look at the first bytes needs."""

_STARTS = (
    (b"version https://git-lfs", "it is a git-lfs pointer: fetch the real file (git lfs pull)"),
    (b"<!doctype", "it is an HTML page, not a model"),
    (b"<html", "it is an HTML page, not a model"),
    (b"<?xml", "it is an XML document, not a model"),
    (b"pk\x03\x04", "it is a ZIP archive (a wheel, a PyTorch file?), not a GGUF"),
    (b"\x1f\x8b", "it is compressed with gzip: unpack it first"),
    (b"fugg", "it is written big-endian, which no engine here loads"),
    (b"tjgg", "it is in the GGJT format that came before GGUF: convert the model anew"),
    (b"lmgg", "it is in the GGML format that came before GGUF: convert the model anew"),
)


def what_it_is(start: bytes, *, whole: bool) -> str:
    """One sentence about a file that starts so; `whole` says that there is nothing more."""
    if start.startswith(b"GGUF") and whole:
        return f"the file is cut short: it has only {len(start)} bytes"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for beginning, sentence in _STARTS:
        if start.lower().startswith(beginning) or text.startswith(beginning):
            return sentence
    if start[8:9] == b"{":
        return "it looks like safetensors: convert it to GGUF first"
    if text.startswith((b"{", b"[")):
        return "it is JSON, not a model"
    if start and not any(start):
        return "it starts with zeros: a download that was never filled"
    return f"it starts with {start[:4]!r} instead of b'GGUF'"
