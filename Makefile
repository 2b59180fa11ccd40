# Building and testing need no make: see the README. This is for what takes longer.

.PHONY: torture
torture: ## kill, fault and crowd researches at every point; takes half an hour to an hour
	.ci/torture.sh

DATA ?= ../shared/data
REPORTS ?= dist/quality

.PHONY: quality
quality: ## run every suite on all of its data and put the numbers into docs/quality.md; goes on where it was stopped
	go build -o dist/marchwarden ./cmd/marchwarden
	dist/marchwarden eval run all --data $(DATA) --out $(REPORTS)
	dist/marchwarden eval table $(REPORTS)/*.json --into docs/quality.md

.PHONY: golden
golden: ## rewrite the numbers of the small fixed samples that CI compares with
	go test ./internal/eval/suites -run TestGolden -update

.PHONY: bench
bench: ## measure ours beside the plainest thing that does the same, into docs/performance.md; takes minutes
	go test ./internal/bench -run '^TestPerformance$$' -count 1 -timeout 30m -v -args -performance ../../docs/performance.md
