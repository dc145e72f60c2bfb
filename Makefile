# The commands a person types. Each says what it does as it does it.
NODES ?= 2
SYSTEM ?= a100-ubuntu2204
BIN := .venv/bin
SHELL := bash
.SHELLFLAGS := -o pipefail -c
export PATH := $(CURDIR)/$(BIN):$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg

.PHONY: help bootstrap demo demo-down reference gpu quick test test-code test-hosts test-all mutants bench tables requirements docs build changelog release clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

bootstrap: ## Install what demo needs (system packages when root, Python tools in .venv)
	@.ci/bootstrap demo

demo: bootstrap ## Hosts on this machine, from bare to trained: plan, site, verify, train, report (NODES=2)
	@$(BIN)/python -m tests.lab demo --nodes $(NODES)

reference: bootstrap ## The same for a system of inventories/, on hosts that answer like it (SYSTEM=a100-el8, SYSTEM="a100-el8 --slurm")
	@$(BIN)/nox --session reference -- $(SYSTEM) --keep

demo-down: ## Remove the demo: hosts, network, images, keys, reports; downloads stay in .cache (make clean)
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m tests.lab purge && echo "The demo is removed."; fi

gpu: ## Accept this machine's GPUs as they are: plan, health, verify, benchmark, report; installs nothing (ENV=<prefix with PyTorch>)
	@[ -x $(BIN)/ansible-playbook ] || { echo "make gpu needs Ansible in .venv: python3 -m venv .venv && .venv/bin/pip install -r requirements.txt" >&2; exit 1; }
	@$(BIN)/python -m tools.gpu "$(ENV)" $(GPU_ARGS)

quick: bootstrap ## Linters and the quick unit tests: before a pull request
	@$(BIN)/nox --session lint quick

test: ## Lint, unit tests, sanity, Molecule, scenarios on hosts: what CI runs
	@.ci/bootstrap test
	@rm -rf tests/output && mkdir -p tests/output
	@$(MAKE) --no-print-directory --jobs 2 --keep-going test-code test-hosts

# The two lanes of test. Each line says whose it is, as they run side by side.
test-code test-hosts: test-%:
	@mkdir -p tests/output
	@$(BIN)/nox --tags $* --report tests/output/nox-$*.json 2>&1 | tee tests/output/$*.log | sed --unbuffered 's/^/$* | /'

test-all: ## test, the long scenarios, and which published releases the tables lack
	@.ci/bootstrap test-all
	@rm -rf tests/output && mkdir -p tests/output
	@$(BIN)/nox -t all --report tests/output/nox.json

mutants: ## Change the pure core in one place at a time: at least 90 % must be noticed (SUBJECTS="topology drift/kernels"; hours for all)
	@.ci/bootstrap test
	@$(BIN)/python -m tools.mutants $(SUBJECTS)

bench: bootstrap ## What runs cost: without a change, beside the floor; the first, beside the same typed by hand; each further node
	@$(BIN)/python -m tests.bench --nodes $(NODES)

tables: bootstrap ## Bring the compatibility tables up to date with the package index, and tell what changed
	@$(BIN)/python -m tools.tables
	@$(BIN)/python -m tools.table_version
	@$(BIN)/python -m tools.docs

requirements: bootstrap ## Resolve requirements*.in again (hashes for every wheel)
	set -e; for names in requirements*.in; do \
	  uv pip compile -q --upgrade --no-annotate --universal --generate-hashes --python-version 3.11 "$$names" -o "$${names%.in}.txt"; \
	done

docs: ## The documentation site, in .cache/site/html; looks at it in a browser
	@.ci/bootstrap test
	@$(BIN)/nox --session docs
	@echo "The site: .cache/site/html/index.html"

build: ## The collection archive, in dist/
	@.ci/bootstrap build
	@$(BIN)/nox --session build

changelog: ## Turn the fragments of the changelog into the release notes of galaxy.yml's version, in CHANGELOG.rst
	@.ci/bootstrap test
	@antsibull-changelog release --reload-plugins

release: ## The archive of the tagged commit with checksums, SBOM, provenance, signatures (KEY=<GnuPG key>, DRY_RUN=1 rehearses)
	@.ci/bootstrap test
	@$(BIN)/python -m tools.release $(if $(filter-out 0,$(DRY_RUN)),--dry-run) --key "$(KEY)" --builder "$(BUILDER)"

clean: demo-down ## Remove everything that make made
	rm -rf .cache .venv .nox .ansible dist tests/output .pytest_cache .ruff_cache .hypothesis
