# Two commands matter: `make demo` and `make test`. Each builds the environment it needs.

VENV   ?= .venv
PYTHON ?= python3.11
BIN    := $(VENV)/bin
RECIPE ?= sample
STORE  ?= parsebank-data

# Images that set it make each process compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test slow check docs fix serve train bench clean

help:  ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(VENV)/.train  ## The whole journey on the bundled sample: parse, backfill, train, twice
	$(BIN)/parsebank demo

test: $(VENV)/.dev  ## The tests (minutes); set PARSEBANK_DATA to include those on real data
	$(BIN)/python -m pytest -n logical --dist loadfile --durations=30 --durations-min=2

slow: $(VENV)/.dev  ## The tests that take long
	$(BIN)/python -m pytest -m slow -n logical --dist loadfile --durations=60 --durations-min=5

check: $(VENV)/.dev docs  ## Lint, formatting, types and the pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.dev  ## The site of the pages, in build/site; fails on a broken link
	$(BIN)/zensical build --clean --strict

fix: $(VENV)/.dev  ## Repair what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

serve: $(VENV)/.train  ## Run the service on loopback
	$(BIN)/parsebank serve --store $(STORE)

train: $(VENV)/.train  ## Train RECIPE on the features in STORE
	$(BIN)/parsebank train $(RECIPE) --store $(STORE)

bench: $(VENV)/.bench  ## Re-run the benchmarks; results go to benchmarks/results/
	$(BIN)/python -m benchmarks.matrices
	$(BIN)/python -m benchmarks.stream
	$(BIN)/python -m benchmarks.store
	$(BIN)/python -m benchmarks.backfill
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.train

clean:  ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The stamps hold the extras that are installed; `dev` includes `train`. Modules are compiled where
# they are imported first: most never are.
$(VENV)/.train: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[train]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.train

# litdata asks for torchvision and runs without; one that was built for another torch breaks
# transformers.
$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[bench]'
	$(BIN)/python -m pip uninstall --quiet --yes torchvision
	touch $@
