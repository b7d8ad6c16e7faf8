# Everything runs in .venv, which the first target that needs it creates. Another interpreter: make setup PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help setup demo test test-all check bench clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

setup: $(INSTALLED)  ## create .venv and install everything; does nothing when nothing changed

$(INSTALLED): pyproject.toml constraints.txt
	@echo "Installing into .venv; the first time takes a few minutes."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup  ## train an LSTM and a GPT, a minute each, and let both write
	@echo "1. An LSTM learns the Python documentation, character by character, for a minute."
	@$(BIN)/seqloom fit --data sample:python-docs --model lstm --out runs/demo-lstm -o train.seconds=60
	@echo "2. A GPT learns the same text for a minute."
	@$(BIN)/seqloom fit --data sample:python-docs --model gpt --out runs/demo-gpt -o train.seconds=60
	@echo "3. The LSTM continues \"The \"."
	@$(BIN)/seqloom generate runs/demo-lstm --prompt "The " --max-new 300 --seed 1
	@echo "4. The GPT continues \"The \"."
	@$(BIN)/seqloom generate runs/demo-gpt --prompt "The " --max-new 300 --seed 1
	@echo "Both runs are in runs/. Again \"make demo\": nothing is trained twice. See also: seqloom list runs"

test: setup  ## the tests
	$(BIN)/python -m pytest

test-all: setup  ## the tests and the slow ones (tests/slow)
	$(BIN)/python -m pytest -o addopts="-q --strict-markers"

check: setup  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## speed: training and decoding against peers, preparing text
	$(BIN)/python benchmarks/language_model.py
	$(BIN)/python benchmarks/prepare.py --mb 100

clean:  ## remove .venv, caches and builds; runs/ stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find seqloom tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
