# Each target builds .venv from nothing but python3 and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The product alone; and with it the benchmark and all tools.
PRODUCT := $(VENV)/.product
READY := $(VENV)/.ready
# Less than a minute on two busy cores; `make test-fast ALSO=tests/site/test_send.py` adds those of the file at work.
FAST := $(addprefix tests/,test_agreement.py test_equations.py report/test_drawings.py $(addprefix learning/,test_moments.py \
	test_ward.py test_micro_clusters.py test_mixture.py test_linkage.py test_rows.py paper/test_blocks.py \
	paper/test_compilation.py) message/test_message.py message/test_envelope.py)
ALSO ?=
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test test-fast coverage check format docs release-check bench bench-speed fuzz clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    a simulated federation on handwritten digits, ending in report.html"
	@echo "make test    the tests (minutes: also servers and nodes of a live federation, which are killed)"
	@echo "make test-fast  a few of them, for the inner loop (under a minute)"
	@echo "make check   formatting, lint, types, import layers, generated docs"
	@echo "make docs    the documentation as a site: open build/site/index.html"
	@echo "make coverage  which lines and branches the tests reach (make coverage ONLY=tests/message: of these tests)"
	@echo "make release-check  wheels and sdists, each installed in a clean environment and used (minutes)"
	@echo "make bench   the paper's experiments, families of data, speed and growth, the cost of safety (minutes)"
	@echo "make bench-speed  speed against others, growth, memory, where the time goes (minutes)"
	@echo "make fuzz    100 000 mutated messages: none may do harm (minutes)"
	@echo "make format  put the code into the form that make check asks for"
	@echo "make clean   remove what the others made"

$(PRODUCT): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@

$(READY): $(PRODUCT) bench/pyproject.toml
	$(INSTALL) --editable '.[dev]' --editable './bench[rounds]'
	touch $@

demo: $(PRODUCT)
	$(BIN)/goldfc demo

test: $(READY)
	$(BIN)/python -m pytest --numprocesses=4

test-fast: $(READY)
	$(BIN)/python -m pytest --numprocesses=3 $(FAST) $(ALSO)

# Branches, too; in the processes that tests start nothing is counted.
ONLY ?= tests
coverage: $(READY)
	$(BIN)/python -m pytest --numprocesses=3 --cov --cov-report=term $(ONLY)

docs: $(READY)
	$(BIN)/python -m sphinx --fresh-env --fail-on-warning --keep-going -c docs . build/site

release-check: $(READY)
	$(BIN)/python tools/release.py

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.equations --check
	$(BIN)/python -m tools.dossier --check
	$(BIN)/python -m tools.results --check

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python -m tools.equations
	$(BIN)/python -m tools.dossier
	$(BIN)/python -m tools.results

# The data of the experiments, if they lie beside the checkout; empty is as good as not set.
bench bench-speed: export GOLDFC_DATA ?= $(wildcard $(CURDIR)/../shared/data)

bench: $(READY)
	$(BIN)/goldfc-bench paper --seeds 10 --out benchmarks
	$(BIN)/goldfc-bench shapes --draws 3 --out benchmarks
	$(MAKE) bench-speed
	$(BIN)/goldfc-bench trust --out benchmarks

bench-speed: $(READY)
	$(BIN)/goldfc-bench speed --out benchmarks

fuzz: $(READY)
	$(BIN)/python tools/fuzz.py --count 100000 --seed 0 --out benchmarks/fuzz/README.md

clean:
	find src bench tests tools -name __pycache__ -prune -exec rm -rf {} +
	rm -rf $(VENV) build dist report.html .coverage benchmarks/quick .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
