"""A code base that is built like llama.cpp within seconds; its server only prints its help."""

from __future__ import annotations

CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(tiny CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_library(words src/words.cpp)
add_executable(llama-server tools/server/server.cpp)
target_link_libraries(llama-server words)
"""
HELP = (
    "----- common params -----\n\n"
    "-m,    --model FNAME                    path of the model\n"
    "                                        (env: LLAMA_ARG_MODEL)\n"
    "-ctk,  --cache-type-k TYPE              type of the K cache\n"
    "                                        allowed values: f16, q8_0\n"
    "                                        (default: f16)\n"
    "--draft-max N                           the argument has been removed. use another\n"
)
WORDS = 'const char * words() {{ return R"({help})"; }}\n'
SERVER = """
#include <cstdio>
const char * words();
int main() { std::fputs(words(), stdout); }
"""


def files(help_text: str = HELP, **more: str) -> dict[str, str]:
    """Everything that one commit of it holds; `more` by path with `__` for each slash."""
    return {
        "CMakeLists.txt": CMAKE,
        "README.md": "A tiny engine.\n",
        "tests/CMakeLists.txt": "message(FATAL_ERROR never)\n",
        "src/words.cpp": WORDS.format(help=help_text),
        "tools/server/server.cpp": SERVER,
        **more,
    }
