# Turngate: `make up` starts it, `make test` runs every test; `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := libs/contracts libs/standin services/agent-runner services/policy services/tools-shop services/approvals services/gateway evaluation libs/turngate
STAMP := $(VENV)/.setup
ifeq ($(origin PYTHON),command line)
# Asked for by name, as in `make test PYTHON=python3.13`: a .venv of another version is made anew.
STAMP := $(VENV)/.setup-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
endif
UV_VERSION := $(shell sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements.lock)

.DEFAULT_GOAL := help
.PHONY: help setup up down demo evaluate bench check format test lock docs attack chaos clean

help: ## list these verbs
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: $(STAMP) ## make .venv with everything in it, `turngate` in .venv/bin

$(STAMP): requirements.lock $(addsuffix /pyproject.toml,$(PACKAGES))
	@test -x $(BIN)/python $(if $(findstring .setup-,$@),-a -e $@) || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"
	@$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation $(addprefix -e ,$(PACKAGES))
	@touch $@

up: setup ## start the system on this machine; Ctrl-C stops it
	@$(BIN)/turngate up

down: setup ## stop a system that was started with --detach
	@$(BIN)/turngate down

demo: setup ## tell the story of TCK-2004 in the terminal, step by step
	@$(BIN)/turngate demo

evaluate: setup ## run the labelled tickets with the stand-in and print the figures
	@$(BIN)/turngate evaluate

bench: setup ## measure turns a second, overhead, CPU and bytes a turn
	@$(BIN)/turngate bench

check: setup ## format, lint, types, walls
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup ## rewrite the code in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

test: setup ## run every test (`slow` ones: make test ARGS="-m slow")
	@$(BIN)/pytest $(or $(ARGS),-m "not slow")

lock: setup ## resolve the dependencies anew and write requirements.lock
	@$(BIN)/uv lock --upgrade
	@$(BIN)/uv export --quiet --no-emit-workspace --all-groups --all-packages --no-emit-index-url --no-annotate --no-header --output-file requirements.lock

docs: setup ## write the pages that are made from the code
	@$(BIN)/python -m contracts.catalogue > docs/events.md
	@$(BIN)/python -m gateway.authority > docs/authority.md
	@$(BIN)/python -m turngate.broker > deploy/nats.conf

attack: setup ## attack a system with each service's credentials; write the table of docs/threat-model.md
	@$(BIN)/python -m tests.attack

chaos: setup ## kill at random under load for MINUTES=10; compare log, shop and scenarios
	@$(BIN)/python -m tests.chaos --minutes $(or $(MINUTES),10)

clean: ## remove .venv and the local system's data
	rm -rf $(VENV) .turngate
