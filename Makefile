# make demo    install and run the demo
# make test    lint, types, all tests and the documentation; WORKERS=4 runs tests in 4 processes
# make test-scale  the tests that need Ray and Spark (a few minutes)
# make docs    build the documentation into site/
# make torture faults of many kinds, and a count of what they broke (5 to 15 minutes)
# make tables  render the tables and figures from the result lines in benchmarks/
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test test-scale docs tables torture format clean

demo: $(VENV)/.demo
	$(BIN)/newfound demo

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# In one process: each of these tests uses all cores.
test-scale: $(VENV)/.test-scale
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --scale tests/scale

tables: $(VENV)/.test
	$(BIN)/python -m benchmarks.rendering tables
	$(BIN)/python -m benchmarks.rendering figures

torture: $(VENV)/.test
	$(BIN)/python -m benchmarks.torture
	$(BIN)/python -m benchmarks.rendering tables

# Strict: a link or an anchor that leads nowhere is an error.
docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --upgrade pip

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable ".[offline]"
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable ".[offline,excel,glove,hub,openvino,plot,review,sentence-transformers,serve,sql,test,docs]"
	touch $@ $(VENV)/.demo

$(VENV)/.test-scale: $(VENV)/.test
	$(PIP) install --quiet --constraint constraints.txt --editable ".[ray,test-scale]"
	touch $@

clean:
	rm -rf $(VENV) build dist demo-run site
