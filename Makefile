# Every target sets up .venv by itself; nothing has to be done before.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

SLOW_FILES = $(shell grep -lE '^pytestmark = .*(slow|dask)' tests/*.py)

FLOOR := .venv-floor
# The oldest versions that pyproject.toml allows, read from there: "numpy>=2.0" becomes "numpy==2.0.*".
FLOORS = $(shell $(PYTHON) tests/floors.py)
# The tests that run there: those of the estimator.
ON_THE_FLOOR := classifier classifier_estimator classifier_inputs common data_memory ecosystem fit_advice fit_density \
	fit_tabulation fit_validation model_curve sklearn

.PHONY: demo test quick test-floor coverage lint bench fuzz paper docs release-check clean

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'melc needs Python 3.11 or newer; found ' + sys.version.split()[0] + '. Try: make PYTHON=python3.12')"
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: $(INSTALLED)
	$(BIN)/python -m melc.cli demo --output demo-output

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 -q

# Before every commit: lint, and the tests that take about twenty seconds once everything is compiled. Files that are slow
# as a whole are not even imported.
quick: lint
	$(BIN)/python -m pytest -n 2 -q -m "not slow and not browser and not dask" $(addprefix --ignore=,$(SLOW_FILES))

# Branches of src/melc that tests run: all of them once as they are, and the kernels once more line by line.
coverage: $(INSTALLED)
	$(BIN)/python -m coverage erase
	$(BIN)/python -m pytest -q -n 2 --cov --cov-report= --cov-fail-under=0
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n 2 --cov --cov-append --cov-report= --cov-fail-under=0 $(addprefix tests/test_,kernels.py kernels_lines.py kernels_uncompiled.py)
	$(BIN)/python -m coverage report
	$(BIN)/python -m coverage json -q -o .coverage.json
	$(BIN)/python tests/branches.py .coverage.json

$(FLOOR)/.installed: pyproject.toml tests/floors.py
	$(PYTHON) -m venv $(FLOOR)
	$(FLOOR)/bin/python -m pip install --quiet --disable-pip-version-check $(FLOORS)
	touch $@

test-floor: $(FLOOR)/.installed
	PYTHONPATH=src $(FLOOR)/bin/python -m pytest -q -n 2 $(addprefix tests/test_,$(addsuffix .py,$(ON_THE_FLOOR)))

# The paper's evaluation; stopped at any moment, the same command goes on from there.
paper: $(INSTALLED)
	$(BIN)/melc reproduce --output melc-paper

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# BENCH="--quick" to see that it works, BENCH="--only fit peers" for some of it.
bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	$(BIN)/python -m benchmarks $(BENCH)

# Random nasty data against what must hold; FUZZ="--minutes 5 --seed 0" or FUZZ="--cases 20000 --seed 1 --jobs 2".
fuzz: $(INSTALLED)
	$(BIN)/python -m fuzz $(FUZZ)

# The site, with the gallery: docs/_build/html/index.html. Warnings are errors, and so are links that lead nowhere.
docs: $(VENV)/.docs-installed
	$(BIN)/python -m sphinx -W --keep-going -E -q docs docs/_build/html
	$(BIN)/python tools/check_links.py docs/_build/html

$(VENV)/.docs-installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

# What a release consists of: built, installed into empty environments, and tried.
release-check: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "build>=1.2"
	$(BIN)/python tools/release_check.py

clean:
	rm -rf $(VENV) $(FLOOR) demo-output build dist docs/_build docs/auto_examples docs/api/generated docs/api/backreferences
