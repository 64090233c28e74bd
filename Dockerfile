# One image for every process of the system; the command says which one it is.
ARG PYTHON_IMAGE=python:3.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /app
RUN python -m venv /app/.venv
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN .venv/bin/python -m pip install --no-cache-dir --require-hashes --no-deps -r requirements.lock
COPY jobs jobs
COPY scout scout
COPY workers workers
COPY web web
RUN .venv/bin/python -m pip install --no-cache-dir --no-build-isolation --no-deps .

FROM ${PYTHON_IMAGE}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends bubblewrap cmake g++ git ninja-build util-linux \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 scout \
 && install -d -o scout -g scout /var/lib/forkscout
COPY --from=build /app /app
USER scout
WORKDIR /app
ENV PATH=/app/.venv/bin:$PATH FORKSCOUT_HOME=/var/lib/forkscout
VOLUME /var/lib/forkscout
ENTRYPOINT ["forkscout"]
CMD ["--help"]
