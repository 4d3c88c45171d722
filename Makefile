# make demo   install and run the demo        make test   lint, types and all tests
# make tables render the tables and figures from the result lines in benchmarks/
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test tables format clean

demo: $(VENV)/.demo
	$(BIN)/newfound demo

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

tables: $(VENV)/.test
	$(BIN)/python -m benchmarks.rendering tables
	$(BIN)/python -m benchmarks.rendering figures

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
	$(PIP) install --quiet --constraint constraints.txt --editable ".[offline,glove,hub,openvino,plot,test]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist demo-run
