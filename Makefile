# make demo, make test: each sets up what it needs, again and again without harm.

PYTHON ?= python3
# The oldest and the newest CPython of this machine, from 3.11 on; VERSIONS=3.12 picks one.
ifndef VERSIONS
VERSIONS := $(shell $(PYTHON) tools/pythons.py)
endif
NEWEST = $(lastword $(VERSIONS))
BIN = .venv-$(NEWEST)/bin

# The processes that tests start find the package compiled.
export PYTHONDONTWRITEBYTECODE =

# How long to fuzz.
SECONDS = 60

# What runs on other loops.
ON_LOOPS = tests/waiting tests/transport tests/resources tests/provisioning tests/test_client.py tests/test_pagination.py

# The published description of the API, what serves it, and the client that a page compares:
# versions of packages of Node.js.
DESCRIPTION = 2.7.3
PRISM = 5.16.0
SDK = 6.1.2
PACKAGES = @neondatabase/api-client@$(DESCRIPTION) @stoplight/prism-cli@$(PRISM) @neon/sdk@$(SDK)
NODE_READY = .contract/ready-$(DESCRIPTION)-$(PRISM)-$(SDK)

# Where the benchmarks put Neon's own TypeScript SDK; they run it on the machine's Node.js, else on ours.
SDK_READY = .bench/ready-$(SDK)
WITH_NODE = PATH="$$PATH:$(CURDIR)/$(BIN)"

.PHONY: demo screens pictures test coverage hostile loops contract endpoints check format docs scale soak faults fuzz bench bench-quick mutants dist clean
.SECONDARY:
# Two pips must not write to one environment.
.NOTPARALLEL:

demo: .venv-$(NEWEST)/ready-test
	$(BIN)/neonctl-async demo

# Takes the pictures of docs/command-line.md anew; needs tmux.
screens: .venv-$(NEWEST)/ready-test
	$(BIN)/python -m tools.screens

# Draws the pictures of docs/waiting.md anew.
pictures: .venv-$(NEWEST)/ready-test
	$(BIN)/python -m tools.pictures

test: $(VERSIONS:%=test-%)

test-%: .venv-%/ready-test
	.venv-$*/bin/python -X dev -m pytest --numprocesses 4

# The tests on the newest CPython once more, twice as slow, and how much of the code they run.
coverage: .venv-$(NEWEST)/ready-test
	$(BIN)/python -X dev -m pytest --numprocesses 4 --cov

# The tests that start processes, and a sample of the others, under conditions of other machines.
# CONDITIONS='umask SIGINT' picks some.
hostile: .venv-$(NEWEST)/ready-test
	$(BIN)/python -m tools.hostile $(CONDITIONS)

# The tests of waiting and transport on uvloop, and with tasks that start eagerly (Python 3.12).
loops: .venv-$(NEWEST)/ready-test
	$(BIN)/python -X dev -m pytest --numprocesses 4 --loop uvloop $(ON_LOOPS)
	$(BIN)/python -X dev -m pytest --numprocesses 4 --loop eager $(ON_LOOPS)

# Every method against the description that the platform publishes, served on loopback.
contract: .venv-$(NEWEST)/ready-contract $(NODE_READY)
	$(BIN)/python -X dev -m pytest -m contract --timeout 120 tests/contract

# Writes docs/endpoints.md anew.
endpoints: .venv-$(NEWEST)/ready-contract $(NODE_READY)
	$(BIN)/python -m tests.contract.endpoints

check: .venv-$(NEWEST)/ready-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: .venv-$(NEWEST)/ready-check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Builds the site of the documentation in site/; fails at a broken link.
docs: .venv-$(NEWEST)/ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What takes many processes: suites of the plugin's users, examples, workers that die.
scale: .venv-$(NEWEST)/ready-test
	$(BIN)/python -X dev -m pytest -m scale

# 50 clients for a minute, with kill -9 and restart in the middle; a fleet killed 40 times more.
soak: .venv-$(NEWEST)/ready-test
	$(BIN)/python -m tests.local.soak
	$(BIN)/python -X dev -m pytest -m soak

# 10,000 faults with each of three seeds, and what the callers got.
faults: .venv-$(NEWEST)/ready-test
	$(BIN)/python -m tests.faults.campaign

# Looks for inputs that break the wire format or the models; goes on where the last run ended.
fuzz: .venv-$(NEWEST)/ready-fuzz
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

# What it costs beside what others take: writes docs/benchmarks.json, the table and the picture.
bench: .venv-$(NEWEST)/ready-bench $(SDK_READY)
	$(WITH_NODE) $(BIN)/python -m benchmarks

# The same with fewer runs, in about a minute; writes nothing.
bench-quick: .venv-$(NEWEST)/ready-bench $(SDK_READY)
	$(WITH_NODE) $(BIN)/python -m benchmarks --quick

# Looks for changes to the code that no test notices; goes on where the last run ended.
# MUTANTS='neonctl_async.waiting.cadence*' picks some.
mutants: .venv-$(NEWEST)/ready-mutation
	$(BIN)/mutmut run $(MUTANTS)
	$(BIN)/mutmut results | sed "/not checked/d"

# Wheel and sdist into dist/, always the same from the same tree, and the tests of both.
dist: .venv-$(NEWEST)/ready-check
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -X dev -m pytest -m release --timeout 120 tests/release

clean:
	rm -rf site dist .venv-* .bench .contract .coverage .fuzz mutants .hypothesis .mypy_cache .ruff_cache .import_linter_cache

# An environment is made anew whenever what it installs changes. Groups need pip 25.1 or later.
.venv-%/ready-test: pyproject.toml
	$$($(PYTHON) tools/pythons.py $*) -m venv --clear --upgrade-deps .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group test
	touch $@

define GROUP
.venv-%/ready-$(1): .venv-%/ready-test
	.venv-$$*/bin/python -m pip install --quiet --disable-pip-version-check --group $(1)
	touch $$@

endef
$(foreach group,check docs contract bench fuzz mutation,$(eval $(call GROUP,$(group))))

$(NODE_READY): | .venv-$(NEWEST)/ready-contract
	rm -rf .contract
	mkdir .contract
	PATH="$(CURDIR)/$(BIN):$$PATH" npm install --silent --no-save --no-package-lock --no-audit \
		--no-fund --prefix .contract $(PACKAGES)
	touch $@

$(SDK_READY): | .venv-$(NEWEST)/ready-bench
	rm -rf .bench
	mkdir .bench
	$(WITH_NODE) npm install --silent --no-save --no-package-lock --no-audit --no-fund \
		--prefix .bench @neon/sdk@$(SDK)
	touch $@
