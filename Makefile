# The first command is `make demo`, the second `make test`. `make` alone lists the others.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Of what the README shows; a comma would end an argument of `call`.
EXTRAS := clean,serve,index

# A process for each core; a file of tests stays in one, with what its tests share. The slowest are listed.
PYTEST_OPTIONS ?= --numprocesses=logical --maxprocesses=4 --dist=loadfile --durations=30 --durations-min=1

DEMO_OUTPUT ?= runs/demo
DEMO_OPTIONS ?=

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test lint audit contract compat faults bench package docs clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.installed ## train an encoder on the standard library's docstrings, and see whether it is better
	$(BIN)/selfsent train python:stdlib --output $(DEMO_OUTPUT) --overwrite $(DEMO_OPTIONS)

test: $(VENV)/.installed-test ## run the test suite
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(PYTEST_OPTIONS)

lint: $(VENV)/.installed-lint ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src packages/papers/src

audit: $(VENV)/.installed-lint ## ask for known weaknesses of the packages in constraints.txt (needs the network)
	$(BIN)/python tests/audit.py

contract: $(VENV)/.installed-test ## the contract suite in full: every method on every architecture, every recipe in small; and all other tests that take long
	SELFSENT_CONTRACT_RESULTS=docs/results/quality/contract.json $(BIN)/python -m pytest tests/contract -m ""
	$(BIN)/python -m pytest --ignore=tests/contract -m full

bench: $(VENV)/.installed-test ## speed beside sentence-transformers, written to docs/benchmarks.md
	$(BIN)/python benchmarks/train.py --output docs/results/speed/bench_train.json
	$(BIN)/python benchmarks/encode.py --output docs/results/speed/bench_encode.json
	$(BIN)/python benchmarks/pairs.py --output docs/results/speed/bench_pairs.json
	$(BIN)/python benchmarks/report.py

compat: $(VENV)/.installed-test ## the test suite with the lowest versions that are allowed, and with the newest
	$(BIN)/python tests/compat.py

faults: $(VENV)/.installed-test ## break it on purpose, for two hours (QUICK=1: three minutes), written to docs/reliability.md
	$(BIN)/python faults/campaign.py $(if $(QUICK),--quick)
	$(if $(QUICK),,$(BIN)/python faults/report.py)

package: $(VENV)/.installed-package ## wheels and sdists into dist/, each installed and used without a network
	$(BIN)/python tests/package.py --output dist

docs: $(VENV)/.installed-docs ## build the documentation into site/
	$(BIN)/python docs/notebooks/build.py
	$(BIN)/python docs/reference/build.py
	$(BIN)/zensical build --clean --strict

clean: ## remove what the commands above made, except runs/
	rm -rf $(VENV) .cache build dist site src/*.egg-info packages/*/build packages/*/src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# One pip call with every pin: without them pip may choose a different, much larger build of torch.
define install
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("selfsent needs Python 3.11 or newer: name one with PYTHON=python3.12, say")'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.$(1)' -e 'packages/papers$(2)'
	@touch $@
endef

$(VENV)/.installed: pyproject.toml packages/papers/pyproject.toml constraints.txt
	$(call install,[$(EXTRAS)])

$(VENV)/.installed-%: pyproject.toml packages/papers/pyproject.toml constraints.txt
	$(call install,[$*],$(if $(filter test,$*),[words]))
