# Two commands: `make run` serves Tenure, `make test` proves it. Each works from a fresh clone, alone.
# PYTHON=… chooses the interpreter; otherwise the first here that is new enough is taken.
NEW_ENOUGH = -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo yes
PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3 python,$(if $(shell $(name) $(NEW_ENOUGH)),$(name))))
PIP = PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt .venv/bin/python -m pip install -q --disable-pip-version-check
IN = .venv/bin

# Where the surroundings forbid it, every one of the hundreds of processes that tests start would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run tour test check bench soak setup clean

run: .venv/.installed  ## the server, with a ledger in the folder run; DEMO=1 fills it with a company first
	@mkdir -p run
	@$(if $(DEMO),$(IN)/python examples/demo_company/demo_company.py sqlite:///run/demo.db)
	@exec $(IN)/tenure serve --store sqlite:///run/$(if $(DEMO),demo,tenure).db $(ARGS)

tour: .venv/.installed  ## a guided tour of the library's first page
	@$(IN)/python examples/first_page/tour.py

test: check  ## everything: the checks, then every test
	$(IN)/pytest -n 2 --dist loadgroup

check: .venv/.ready  ## format, lint, types, import contracts, generated code
	$(IN)/ruff check .
	$(IN)/ruff format --check .
	$(IN)/mypy
	$(IN)/lint-imports
	$(IN)/python tools/make_blocking.py --check
	$(IN)/python tools/make_cli_reference.py --check
	$(IN)/python tools/make_openapi.py --check

bench: .venv/.ready  ## the engine against the raw limits of its stores, in one run
	$(IN)/python -m bench

soak: .venv/.ready  ## twenty rounds of kill and restart under load
	$(IN)/python -m tests.soak

setup: .venv/.ready

.venv/.installed: pyproject.toml constraints.txt
	@test "$$($(PYTHON) $(NEW_ENOUGH))" = yes || { echo "Tenure needs Python 3.11 or newer; found: $(or $(PYTHON),nothing). Name one: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "setting up .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv && $(PIP) -e '.[rest]'
	@touch $@

.venv/.ready: .venv/.installed
	@echo "installing the tools and the servers that tests run on"
	@$(PIP) -e '.[dev]'
	@sh tools/install_servers.sh
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
