# weir: make help lists the targets. Tools are pinned in tools.env and live in a cache outside the clone;
# Go's own build cache is outside it too.

include tools.env

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Steps run in the order written: the cheap checks first.
.NOTPARALLEL:

# The cache that .ci/tools and e2e/harness agree on.
XDG_CACHE_HOME ?= $(HOME)/.cache
WEIR_TOOLS_DIR ?= $(XDG_CACHE_HOME)/weir/tools
export WEIR_TOOLS_DIR

GOLANGCI_LINT := $(WEIR_TOOLS_DIR)/golangci-lint-$(GOLANGCI_LINT_VERSION)/bin/golangci-lint
CRD_REF_DOCS := go run github.com/elastic/crd-ref-docs@$(CRD_REF_DOCS_VERSION)
HELM_DOCS := go run github.com/norwoodj/helm-docs/cmd/helm-docs@$(HELM_DOCS_VERSION)
CONTROLLER_GEN := go run sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

COMMANDS = $(notdir $(patsubst %/,%,$(wildcard cmd/*/)))
# Without the end-to-end tests, which hold the machine: those run one package at a time.
UNIT_PACKAGES = $(shell go list ./... | grep -v '/e2e')

##@ General

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "; printf "Usage: make TARGET\n"} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build the binaries into bin/
	@mkdir -p bin
	for command in $(COMMANDS); do \
	  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/$$command ./cmd/$$command; \
	done

.PHONY: images
images: ## Build the container images into dist/, without a container engine (TAG=, REGISTRY=, PLATFORMS=linux/amd64,…)
	@go run ./config/images -version $(VERSION) -revision $$(git rev-parse HEAD) -created $$(git log -1 --format=%ct) \
	  $(if $(PLATFORMS),-platforms $(PLATFORMS)) $(if $(TAG),-tag $(TAG)) \
	  $(if $(REGISTRY),-repository $(REGISTRY)/weirproxy/)

.PHONY: tools
tools: ## Install the pinned tools (Envoy, golangci-lint, …) into the cache
	@.ci/tools

.PHONY: demo
demo: ## See weir work: origin, weir and Envoy, a short show, then left running (ONCE=1: end after the show)
	@.ci/tools envoy
	@go build -o bin/demo ./e2e/demo
	@ONCE=$(ONCE) bin/demo

##@ Checks

.PHONY: test
test: tools check vet lint test-unit test-e2e ## Everything CI runs, cheap checks first

.PHONY: vet
vet: ## Compile everything, tests too, and vet it
	go vet ./...

.PHONY: lint
lint: lint-api ## Run golangci-lint, and kube-api-linter on the API types
	@.ci/tools golangci-lint
	$(GOLANGCI_LINT) run --timeout 30m ./...

.PHONY: lint-api
lint-api: ## Hold the API types to the Kubernetes API conventions
	@mkdir -p $(WEIR_TOOLS_DIR)
	@go build -C .ci/kube-api-linter -o $(WEIR_TOOLS_DIR)/kube-api-linter .
	$(WEIR_TOOLS_DIR)/kube-api-linter ./cachepolicy/v1alpha1

.PHONY: test-unit
test-unit: ## Run the unit and scenario tests with the race detector
	go test -race -timeout 20m $(UNIT_PACKAGES)

.PHONY: test-e2e
test-e2e: ## Run the tests against real Envoy and the like (RACE=1: weir with the race detector)
	@.ci/tools
	WEIR_E2E_RACE=$(RACE) go test -count=1 -p 1 -timeout 20m $$(go list ./e2e/... | grep -v /e2e/cluster)

.PHONY: e2e-cluster
e2e-cluster: ## Run the tests on a real Kubernetes cluster, as root (RUN=TestName: only these); make test does not
	@.ci/tools
	@.ci/tools cluster
	go test -count=1 -timeout 30m -v $(if $(RUN),-run '$(RUN)') ./e2e/cluster

.PHONY: e2e-istio
e2e-istio: ## Run the tests on a real cluster with Istio, as root; make test does not
	@.ci/tools
	@.ci/tools cluster
	@.ci/tools istio-cluster
	go test -count=1 -timeout 30m -v ./e2e/cluster/istio

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@.ci/fuzz

.PHONY: conformance
conformance: ## Run the HTTP caching conformance suite (PEERS=1: other caches too)
	@.ci/tools
	PEERS=$(PEERS) go run ./e2e/conformance/cmd/conformance

.PHONY: bench
bench: ## Measure weir against the floor and other caches: bench.json, charts (QUICK=1: a minute; PARTS=hits,…)
	@.ci/tools envoy
	@.ci/tools debian
	@.ci/tools bench
	@go build -o bin/bench ./e2e/bench/cmd/bench
	bin/bench -quick=$(if $(QUICK),true,false) -parts="$(PARTS)" -json bench.json

##@ Generated files

.PHONY: generate
generate: generate-api generate-chart ## Write generated files anew
	go generate ./...

# The chart's CRDs are those of config/crd, with what values add to their metadata.
.PHONY: generate-api
generate-api: ## Write what is generated from the API types: deep copies and CRDs
	@rm -f config/crd/weir.dev_*.yaml charts/weir-crds/templates/weir.dev_*.yaml
	$(CONTROLLER_GEN) object crd paths=./cachepolicy/v1alpha1 output:crd:dir=config/crd
	@mkdir -p charts/weir-crds/templates
	@for crd in config/crd/weir.dev_*.yaml; do \
	  if grep -q '{{' "$$crd"; then echo "$$crd: Helm would take {{ for a template" >&2; exit 1; fi; \
	  sed -e '1{/^---$$/d}' \
	    -e 's/^  annotations:$$/&\n    {{- with include "weir-crds.annotations" . }}{{ nindent 4 . }}{{ end }}/' \
	    -e 's/^  labels:$$/&\n    {{- include "weir-crds.labels" . | nindent 4 }}/' \
	    "$$crd" >"charts/weir-crds/templates/$${crd##*/}"; \
	done

# Only the rules: names and bindings are the chart's.
.PHONY: generate-chart
generate-chart: ## Write what charts and reference have of others: RBAC rules, tables of values and of fields
	@rm -f charts/weir/files/rbac/*.yaml && mkdir -p charts/weir/files/rbac
	@for role in role namespace_role envoy_gateway_role istio_role; do \
	  { echo '# From config/rbac: "make generate" writes it.'; sed -n '/^rules:/,$$p' config/rbac/$$role.yaml; } \
	    >charts/weir/files/rbac/$$role.yaml; \
	done
	@$(CRD_REF_DOCS) --source-path=cachepolicy/v1alpha1 --config=.ci/crd-ref-docs.yaml --renderer=markdown \
	  --log-level=error --output-path=docs/reference/cachepolicy.md
	@sed -i -e '1s/.*/# CachePolicy and CacheInvalidation\n\nGenerated from `cachepolicy\/v1alpha1`; do not edit. [cachepolicy-fields.md](cachepolicy-fields.md) has examples./' \
	  -e 's/ *Optional: \\{\\} <br \/>//; s/Required: \\{\\} <br \/>/required/; s/ <br \/> |/ |/' docs/reference/cachepolicy.md
	@cat -s docs/reference/cachepolicy.md >docs/reference/cachepolicy.tmp && mv docs/reference/cachepolicy.tmp docs/reference/cachepolicy.md
	@$(HELM_DOCS) --chart-search-root=charts/weir --template-files=README.md.gotmpl --log-level=warning

.PHONY: check
check: ## Fail if generated files are not current
	@before=$$(git status --porcelain; git diff | git hash-object --stdin); \
	$(MAKE) --no-print-directory generate; \
	after=$$(git status --porcelain; git diff | git hash-object --stdin); \
	if [[ $$before != "$$after" ]]; then \
	  echo 'Generated files are not current: run "make generate" and commit what it changes.' >&2; \
	  git status --short >&2; exit 1; \
	fi
