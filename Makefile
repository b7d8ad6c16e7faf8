# Everything runs in .venv, which the first target that needs it creates. Another interpreter: make setup PYTHON=python3.12
# Each target installs only what it needs: the product, its development tools, or the documentation tools.

PYTHON ?= python3
BIN := .venv/bin
RUNTIME := .venv/.runtime
DEV := .venv/.dev
DOCS := .venv/.docs
TWO := -n 2 --dist loadfile
MINUTES ?= 5
KILLS ?= 3

.PHONY: help setup demo serve test quick test-all fuzz fuzz-readers kills check bench docs clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

setup: $(DEV)  ## create .venv and install everything for development; does nothing when nothing changed

define install
	@echo "Installing into .venv; the first time takes a few minutes."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.$(1)'
	@touch $(RUNTIME) $@
endef

$(RUNTIME): pyproject.toml constraints.txt
	$(call install,)

$(DEV): pyproject.toml constraints.txt
	$(call install,[dev])

$(DOCS): pyproject.toml constraints.txt
	$(call install,[docs])

demo: $(RUNTIME)  ## compare GRU, GPT and BERT at telling noisy waves apart: equal size, equal tokens; a few minutes
	@echo "Which model tells five kinds of noisy waves apart? GRU, GPT and BERT, equal size, equal tokens; a few minutes."
	@$(BIN)/seqloom compare --data sample:waves --models gru,gpt,bert --params 50k --budget tokens=600k \
		--trials 2 --seeds 5 --jobs 2 --out runs/demo
	@echo "Open the report in a browser. Running make demo again retrains nothing."

serve: $(RUNTIME)  ## serve a tiny model of a built-in sample, and open the page in a browser
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[serve]'
	@test -f runs/serve/summary.json || $(BIN)/seqloom fit --data sample:python-docs --model gru --out runs/serve \
		-o model.width=64 -o train.steps=300
	@$(BIN)/seqloom serve runs/serve --open

test: setup  ## the tests, in two processes
	$(BIN)/python -m pytest $(TWO)

quick: setup  ## the tests that train and start little, for daily work; about a minute
	$(BIN)/python -m pytest $(TWO) -m "not long"

test-all: setup  ## the tests and the slow ones (tests/slow), one after another
	$(BIN)/python -m pytest -o addopts="-q --strict-markers"

fuzz: setup  ## generated inputs to every command; make fuzz MINUTES=30 FIRST=1000 for longer and for other ones
	PYTHONPATH=tests $(BIN)/python -m fuzz --minutes $(MINUTES) --first $(or $(FIRST),0)

fuzz-readers: setup  ## coverage-guided inputs to every reader of files, by atheris, for MINUTES in all
	$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris
	PYTHONPATH=tests $(BIN)/python -m fuzz.readers --minutes $(MINUTES)

kills: setup  ## kill every command that writes at random moments, and compare bit for bit; KILLS of each, an hour with 3
	$(BIN)/python tests/slow/kills.py --kills $(KILLS) --seed $(or $(FIRST),0)

check: setup  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## speed: against peers, of every model, of preparing text; figures in runs/bench; under 20 minutes
	$(BIN)/python benchmarks/language_model.py --json runs/bench/language_model.json
	$(BIN)/python benchmarks/every_model.py --json runs/bench/every_model.json
	$(BIN)/python benchmarks/prepare.py --mb 100 --json runs/bench/prepare.json

docs: $(DOCS)  ## the documentation as a site, in site/; a broken link is an error
	$(BIN)/python docs/build.py

clean:  ## remove .venv, caches and builds; runs/ stays
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site
	find seqloom tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
