# Building and testing need no make: see the README. This is for what takes longer.

PREFIX ?= /usr/local

.PHONY: install
install: ## build the program and install it with its manual pages below PREFIX
	CGO_ENABLED=0 go build -trimpath -o dist/marchwarden ./cmd/marchwarden
	rm -rf dist/man && dist/marchwarden man dist/man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man7
	install -m 755 dist/marchwarden $(DESTDIR)$(PREFIX)/bin/
	install -m 644 dist/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 dist/man/*.7 $(DESTDIR)$(PREFIX)/share/man/man7/

.PHONY: torture
torture: ## kill, fault and crowd researches at every point; takes half an hour to an hour
	.ci/torture.sh

.PHONY: full
full: ## run the whole form of every test that has a smaller one for every day; takes an hour
	MARCHWARDEN_TEST_FULL=all go test -count=1 -timeout 3h ./...

.PHONY: cluster
cluster: ## kill, cut off, freeze and restart hubs and workers on network namespaces, in full; as root, takes half an hour
	MARCHWARDEN_TEST_CLUSTER=full go test -count=1 -timeout 2h -v ./internal/dispatch/... ./internal/hub/... ./internal/blob/... ./internal/limit/... ./internal/pi
	MARCHWARDEN_TEST_CLUSTER=full go test -count=1 -timeout 2h -v -run 'TestClusterKilled|TestSubmitInterrupted' ./cmd/marchwarden

.PHONY: small-model
small-model: ## research twenty times with a real small model, SmolLM2 on llama.cpp's server, which are fetched first
	MARCHWARDEN_TEST_FULL=1 .ci/small-model.sh dist/small-model

.PHONY: packages
packages: ## count the packages of ours that one offline question runs; the number only falls, to 35
	.ci/ask-packages.sh 35

.PHONY: release
release: ## build archives, packages, a list of contents and checksums for all platforms into dist/release
	.ci/notices.sh
	.ci/release.sh

DATA ?= ../shared/data
REPORTS ?= dist/quality

.PHONY: quality
quality: ## run every suite on all of its data and put the numbers into docs/quality.md; goes on where it was stopped
	go build -o dist/ ./cmd/...
	dist/marchwarden-lab run all --data $(DATA) --out $(REPORTS)
	dist/marchwarden-lab table $(REPORTS)/*.json --into docs/quality.md

.PHONY: folders
folders: ## ask the open half of the suite folders, with a line for each question in dist/folders-open.jsonl; takes a minute or two
	go build -o dist/ ./cmd/...
	dist/marchwarden-lab run folders --part open --data $(DATA) --out dist/folders-open.json --details dist/folders-open.jsonl

.PHONY: golden
golden: ## rewrite the numbers of the small fixed samples that CI compares with
	MARCHWARDEN_TEST_FULL=1 go test ./internal/eval/suites -run TestGolden -update

.PHONY: bench
bench: ## measure ours beside the plainest thing that does the same, into docs/performance.md; takes minutes
	go test ./internal/eval/bench -run '^TestPerformance$$' -count 1 -timeout 30m -v -args -performance ../../../docs/performance.md

FUZZTIME ?= 1m

.PHONY: fuzz
fuzz: ## fuzz every target for a minute (FUZZTIME), guided by coverage
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u | while read -r dir; do \
	  for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | sed 's/^func //'); do \
	    echo "$$dir $$target"; go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) $$dir || exit 1; \
	  done; \
	done

.PHONY: screenshots
screenshots: ## make the pictures of docs/ui.md anew, with a local Chromium
	MARCHWARDEN_TEST_PICTURES=$(CURDIR)/docs/img go test -count=1 -run '^TestPagePictures$$' ./cmd/marchwarden
