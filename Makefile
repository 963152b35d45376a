# Aliases only: the work is in pyproject.toml and in the package.
PYTHON ?= python3
BIN := .venv/bin
# Python compiles the modules that are used; pip would compile them all.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

# What is compiled is kept: tests and pages start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: certify claims test nightly coverage mutants fuzz lint types docs bench build sbom versions locked

certify: .venv/certify
	$(BIN)/dpverify certify examples/mnist.toml --out out/mnist

test: .venv/installed
	$(BIN)/python -m pytest -n auto -p no:randomly -m "not nightly"

fuzz: .venv/installed
	$(BIN)/python -m pytest -q -p no:randomly -m nightly tests/fuzz

nightly: .venv/installed
	$(BIN)/python -m pytest -n auto

# What the tests of every change reach, and no less than pyproject.toml says. Clocks interrupt
# whatever runs, also the measure while it holds its lock, which would wait for itself.
coverage: .venv/installed
	rm -rf out/coverage
	$(BIN)/coverage run -m pytest -n auto -p no:randomly -m "not nightly" \
		--ignore=tests/auditing/outputs/test_time_limit.py
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

mutants: .venv/installed
	$(BIN)/python -m benchmarks.mutants

lint: .venv/installed
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/codespell
	$(BIN)/validate-pyproject pyproject.toml

types: .venv/installed
	$(BIN)/mypy

claims: .venv/installed
	$(BIN)/dpverify claims --markdown --html docs/claims.html > docs/claims.md
	mkdir -p docs/errata
	for paper in aumuller2020 kenthapadi2013 li2023 mironov2017 slides2025 stausholm2021; do \
		$(BIN)/dpverify claims errata $$paper --html docs/errata/$$paper.html \
			> docs/errata/$$paper.md || exit 1; done

docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: .venv/installed
	$(BIN)/python -m benchmarks.peers.install
	DPVERIFY_PEERS_PYTHON=$(CURDIR)/out/peers/libraries/bin/python \
		$(BIN)/python -m benchmarks > docs/benchmarks.md

sbom: .venv/installed
	@mkdir -p out
	$(BIN)/python -m benchmarks.bill > out/sbom.cdx.json

versions: .venv/installed
	$(BIN)/python -m benchmarks.versions

# As .venv/installed, but no file is taken whose hash isn't in requirements.lock.
locked:
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch .venv/certify .venv/installed

build: .venv/installed
	$(BIN)/python -m build

# What make certify needs.
.venv/certify: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) hatchling
	$(INSTALL) --no-build-isolation --editable '.[mnist,report]'
	touch $@

# What a developer needs besides.
.venv/installed: .venv/certify
	$(INSTALL) pip
	$(INSTALL) --no-build-isolation --editable '.[all]' --group dev --group docs
	touch $@
