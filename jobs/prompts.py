"""What the shipped scenarios say to a server, and the pictures they show it; it sends nothing."""

from __future__ import annotations

import base64
import json
import struct
import zlib

SPACE_INVADERS = (
    "Write a complete Space Invaders game as one HTML file. Use a canvas for drawing, the keyboard "
    "for steering, a score, three lives and rising waves. Explain nothing, only write the file."
)
CODE = (
    "Write a Python module with a thread-safe cache that forgets by age and by size, with type "
    "hints and tests for each method. Explain nothing, only write the file."
)
PROSE = (
    "Tell the story of a lighthouse keeper who finds a letter in a bottle, in plain prose without "
    "headings, from the first storm of autumn to the first warm day of spring."
)
RIDDLE = (
    "A ferryman takes a wolf, a goat and a cabbage over a river. His boat holds himself and one of "
    "them; wolf and goat, or goat and cabbage, must never be left alone. On Sundays the wolf is "
    "fed and safe. Say how he crosses on a Saturday and how few trips he needs on a Sunday."
)
PICTURE = (
    "Which colour fills this picture? Name it first, in one word, then describe in full sentences "
    "how it changes from one side to the other and what such a picture could be used for."
)
_TOOLS = ("read_file", "list_folder", "search_text", "run_tests")
_FOLDERS = ("src/parser", "src/render", "tests/unit")
REPLAYED_CALLS = 24


def tool_replay() -> str:
    """A log of tool calls that is to be written again with one field more: much of it repeats."""
    calls = [
        {
            "id": f"call_{number:03}",
            "tool": _TOOLS[number % len(_TOOLS)],
            "arguments": {"path": f"{_FOLDERS[number % len(_FOLDERS)]}/part_{number}.py"},
            "status": "ok" if number % 5 else "failed",
        }
        for number in range(1, REPLAYED_CALLS + 1)
    ]
    return (
        'Write this list of tool calls again as JSON. Keep order and fields, and add "retry": '
        "true to those that failed and false to the others. Explain nothing, only write the JSON."
        f"\n{json.dumps(calls, indent=1)}"
    )


GRADIENT = "red-gradient-64"
PICTURES = (GRADIENT,)
PICTURE_SIDE = 64


def picture(name: str) -> str:
    """The picture of that name as a data address; raises KeyError for an unknown one."""
    if name != GRADIENT:
        raise KeyError(name)
    return "data:image/png;base64," + base64.b64encode(_red_gradient()).decode()


def _red_gradient() -> bytes:
    """A PNG of 64x64 pixels, red that grows from dark on the left to full on the right."""
    row = b"\x00" + b"".join(
        bytes((96 + 159 * column // (PICTURE_SIDE - 1), 0, 0)) for column in range(PICTURE_SIDE)
    )
    header = struct.pack(">IIBBBBB", PICTURE_SIDE, PICTURE_SIDE, 8, 2, 0, 0, 0)
    body = zlib.compress(row * PICTURE_SIDE, 9)
    chunks = ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
