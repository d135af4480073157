# Two commands: `make run` serves Tenure, `make test` proves it. Each works from a fresh clone, alone.
# PYTHON=… chooses the interpreter; otherwise the first here that is new enough is taken.
NEW_ENOUGH = -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo yes
PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3 python,$(if $(shell $(name) $(NEW_ENOUGH)),$(name))))
IN = .venv/bin
# Files of tests lie in memory where the machine has room: tests kill processes, not disks, so a sync to a disk proves nothing more.
IN_MEMORY = $(shell test -w /dev/shm && df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print "TMPDIR=/dev/shm"}')
# One worker more than there are cores: for a third of the time a test waits for a server, a deadline or a browser. With
# two more, tests that wait for a moment of their own missed it.
PYTEST = $(IN_MEMORY) $(IN)/pytest -n $(or $(WORKERS),$(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1))))
QUICK = tests/kernel tests/service tests/wire tests/house/test_layout.py tests/house/test_names.py tests/contract

# Where the surroundings forbid it, every one of the hundreds of processes that tests start would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# Where tests failed (exit code 1), the few that the load may explain run once more, alone, and are named.
SECOND_LOOK = || { test $$? = 1 && $(IN_MEMORY) $(IN)/python -m tests.infrastructure.second_look; }

# The checks need one core for a minute, which the tests need to be collected: they run beside, and their report comes last.
CHECKS_BESIDE = $(MAKE) --no-print-directory check >.venv/checks 2>&1 & checks=$$!;
AND_CHECKS = && tests=0 || tests=$$?; wait $$checks && sound=0 || sound=$$?; cat .venv/checks; exit $$((tests + sound))

.PHONY: run tour test quick proof check lint bench soak kube kube-servers kube-programs setup clean

run: .venv/.installed  ## the server on tenure.db, which commands in this folder use, too; DEMO=1: on demo.db, with a company in it
	@$(if $(DEMO),$(IN)/python examples/demo_company/demo_company.py sqlite:///demo.db)
	@exec $(IN)/tenure serve $(if $(DEMO),--store sqlite:///demo.db) $(ARGS)

tour: .venv/.installed  ## a guided tour of the library's first page
	@$(IN)/python examples/first_page/tour.py

test: .venv/.ready kube-servers  ## the checks, and every promise once
	@$(CHECKS_BESIDE) $(PYTEST) $(SECOND_LOOK) $(AND_CHECKS)

quick: lint  ## for people who edit: under a minute, no server is started
	TENURE_STORES=memory $(PYTEST) $(QUICK)

proof: .venv/.ready kube-programs  ## everything on every store, in every mode, with full budgets
	@$(CHECKS_BESIDE) TENURE_PROOF=1 $(PYTEST) --timeout 900 -o faulthandler_timeout=1000 $(AND_CHECKS)

check: lint  ## format, lint, types, import contracts, generated code
	$(IN)/mypy

lint: .venv/.ready
	$(IN)/ruff check .
	$(IN)/ruff format --check .
	$(IN)/lint-imports
	$(IN)/python tools/make_blocking.py --check
	$(IN)/python tools/make_cli_reference.py --check
	$(IN)/python tools/make_openapi.py --check
	$(IN)/python tools/make_helm_chart.py --check

bench: .venv/.bench kube-programs  ## the engine against the raw limits of its stores, in one run; ARGS="--claims 2000"
	$(IN)/python -m bench $(ARGS)

soak: kube-servers  ## twenty rounds of kill and restart under load
	$(IN)/python -m tests.soak

kube: kube-servers  ## a Kubernetes API server on loopback to play with, until Ctrl-C
	@exec $(IN)/python -m tests.infrastructure.kube

.venv/.bench: .venv/.ready
	@sh tools/install_packages.sh bench
	@touch $@

# Each time, since a cache may be gone or a version new; it is quick when all is there.
kube-servers: .venv/.ready
	@$(IN)/python tools/build_kube.py etcd kube-apiserver seed-manager >/dev/null || echo "tests that need Kubernetes will FAIL" >&2

# What `make test` does without: the controller manager, kubectl, clusterctl, helm, and the managers that people run today.
kube-programs: .venv/.ready
	@$(IN)/python tools/build_kube.py all >/dev/null || echo "tests that need these programs will FAIL" >&2

setup: .venv/.ready kube-servers

.venv/.installed: pyproject.toml constraints.txt
	@test "$$($(PYTHON) $(NEW_ENOUGH))" = yes || { echo "Tenure needs Python 3.11 or newer; found: $(or $(PYTHON),nothing). Name one: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "setting up .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv && sh tools/install_packages.sh rest,deployments
	@touch $@

.venv/.ready: .venv/.installed
	@echo "installing the tools and the servers that tests run on"
	@sh tools/install_servers.sh & servers=$$!; sh tools/install_packages.sh dev && wait $$servers
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
