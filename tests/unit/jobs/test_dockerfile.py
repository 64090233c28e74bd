"""What a Dockerfile may start from and have, judged before any engine sees it."""

from __future__ import annotations

import pytest

from jobs.dialect.dockerfile import refusal

BASE = f"base@sha256:{'a' * 64}"
ARGUMENTS = {"CUDA_VERSION": "12.8.1", "BASE_DEV": BASE}
SOUND = """\ufeff# syntax=docker/dockerfile:1
ARG UBUNTU=24.04
ARG CUDA_VERSION=12.4.0
ARG BASE_DEV=nvidia/cuda:${CUDA_VERSION}-devel-ubuntu${UBUNTU}

FROM ${BASE_DEV} AS build
ARG CUDA_DOCKER_ARCH=default
RUN if [ "${CUDA_DOCKER_ARCH}" != "default" ]; then \\
        export CMAKE_ARGS="-DCMAKE_CUDA_ARCHITECTURES=${CUDA_DOCKER_ARCH}"; \\
    # a comment between
    fi && \\

    cmake -B build . && echo ADD http://example.org
from --platform=linux/amd64 $BASE_DEV as Server
COPY --chown=0:0 --from=build /app /app
COPY --from=0 /app /more
FROM server
FROM scratch
"""


@pytest.mark.parametrize("text", [SOUND, SOUND.replace("\n", "\r\n"), f"FROM {BASE}"])
def test_pinned_bases_and_own_stages_are_taken(text):
    """With comments, continued lines, any case, carriage returns."""
    assert refusal(text, arguments=ARGUMENTS, images=[BASE]) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "starts from nothing"),
        ("RUN true", "starts from nothing"),
        ("FROM debian:12", "'debian:12', which no pin"),
        (f"FROM {BASE} AS one\nFROM two AS two", "'two', which no pin"),
        (f"FROM {BASE}\nFROM base", "'base', which no pin"),
        ("ARG X\nFROM ${X}", "'', which no pin"),
        ("FROM ${X:-evil}", "'evil', which no pin"),
        ("FROM ${BASE_DEV:+evil}", "which no pin"),
        (f"FROM {BASE}\nARG BASE_LATER=evil\nFROM $BASE_LATER", "'', which no pin"),
        ("FROM ev\\\nil", "'evil', which no pin"),
        ("# escape=`\nFROM x", "sign that continues"),
        ("#escape = `\nFROM x", "sign that continues"),
        (f"FROM {BASE}\nADD http://example.org/x /x", "'ADD'"),
        (f"FROM {BASE}\nAD\\\nD https://example.org/x /x", "'ADD'"),
        (f"FROM {BASE}\n\u00a0add x /x", "'ADD'"),
        (f"FROM {BASE}\nONBUILD ADD http://example.org /x", "'ONBUILD'"),
        (f"FROM {BASE}\nRUN <<END\nADD http://example.org /x\nEND", "'ADD'"),
        (f"FROM {BASE}\nCOPY --from=evil / /", "copies from 'evil'"),
        (f"FROM {BASE}\nCOPY --from=1 / /", "copies from '1'"),
        (f"FROM {BASE}\nCOPY --from=$BASE_DEV / /", "copies from '$BASE_DEV'"),
        (f"FROM {BASE}\nCOPY --chown=1 --FROM=evil / /", "copies from 'evil'"),
        (f"FROM {BASE}\nCOPY \\\n--from=evil / /", "copies from 'evil'"),
    ],
)
def test_what_would_be_fetched_is_refused(text, why):
    """Whatever way it is written; what is not understood is refused as well."""
    assert why in refusal(text, arguments=ARGUMENTS, images=[BASE])


def test_what_we_say_counts_and_not_the_default():
    """An ARG of ours cannot be changed by the file; one that it adds may name a pin."""
    text = "ARG BASE_DEV=evil\nARG OTHER=$BASE_DEV\nFROM ${BASE_DEV}"
    assert refusal(text, arguments=ARGUMENTS, images=[BASE]) == ""
    assert refusal(f"ARG MINE='{BASE}'\nFROM $MINE", arguments={}, images=[BASE]) == ""
