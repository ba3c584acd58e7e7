# Everything that is done with this repository. `make` alone lists it.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first Python that is new enough; `make PYTHON=/path/to/python3` chooses another.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
CARGO ?= cargo

VENV := .venv
BIN := $(VENV)/bin
ENGINE := $(BIN)/testdrive-engine
BUILT_ENGINE := $(or $(CARGO_TARGET_DIR),target)/release/testdrive-engine
STATIC_TRIPLE := $(shell uname -m)-unknown-linux-gnu
STATIC_DIRECTORY := $(or $(CARGO_TARGET_DIR),target)/static
STATIC_ENGINE := $(STATIC_DIRECTORY)/$(STATIC_TRIPLE)/release/testdrive-engine
INSTALLED := $(VENV)/.installed
# Two tests at a time, whatever the machine: more would disturb those that keep to a clock.
IN_PARALLEL := --numprocesses 2 --dist worksteal
RUST_SOURCES := $(shell find engine -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

.PHONY: help
help: ## list what there is
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16 | sed 's/^/  make /'

.PHONY: install
install: $(INSTALLED) $(ENGINE) ## leave the command at .venv/bin/testdrive
	@echo "installed: $(BIN)/testdrive"

.PHONY: demo
demo: install ## a real workload on five drives, side by side: no hardware, no privileges
	$(BIN)/testdrive demo

.PHONY: test
test: install ## every test of both planes
	$(CARGO) test --workspace --locked
	$(BIN)/pytest $(IN_PARALLEL)

.PHONY: check
check: install ## format, lint, types and the fast tests
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(CARGO) test --workspace --locked --quiet --lib
	$(BIN)/pytest $(IN_PARALLEL) --quiet -m "not slow" --ignore tests/python/browser

.PHONY: fuzz
fuzz: toolchain ## try every decoder with bytes of all kinds, for FUZZ_SECONDS each (20)
	fuzz/run

.PHONY: bench
bench: install ## measure testdrive itself, with fio beside it
	$(BIN)/python -m benchmarks

.PHONY: validate-model
validate-model: install ## hold the modelled drive to its closed forms, and draw docs/modelled-drive.md's plots again
	$(BIN)/python -m validation --write-docs

.PHONY: vm-test
vm-test: install ## what needs a real NVMe drive: cases in an emulated Linux guest (needs QEMU)
	$(CARGO) test --no-run --locked --package testdrive-drives --test conformance
	conformance=$$($(CARGO) test --no-run --locked --package testdrive-drives --test conformance 2>&1 \
		| sed -n 's/.*conformance.rs (\(.*\))$$/\1/p') && test -n "$$conformance" && \
	$(BIN)/python tests/vm/run.py --engine $(ENGINE) --conformance "$$conformance" \
		--directory $(or $(CARGO_TARGET_DIR),target)/vm

.PHONY: engine-static
engine-static: $(STATIC_ENGINE) ## one engine without any library, to copy to a production host and capture there
	@echo "$(STATIC_ENGINE): $$(stat --format %s $(STATIC_ENGINE)) bytes"

.PHONY: format
format: install ## format the sources of both planes
	$(CARGO) fmt --all
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: clean
clean: ## remove what was built and the demo's output
	rm -rf $(VENV) target build dist *.egg-info demo-out bench-out validation-out .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The package, its dependencies and a first engine. A change of the Python sources needs no new install.
$(INSTALLED): pyproject.toml | toolchain
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# An editable install does not follow the Rust sources, so that the engine is brought up to date here. Cargo is asked
# only when a source is newer, and builds into the same directory as the install did: nothing is compiled twice.
$(ENGINE): $(RUST_SOURCES) | $(INSTALLED) toolchain
	$(CARGO) build --release --locked --package testdrive-engine --bin testdrive-engine
	install -m 755 $(BUILT_ENGINE) $@

# A target of its own keeps the flag from the programs that run during the build; a directory of its own keeps two builds from
# undoing each other. Symbols stay behind, since the file travels. What is linked to a library after all is no static engine.
$(STATIC_ENGINE): $(RUST_SOURCES) | toolchain
	RUSTFLAGS="-C target-feature=+crt-static" CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_DEBUG=false \
		$(CARGO) build --release --locked --package testdrive-engine --bin testdrive-engine \
		--target $(STATIC_TRIPLE) --target-dir $(STATIC_DIRECTORY)
	@if readelf --wide --program-headers --dynamic $@ | grep -E 'INTERP|NEEDED'; then \
		echo "error: $@ needs a library" >&2; exit 1; fi
	@$@ --version
	@touch $@

.PHONY: toolchain
toolchain:
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer was found;" \
		"install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "error: $(PYTHON) cannot make virtual environments;" \
		"install the package python3-venv" >&2; exit 1; }
	@command -v $(CARGO) >/dev/null || { echo "error: cargo was not found, and the engine is written in Rust;" \
		"install a Rust toolchain (1.87 or newer), for instance with rustup" >&2; exit 1; }
