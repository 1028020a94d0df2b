# Everything a contributor types. `make help` lists it.
GO ?= go
LINT = $(GO) tool -modfile=tools/golangci-lint/go.mod golangci-lint
# Packages whose tests start goroutines that share state.
RACE = ./lease/... ./allocation ./allocation/memory ./agent/... ./regionstore ./regionstore/memory ./internal/app/...

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: dev
dev: ## everything in one process, embedded, until interrupted
	$(GO) run ./cmd/allocator dev

.PHONY: servers
servers: ## install Postgres and Redis where they are missing
	@scripts/install-test-servers.sh

.PHONY: test
test: servers ## all tests, on real Postgres and Redis that they start
	$(GO) test -count=1 -timeout 20m ./...
	$(GO) test -count=1 -timeout 20m -tags mutants -run Mutant ./allocation/... ./agent ./regionstore/... ./sim/explore
	$(GO) test -count=1 -timeout 20m -tags mutants -run Mutant ./sim/proof -trials 1

.PHONY: hunt
hunt: ## how many random runs of the simulator each mutant survives (some minutes)
	$(GO) test -count=1 -timeout 20m -v -tags mutants -run Mutant ./sim/proof

.PHONY: test-race
test-race: servers ## the concurrent packages under the race detector, which needs a C compiler
	$(GO) test -count=1 -timeout 20m -race $(RACE)

.PHONY: acceptance
acceptance: servers ## 60 s of shifting load on real servers, with an agent killed and an allocator restarted
	$(GO) test -count=1 -v -tags acceptance -run TestAcceptance ./internal/acceptance

.PHONY: test-browser
test-browser: ## open a simulation's report in headless Chromium, which it installs
	scripts/test-browser.sh

.PHONY: gallery
gallery: ## play every scenario of the gallery with all its seeds (takes a while)
	$(GO) run ./cmd/allocator simulate sim/scenarios/*.yaml

.PHONY: soak
soak: ## random deployments against their bounds for TIME (default 10m), from SEED on
	$(GO) test -count=1 -timeout 0 ./sim/proof -run TestSoak -soak $(or $(TIME),10m) -from $(or $(SEED),$(shell date +%s))

.PHONY: explore
explore: ## every interleaving of small deployments, larger ones than in the tests, for TIME (default 10m)
	$(GO) run ./sim/explore/cmd -time $(or $(TIME),10m)

.PHONY: fuzz
fuzz: servers ## fuzz each target for FUZZTIME (default 30s)
	@scripts/fuzz.sh $(or $(FUZZTIME),30s)

.PHONY: bench
bench: servers ## measure speed and cost beside their yardsticks, into BENCHMARKS.md (takes minutes; BENCH picks by name)
	$(GO) test -count=1 -timeout 60m -run '^$$' -bench '$(or $(BENCH),.)' -benchtime 1x ./internal/bench -md $(if $(BENCH),'',$(CURDIR)/BENCHMARKS.md)

.PHONY: vet
vet: ## go vet, with and without the mutants and the acceptance test
	$(GO) vet ./...
	$(GO) vet -tags mutants ./...
	$(GO) vet -tags acceptance ./internal/acceptance

.PHONY: fmt
fmt: ## format all Go code
	$(LINT) fmt ./...

.PHONY: lint
lint: ## format check and linters
	$(LINT) fmt --diff ./...
	$(LINT) run ./...

.PHONY: generate
generate: ## make the generated code from the .proto files
	tools/generate.sh

.PHONY: verify
verify: ## check that generated code and go.mod are current
	tools/verify-generated.sh
	$(GO) mod tidy -diff
	$(GO) mod verify
