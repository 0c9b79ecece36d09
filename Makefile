# Two commands do everything on a fresh machine with Python 3.11 or later: make demo, make test.

PYTHON ?= python3
PEERS_PYTHON ?= python3.13
VENV := .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
READY := $(VENV)/.ready
PACKAGE := .venv-package
LOCK := .venv-lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes --no-config --quiet \
	--custom-compile-command "make lock" --no-annotate -c constraints.txt --default-index https://pypi.org/simple
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: demo test test-all faults oldest browser check package lock sbom vulnerabilities docs serve-docs publish-docs benchmark evidence clean papers

demo: $(DEMO)
	@$(BIN)/dprime demo

# What a person runs before every commit; test-all runs the slow tests too.
test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow"

test-all: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadscope

# Ten thousand damaged and hostile files, and more than two hundred kills: about half an hour.
faults: $(READY)
	DPRIME_FUZZ=10000 $(BIN)/python -m pytest -q -s -p no:cacheprovider tests/faults -m "slow and not ray"
	$(BIN)/python -m benchmarks kills --out benchmarks/results.json

# The monitor with the oldest release of Opacus that it supports.
oldest: $(READY)
	$(BIN)/pip install --quiet --no-deps --upgrade --target $(VENV)/oldest opacus==1.5.4
	PYTHONPATH=$(VENV)/oldest $(BIN)/python -m pytest --quiet -p no:cacheprovider tests/monitor tests/canaries tests/attributes

# The explorer and a report in a real browser. Installs Chromium and a Java runtime (for the HTML
# checker) from Debian's packages where they are missing, and Playwright.
browser: $(READY)
	command -v chromium >/dev/null || ($(SUDO) apt-get update -qq && $(SUDO) apt-get install -qq -y --no-install-recommends chromium)
	command -v java >/dev/null || ($(SUDO) apt-get update -qq && $(SUDO) apt-get install -qq -y --no-install-recommends default-jre-headless)
	$(BIN)/pip install --quiet -c constraints.txt --group browser
	DPRIME_BROWSER=required $(BIN)/python -m pytest tests/browser

check: $(READY) docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python -m pytest --quiet tests/test_package.py -k changelog

# Hashes of what the base install and a release take, for all systems and Pythons, with the versions of constraints.txt.
lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet -c constraints.txt uv
	$(LOCK) pyproject.toml -o requirements.lock
	$(LOCK) --group pyproject.toml:package -o requirements-package.lock

# What the base install consists of, as CycloneDX: the wheel, what is locked, and nothing else.
sbom: $(PACKAGE)/.ready
	rm -rf .venv-sbom
	$(PACKAGE)/bin/python -m venv --without-pip .venv-sbom
	$(PACKAGE)/bin/python -m build --no-isolation --wheel --outdir .venv-sbom
	$(PACKAGE)/bin/pip --python .venv-sbom/bin/python install --quiet --require-hashes -r requirements.lock
	$(PACKAGE)/bin/pip --python .venv-sbom/bin/python install --quiet --no-deps .venv-sbom/*.whl
	$(PACKAGE)/bin/cyclonedx-py environment --output-reproducible -o dprime.cdx.json .venv-sbom/bin/python

# Known vulnerabilities of what is locked, from the service of the Python Packaging Authority.
vulnerabilities: $(PACKAGE)/.ready
	$(PACKAGE)/bin/pip-audit --strict --disable-pip -r requirements.lock -r requirements-package.lock

# Wheel and sdist in dist/, installed into a clean environment of every Python that is found.
package: $(PACKAGE)/.ready
	$(PACKAGE)/bin/python .ci/package.py $(TAG)

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

serve-docs: $(READY)
	$(BIN)/mkdocs serve

# The documents of this version, beside those of the others, on the branch gh-pages; PUSH=--push sends it.
publish-docs: $(READY)
	$(BIN)/pip install --quiet -c constraints.txt --group publish-docs
	PATH="$(CURDIR)/$(BIN):$$PATH" DOCS_VERSIONS=mike $(BIN)/mike deploy --update-aliases $(PUSH) "$$($(BIN)/python .ci/package.py --version)" latest
	$(BIN)/mike set-default $(PUSH) latest

evidence: $(READY)
	$(BIN)/python -m benchmarks tightness --out tests/evidence/truth.json

# The tables and figures of the papers, quick versions: make papers, or make paper-bernau and so on.
# DPRIME_DATA names the folder of the data; SIZE=--full DEVICE=cuda gives the papers' repetitions.
papers: $(READY)
	$(BIN)/python -m papers $(SIZE) --device $(or $(DEVICE),cpu)

paper-%: $(READY)
	$(BIN)/python -m papers $* $(SIZE) --device $(or $(DEVICE),cpu)

# Beside its peers, in one run; they need an environment of their own and Python 3.13.
benchmark: $(READY)
	$(PEERS_PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet -r benchmarks/requirements-peers.txt
	.venv-peers/bin/pip install --quiet --no-deps opake-dpsgd==0.16.1
	.venv-peers/bin/python -m benchmarks peers --out benchmarks/results.json
	$(BIN)/python -m benchmarks pages

# Two steps of one environment: the demo waits for the first alone, and for no file to be compiled that it does not load.
$(DEMO): pyproject.toml constraints.txt Makefile
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --no-compile -c constraints.txt -e ".[train]"
	@touch $(DEMO)

$(READY): $(DEMO)
	$(BIN)/pip install --quiet -c constraints.txt -e ".[train,opacus,ray,web]" --group test --group check --group docs
	@touch $(READY)

$(PACKAGE)/.ready: requirements-package.lock Makefile
	$(PYTHON) -m venv $(PACKAGE)
	$(PACKAGE)/bin/pip install --quiet --require-hashes -r requirements-package.lock
	@touch $(PACKAGE)/.ready

clean:
	rm -rf $(VENV) $(PACKAGE) .venv-lock .venv-sbom dprime.cdx.json dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
