# P is how many packages are tested at once. Each brings its own servers and its own clocks: more at once than
# cores, and a timing test measures its neighbours.
P       ?= 1
GO      ?= go
TIMEOUT ?= 14m
LINT     = v2.12.0

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: services ## Run every test with the race detector, on real servers, with reduced counts
	@$(GO) list -race -test -deps -export ./... >/dev/null # compile on all cores: -p below is also that of the compiler
	$(GO) test -race -p $(P) -timeout $(TIMEOUT) ./...

.PHONY: soak
soak: services ## Run the same tests with full counts (about an hour)
	PAWL_SOAK=1 $(GO) test -race -p $(P) -timeout 3h -count=1 ./...

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME (default 30s)
	@.ci/fuzz $(or $(FUZZTIME),30s)

.PHONY: bench
bench: services ## Run the benchmarks, BENCH=regexp chooses
	$(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -p 1 ./...

.PHONY: lint
lint: ## Run golangci-lint, the one on the PATH when its version fits
	@if golangci-lint version 2>/dev/null | grep -qF 'version $(LINT:v%=%)'; then golangci-lint run ./...; \
	else $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT) run ./...; fi

.PHONY: readme
readme: ## Render the examples that README.md shows, and compile it
	$(GO) test -count=1 -run '^TestReadme' ./internal/archtest -update

.PHONY: api
api: ## Accept the exported API and the linked modules of each package as they are now
	$(GO) test -count=1 -run '^Test(API|Modules)' ./internal/archtest -update
	git --no-pager diff --stat -- internal/archtest/testdata

.PHONY: services
services: ## Install the servers that tests need and that are missing (Debian, as root)
	@.ci/services
