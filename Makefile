PYTHON ?= python3
BIN := .venv/bin
PYTEST = $(BIN)/python -m pytest
SPREAD = --numprocesses logical --maxprocesses 4
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input

.PHONY: bench-setup env help demo up test setup fmt lint types imports unit integration acceptance check lock clean

help: ## list what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.venv/runtime.stamp: requirements.lock pyproject.toml
	@echo "Installing into .venv from requirements.lock (hashes checked) ..."
	@$(PYTHON) -m venv .venv
	@$(INSTALL) --require-hashes --no-deps -r requirements.lock
	@$(INSTALL) --no-build-isolation --no-deps --editable .
	@touch $@

.venv/dev.stamp: requirements-dev.lock .venv/runtime.stamp
	@$(INSTALL) --require-hashes --no-deps -r requirements-dev.lock
	@touch $@

.venv/bench.stamp: requirements-bench.lock .venv/dev.stamp
	@$(INSTALL) --require-hashes --no-deps -r requirements-bench.lock
	@touch $@

bench-setup: .venv/bench.stamp ## add what benchmarks are compared with

demo: .venv/runtime.stamp ## run the main job once: watch, build, bench, judge, publish
	@$(BIN)/forkscout demo

up: .venv/runtime.stamp ## keep the whole system running until Ctrl-C
	@$(BIN)/forkscout up

setup: .venv/dev.stamp ## make the development environment

test: unit integration acceptance ## every test this machine can run

unit: .venv/dev.stamp ## the quick ring only
	@$(PYTEST) $(SPREAD) tests/unit

integration: .venv/dev.stamp ## the ring with real databases, brokers, sandboxes and servers
	@$(PYTEST) $(SPREAD) tests/integration

acceptance: .venv/dev.stamp ## the whole system; it benches, so one test at a time
	@$(PYTEST) tests/acceptance

fmt: .venv/dev.stamp ## format the code
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: .venv/dev.stamp ## look for mistakes and strange layout
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: .venv/dev.stamp ## check the types
	@$(BIN)/mypy

imports: .venv/dev.stamp ## check the import law
	@$(BIN)/lint-imports

check: lint types imports unit ## what CI runs first

env: .venv/runtime.stamp ## write .env.example from the settings
	@$(BIN)/python -c "from jobs.config import env_example; print(env_example(), end='')" > .env.example

lock: ## resolve the two lock files anew (needs uv)
	@uv pip compile pyproject.toml --extra build --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade --output-file requirements.lock
	@uv pip compile pyproject.toml --extra build --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade --output-file requirements-dev.lock
	@uv pip compile pyproject.toml --extra bench --constraints requirements-dev.lock --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file requirements-bench.lock

clean: ## forget everything made here, var/ included
	@rm -rf .venv var .mypy_cache .ruff_cache .hypothesis
