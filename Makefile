# `make demo` and `make test` need Python >= 3.11 and a package registry, nothing else.
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test browser java thorough check format lint docs bench scaling soundness fuzz mutation clean

demo: $(VENV)/.demo  ## make the environment, install, answer "what does epsilon = 1 mean?", write a report
	$(BIN)/dprad demo
	$(BIN)/dprad report -o demo-report.html

test: $(VENV)/.test browser java lint  ## install what the tests need, lint, type-check, run the tests
	$(BIN)/python -m pytest -n 3 --dist worksteal

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

thorough: $(VENV)/.test  ## the same tests with all their random instances; takes three times as long
	THOROUGH=1 $(BIN)/python -m pytest -n 3 --dist worksteal

check: $(VENV)/.test  ## the quick part of the tests, for every day
	$(BIN)/python -m pytest -x --ignore=tests/bounds/test_against_lp.py

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.test  ## build the documentation as a site, in docs/_build
	$(BIN)/sphinx-build -W -q docs docs/_build
	@echo docs/_build/index.html

INSTALL := apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends

browser:  ## Chromium for the tests of the page; without it they are skipped, and say so
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || ($(INSTALL) chromium) >/dev/null 2>&1 \
	  || echo "No Chromium here, and it could not be installed: tests of the page will be skipped."

java:  ## Java for the test of Spark data frames; likewise
	@command -v java >/dev/null || ($(INSTALL) default-jre-headless) >/dev/null 2>&1 \
	  || echo "No Java here, and it could not be installed: the test of Spark will be skipped."

bench: $(VENV)/.test  ## compare in one run and print ratios
	for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

scaling: $(VENV)/.test  ## time and memory against the size of the question
	$(BIN)/python benchmarks/scaling.py --out docs

soundness: $(VENV)/.test  ## tens of thousands of random instances; takes a while
	$(BIN)/python campaigns/soundness.py --out docs/soundness.md

fuzz: $(VENV)/.test  ## scenario files, command lines, tables, state files, functions
	$(BIN)/python campaigns/fuzzing.py --out docs/fuzzing.md

mutation: $(VENV)/.test  ## change the code and see whether the tests notice; takes an hour or two
	$(BIN)/python campaigns/mutation.py --out docs/mutation.md

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[report,tables]'
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[test]'
	touch $@ $(VENV)/.demo
