# Capstan. `make` lists what there is.

SHELL       := /usr/bin/env bash -euo pipefail
CLUSTER     ?= embedded
REGISTRY    ?= registry.localhost:5000
ifndef VERSION
VERSION     := $(shell ./hack/version)
endif
NEXT        := $(VERSION).next
# The compiler's cache keeps a package once for each set of flags: tests, packages and the cluster's programs have the same. Tests that are
# run without make have what debuggers need.
GOFLAGS     += -buildvcs=false -trimpath -gcflags=all=-dwarf=false
CGO_ENABLED := 0
export GOFLAGS CGO_ENABLED

HACK        := go -C hack run
INSIDE      := ./hack/capstan-cluster exec --
LINT        := go tool -modfile=$(CURDIR)/hack/tools/golangci-lint/go.mod golangci-lint
EXAMPLES    := $(dir $(wildcard $(CURDIR)/examples/*/*/xr.yaml))
FUZZTIME    ?= 10m
# Algorithms of make scale.
N           ?= 100
TIMEOUT     ?= 20m
# What is tested with real servers. Members of a database have a run of their own at night: on a busy machine they prove nothing.
SERVERS     ?= ./console/... ./function/database/engine/mysql ./images/companion/... ./images/mysql ./plugin/... ./provider/... ./test/container ./test/outside/... ./test/policies/... ./test/provider/...

# What make test is made of, in this order.
TEST_PARTS  := check-generated check-compatible docs unit check-golden integration e2e

.PHONY: help demo test generate rights golden lint fmt render unit check-generated check-compatible check-golden integration e2e vulncheck docs bench \
  packages install cluster-up demo-down release e2e-release scale nightly test-parts

help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile

##@ The two that do everything
demo: ## A cluster, Capstan from packages, an Algorithm, a canary that passes and one that fails, a bucket, a model, a database that fails over (CLUSTER=existing REGISTRY=…: your cluster)
	@CLUSTER=$(CLUSTER) $(if $(filter existing,$(CLUSTER)),REGISTRY=$(REGISTRY)) VERSION=$(VERSION) ./hack/demo

test: $(TEST_PARTS) ## Everything that has to hold before a change lands

##@ While you work
generate: ## Write XRDs, CRDs, deep copies, the API reference and the recording rules from Go, and the tables of e2e tests and of rights
	$(HACK) ./generate
	go run ./provider/modelserver/rules
	$(HACK) ./tiers table
	$(HACK) ./rights table

rights: ## Record which rights the last e2e run used (WHOLE=true: all of e2e ran, so that what it did not use is not used)
	$(HACK) ./rights record $(if $(WHOLE),--whole) $(CURDIR)/_output/rights-seen
	$(HACK) ./rights table

golden: ## Rewrite the golden render of every example; read the diff like code
	$(HACK) ./render --update $(EXAMPLES)

lint: ## Lint both modules, the words of documents, comments and messages, and how files depend on one another
	$(LINT) run ./...
	cd hack && $(LINT) run --config=$(CURDIR)/.golangci.yml ./...
	$(HACK) ./prose
	$(HACK) ./house --check

fmt: ## Format both modules
	$(LINT) fmt ./...
	cd hack && $(LINT) fmt --config=$(CURDIR)/.golangci.yml ./...

render: ## What Crossplane would apply: XR=examples/algorithm/basic [OBSERVED=dir] [REQUIRED=dir] [STEADY=1: where a new one ends, in stages]
	@$(HACK) ./render $(abspath $(XR)) $(if $(OBSERVED),--observed=$(abspath $(OBSERVED))) $(if $(REQUIRED),--required=$(abspath $(REQUIRED))) $(if $(STEADY),--steady)

vulncheck: ## Fail when what a release ships reaches code with a known vulnerability
	./hack/vulncheck

docs: ## Build the site of docs/ into _output/site; fails on a broken link
	./hack/docs

bench: ## Benchmarks of planner and function
	go test -run='^$$' -bench=. -benchmem ./function/...

##@ Parts of make test
check-generated: ## Fail when the tree differs from what generation gives
	$(HACK) ./generate --check
	go run ./provider/modelserver/rules --check
	$(HACK) ./tiers table --check
	$(HACK) ./rights table --check

check-compatible: ## Fail when an API breaks what the last release promised
	./hack/compatible

unit: ## Unit tests of both modules
	go test -vet=all -timeout=$(TIMEOUT) ./... # a busy machine takes longer than the usual ten minutes for function/database
	go -C hack test -vet=all -count=1 -timeout=$(TIMEOUT) ./... # what they read lies outside the module, where the test cache does not look

check-golden: ## Compare every example with its golden render
	$(HACK) ./render --check $(EXAMPLES)

integration: ## Provider and companion against real servers and a real API server, which they mostly wait for (RUN=TestName for a part)
	export CAPSTAN_DEBIAN_DRIFT=true; \
	  programs=$$($(HACK) ./programs versitygw mlflow moto etcd kubernetes prometheus alertmanager mysql chromium); eval "$$programs"; \
	  go test -tags=integration -count=1 -p=4 -timeout=$(TIMEOUT) $(if $(RUN),-v -run='$(RUN)') $(SERVERS)

e2e: ## On the embedded cluster, but for slow tests, which take turns in CI (RUN=TestName for a part; test/README.md)
	@VERSION=$(VERSION) NEXT=$(NEXT) REGISTRY=$(REGISTRY) RUN='$(RUN)' ./hack/e2e

test-parts:
	@echo $(TEST_PARTS)

##@ Packages and the cluster
packages: ## Build the three packages for amd64 and arm64 into _output/packages
	$(HACK) ./package build --version $(VERSION)

install: ## Push them to REGISTRY and install them on the embedded cluster
	$(INSIDE) $(HACK) ./package push --version $(VERSION) --registry $(REGISTRY)
	$(INSIDE) $(HACK) ./package install --version $(VERSION) --registry $(REGISTRY)

cluster-up: ## Start the embedded cluster (NODES=3 for three zones)
	./hack/capstan-cluster up

demo-down: ## Remove the embedded cluster; programs and images stay in the cache, unless ALL=1
	./hack/capstan-cluster down $(if $(ALL),--all)

##@ Releases
release: ## Build, sign and push everything: VERSION=v0.1.0 REGISTRY=… COSIGN_KEY=… (or SIGN=none); docs/releasing.md
	@VERSION=$(VERSION) REGISTRY=$(REGISTRY) COSIGN_KEY=$(if $(filter env://% /%,$(COSIGN_KEY)),$(COSIGN_KEY),$(abspath $(COSIGN_KEY))) \
	  $(HACK) ./package release

e2e-release: ## Two releases on a cluster of their own: refuse what is changed, install, upgrade and remove as docs/install.md says
	@./hack/e2e-release

##@ By hand
scale: ## Measure core, function and provider with N Algorithms and no pods (N=100 FLAGS='--databases=20 --buckets=50 --noisy=100 --late=100ms'; docs/sizing.md)
	$(HACK) ./scale --algorithms=$(N) $(FLAGS)

nightly: ## What takes too long for make test: ten idle minutes, fuzzing, reproducible packages, three nodes
	@VERSION=$(VERSION) NEXT=$(NEXT) REGISTRY=$(REGISTRY) FUZZTIME=$(FUZZTIME) ./hack/nightly
