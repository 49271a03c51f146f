# Mainstem's commands. `make help` lists them.
#
# Nothing but make, git and network is needed: .ci/go finds Go, or fetches it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO       := $(CURDIR)/.ci/go
LINT     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 30s
BENCHTIME ?= 500ms
ROUNDS   ?= 100
SEEDS    ?= 500
IMAGE    ?= mainstem

# The binary needs no C library; only the race detector needs a C compiler.
export CGO_ENABLED ?= 0

.PHONY: build
build: ## build bin/mainstem
	@$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/mainstem ./cmd/mainstem

.PHONY: run
run: build ## start a broker on 127.0.0.1:9092, data in ./mainstem-data
	@exec bin/mainstem

.PHONY: test
test: build ## all tests of both modules, Go clients only
	@failed=; \
	echo "== Mainstem"; $(GO) test ./... || failed=1; \
	echo "== compat-tests"; MAINSTEM_BIN=$(CURDIR)/bin/mainstem $(GO) -C compat-tests test ./... || failed=1; \
	[ -z "$$failed" ] || { echo "test: something failed, see above" >&2; exit 1; }

.PHONY: check
check: ## vet, lint, structure, tidiness, other platforms
	@echo "== vet"
	@$(GO) vet ./...
	@$(GO) -C compat-tests vet ./...
	@echo "== lint"
	@$(GO) run $(LINT) run ./...
	@echo "== structure"
	@$(GO) test -count=1 -run '^TestHouse' ./cmd/mainstem
	@echo "== tidy"
	@$(GO) mod tidy -diff
	@$(GO) -C compat-tests mod tidy -diff
	@echo "== darwin/arm64"
	@GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/mainstem
	@echo "== linux/arm64"
	@GOOS=linux GOARCH=arm64 $(GO) build -o /dev/null ./cmd/mainstem
	@echo "check: all well"

.PHONY: fmt
fmt: ## format as check wants it
	@$(GO) run $(LINT) fmt ./...

.PHONY: race
race: ## all tests, and the broker that they start, under the race detector (needs a C compiler)
	@command -v gcc >/dev/null || command -v cc >/dev/null || \
	  { echo "The race detector needs a C compiler. Type: sudo apt-get install -y gcc libc6-dev" >&2; exit 1; }
	@export CGO_ENABLED=1 GORACE=halt_on_error=1; failed=; \
	echo "== Mainstem"; $(GO) test -race -timeout 30m ./... || failed=1; \
	$(GO) build -race -o bin/mainstem-race ./cmd/mainstem; \
	echo "== compat-tests"; MAINSTEM_BIN=$(CURDIR)/bin/mainstem-race $(GO) -C compat-tests test -race -timeout 60m ./... || failed=1; \
	[ -z "$$failed" ] || { echo "race: something failed, see above" >&2; exit 1; }

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (30s, or 20000x inputs) each
	@.ci/fuzz $(FUZZTIME)

.PHONY: crash
crash: build ## ROUNDS (100) of kill -9, power loss over SEEDS (500), write order of the binary
	@MAINSTEM_BIN=$(CURDIR)/bin/mainstem compat-tests/crash -rounds $(ROUNDS) -seeds $(SEEDS)

.PHONY: bench
bench: build ## benchmarks of the packages, BENCHTIME (500ms) each, then of the binary
	@failed=; \
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./... || failed=1; \
	MAINSTEM_BIN=$(CURDIR)/bin/mainstem compat-tests/bench/run || failed=1; \
	[ -z "$$failed" ] || { echo "bench: something failed, see above" >&2; exit 1; }

.PHONY: bench-peer
bench-peer: build ## Apache Kafka and Mainstem side by side, half an hour (fetches Kafka)
	@MAINSTEM_BIN=$(CURDIR)/bin/mainstem compat-tests/bench/peer

.PHONY: compat
compat: build ## clients in other languages and recorded exchanges (installs what it needs)
	@MAINSTEM_BIN=$(CURDIR)/bin/mainstem compat-tests/compat full

.PHONY: image
image: ## container image IMAGE (mainstem), by docker or podman
	@if docker version >/dev/null 2>&1; then tool=docker; elif command -v podman >/dev/null; then tool=podman; \
	else echo "No Docker answers. Type: sudo apt-get install -y docker.io (or podman)" >&2; exit 1; fi; \
	BUILDAH_FORMAT=docker $$tool build --build-arg VERSION=$(VERSION) -t $(IMAGE) -f cmd/mainstem/dist/Dockerfile .

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile
