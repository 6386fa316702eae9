# Every command of the project. Each installs what it needs from the hashed locks into .venv, once per change of a lock.
.DEFAULT_GOAL := help
.PHONY: help demo test tools kafka check format install lock soak bench clean

# The first Python of at least 3.11 that really starts; `make test PYTHON=/path/to/python` picks another.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
BENCHES := $(filter-out __init__,$(basename $(notdir $(wildcard tests/bench/*.py))))
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --build-deps-for=editable \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --no-header

help: ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: .venv/.runtime ## Index a small story while it changes, and ask it questions
	@$(BIN)/gistream demo

test: tools ## Run the tests
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile $(ARGS)

tools: .venv/.dev ## Install what some tests run beside Python: Prometheus, Kafka and the weights of MiniLM
	@sh tests/tools.sh

kafka: tools ## Run a Kafka until Ctrl-C, and say how to reach it; ARGS="--nodes 3 --port 9092"
	@$(BIN)/python -m tests.broker $(ARGS)

check: .venv/.dev ## Lint, format and types, over code and tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: .venv/.dev ## Put the code into its standard form
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

install: .venv/.runtime ## Install the gistream command into .venv

soak: tools ## Run the random histories at full length; figures go to build/soak/
	@$(BIN)/python -m pytest -q -m soak --hypothesis-profile=soak --timeout=0 $(ARGS)

bench: .venv/.dev ## Run every benchmark; figures go to build/bench/
	@mkdir -p build/bench
	@set -e; for name in $(BENCHES); do echo "bench $$name"; \
		OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.bench.$$name --out build/bench/$$name.json; done

lock: .venv/.dev ## Bring the two hashed locks up to date with pyproject.toml
	@$(PIP) install pip-tools
	@$(COMPILE) --output-file requirements.txt pyproject.toml
	@$(COMPILE) --extra dev --constraint requirements.txt --output-file requirements-dev.txt pyproject.toml

clean: ## Remove what can be made again; stored data stays
	@rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The build backend is in the lock too, so nothing unhashed is fetched.
define install_lock
	@test -n "$(PYTHON)" || { echo "gistream needs Python 3.11 or newer on the PATH, or: make $(MAKECMDGOALS) PYTHON=..." >&2; exit 1; }
	@echo "installing $< into .venv"
	@$(PYTHON) -m venv .venv
	@$(PIP) install --require-hashes --requirement $<
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
endef

.venv/.runtime: requirements.txt pyproject.toml
	$(install_lock)

.venv/.dev: requirements-dev.txt pyproject.toml
	$(install_lock)
