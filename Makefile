# Every target sets up what it needs: a virtual environment in .venv, and for the tests a control plane in the cache.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
SOURCES := pp_hostd tests

# Tests keep their bytecode in the virtual environment, even where the shell says to write none: hundreds of modules would be
# compiled again in every run, and in every program that a test starts.
test quick suite: export PYTHONDONTWRITEBYTECODE :=
test quick suite: export PYTHONPYCACHEPREFIX := $(abspath $(VENV))/pycache

.DEFAULT_GOAL := help
.PHONY: help test quick suite suite-oldest lint demo demo-picture playground bench scale fuzz model campaign docs controlplane rpm test-packages test-machines test-bmc test-fencing test-page test-metrics test-cluster-api ignition clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@echo "setting up $(VENV) (a virtual environment with the developers' packages; about a minute, once)" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --use-pep517 --editable '.[dev]'
	@touch $@

test: lint suite ## the linters and the whole suite, on the embedded API and on a real control plane (no root)
	@echo "make test: all passed. Not part of it: make bench (locks memory: root, or a high ulimit -l), and the suite"
	@echo "under the oldest Python: make suite-oldest"

quick: lint ## the linters, and every test that starts no other program and plays no bad days (about a minute)
	$(BIN)/pytest --quick -n 3 --dist=worksteal $(ARGS)

suite: $(STAMP) ## the suite without the linters; PYTHON= and VENV= choose another Python, ARGS= goes to pytest
	@$(BIN)/python -m tests.suite $(ARGS)

suite-oldest: controlplane ## the suite under Debian 11's Python 3.9, with the oldest libraries allowed (root; gets its tools by apt)
	@$(BIN)/python -m tests.machines.oldest $(ARGS)

test-machines: controlplane ## emulated machines with real watchdogs, as root, on two idle cores; ARGS="-k ... -n 0" for some
	@$(BIN)/python -m tests.machines.prepare
	$(BIN)/pytest tests/machines -o python_files='case_*.py' -o timeout=1500 -n 3 --dist=loadgroup -rP --durations=0 $(ARGS)

lint: $(STAMP) $(VENV)/.oldest ## the quick part: ruff, mypy --strict, vermin, import contracts, plain words and commit messages
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.lint_words

# Slow, and of each file by itself: only of those that have changed since all were right.
$(VENV)/.oldest: $(STAMP) $(shell find $(SOURCES) -name '*.py')
	@echo "vermin: whether Python 3.9 runs what has changed ($(words $(filter %.py,$?)) files)"
	@$(BIN)/vermin --quiet --target=3.9- --violations --no-tips --eval-annotations $(filter %.py,$?)
	@touch $@

controlplane: $(STAMP) ## build etcd, kube-apiserver and so on into the cache (about 8 minutes, once)
	@$(BIN)/python -m tests.harness.build controlplane
	@$(BIN)/python -m tests.harness.published

demo: $(STAMP) ## show the main job on the embedded API, in a minute (more on a busy machine); ARGS=-v for every message, ARGS=--json
	@$(BIN)/python -m tests.demo $(ARGS)

playground: $(STAMP) ## the demo's cluster for you to break, with a KUBECONFIG: on a real control plane if one is built; ARGS=--embedded
	@$(BIN)/python -m tests.demo.playground $(ARGS)

demo-picture: $(STAMP) ## run the demo in a terminal, and draw its last screen as docs/images/demo.svg
	@$(BIN)/python -m tests.demo.picture docs/images/demo.svg

bench: controlplane .venv-campaign/.ready ## print every figure beside its target; ONLY=name for one
	@$(BIN)/python -m tests.bench $(ONLY)

scale: $(STAMP) ## how traffic grows up to 5,000 nodes: tables, and docs/scale.svg (about 6 minutes); ARGS=--json
	@$(BIN)/python -m tests.bench.scale --plot docs/scale.svg $(ARGS)

fuzz: $(STAMP) ## a million hostile inputs for the peer port (about 4 minutes); INPUTS= for another number
	$(BIN)/python -m tests.fuzz.peer_port --inputs $(or $(INPUTS),1000000)

model: $(STAMP) ## check the formal model of the rules (up to 13 minutes; needs spin and gcc)
	@$(BIN)/python docs/model/check

campaign: .venv-campaign/.ready ## play bad days that add up, over runs, in build/campaign.json; SCHEDULES= more (200000: hours)
	@mkdir -p build
	@.venv-campaign/bin/pp-hostd simulate --schedules $(or $(SCHEDULES),200000) --resume build/campaign.json

# PyPy, where the machine has it, plays more than twice as many in the same time.
.venv-campaign/.ready: pyproject.toml
	@echo "setting up .venv-campaign (a virtual environment with what the daemons need)" >&2
	@$$(command -v pypy3 || echo $(PYTHON)) -m venv .venv-campaign
	@.venv-campaign/bin/pip install --quiet --disable-pip-version-check --use-pep517 --editable .
	@touch $@

docs: $(STAMP) ## write etc/pp-hostd.toml and docs/settings.md from the table of settings, and draw the pictures of docs/images
	@$(BIN)/python -m pp_hostd.reference
	@$(BIN)/python -m tests.pictures

rpm: ## build the packages into build/rpms; BUNDLED=1 with the libraries inside, RELEASE= for another release than 1
	@BUNDLED=$(BUNDLED) RELEASE=$(RELEASE) packaging/make-rpm

test-packages: $(STAMP) ## install the packages in containers, and all that may happen to them there (root; gets its tools by apt)
	@$(BIN)/python -m tests.packaging.root
	@packaging/make-rpm
	@BUNDLED=1 packaging/make-rpm
	@BUNDLED=1 RELEASE=2 packaging/make-rpm
	$(BIN)/pytest tests/packaging $(ARGS)

test-bmc: controlplane ## power cycles by IPMI, with an operator and a host that is really switched off (gets its tools by apt: root)
	@$(BIN)/python -m tests.bmc.tools
	$(BIN)/pytest tests/bmc -o python_files='case_*.py' -n 4 --dist=loadgroup $(ARGS)

test-fencing: controlplane ## node fences from end to end: packaged fence agents, BMCs that speak IPMI and Redfish, Jobs (gets its tools by apt: root)
	@$(BIN)/python -m tests.fencing.tools
	$(BIN)/pytest tests/fencing -o python_files='case_*.py' -n 3 --dist=worksteal $(ARGS)

test-page: controlplane ## the leader's page in a real Chromium (gets it by apt: root); ARGS=--pictures=docs/images for the docs' pictures
	@$(BIN)/python -m tests.page.tools
	$(BIN)/pytest tests/page -o python_files='case_*.py' -n 2 --dist=loadscope $(ARGS)

test-metrics: $(STAMP) ## figures, alerts and the dashboard on Debian's Prometheus, which scrapes real daemons (gets its tools by apt: root)
	@$(BIN)/python -m tests.metrics.tools
	$(BIN)/pytest tests/metrics -o python_files='case_*.py' -n 2 --dist=loadfile $(ARGS)

test-cluster-api: controlplane ## sick hosts that the real manager of Cluster API has remedied, and our health checks beside its own (builds it: about 5 minutes, once)
	@$(BIN)/python -m tests.harness.build clusterapi
	$(BIN)/pytest tests/scenarios -o python_files='case_*.py' $(ARGS)

ignition: $(STAMP) ## write packaging/ignition/pp-hostd.ign from its Butane source (builds the translator with Go, once)
	@$(BIN)/python -m tests.packaging.ignition

clean: ## remove the virtual environment and the tools' caches (the built control plane stays in its cache)
	rm -rf .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
