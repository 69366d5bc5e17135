# `make demo` and `make test` need Python >= 3.11 and a package registry, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check format lint bench clean

demo: $(VENV)/.demo  ## make the environment, install, answer "what does epsilon = 1 mean?"
	$(BIN)/dprad demo

test: $(VENV)/.test lint  ## install what the tests need, lint, type-check, run the tests
	$(BIN)/python -m pytest

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: $(VENV)/.test  ## the quick part of the tests, for every day
	$(BIN)/python -m pytest -x --ignore=tests/bounds/test_against_lp.py

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.test  ## compare in one run and print ratios
	for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@ $(VENV)/.demo
