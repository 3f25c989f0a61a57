.PHONY: help run page test check bench torture fuzz

help: ## Show these targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

run: page ## Build the page and rethread, start the keeper and open it in a browser
	@cargo build --release --locked -p rethread
	@scripts/run

page: ## Build the page that is embedded in rethread
	@scripts/page build

test: ## Run every test, doctests and browsers included
	scripts/setup
	scripts/page build
	scripts/clients build || [ "$$CI" != true ]
	cargo test --workspace --locked --no-fail-fast
	CLAUDE_VERSION=2.0.0 cargo test --locked -p rethread-transcripts --test main
	cargo build --locked -p rethread
	scripts/schemathesis
	scripts/page test

check: ## Format, lints, types, docs, licences and sources of the dependencies
	scripts/setup check
	scripts/page check
	scripts/clients check
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	"$$(scripts/setup tools)/bin/cargo-deny" --locked check bans licenses sources

bench: ## Run the benchmarks; ONLY=name runs one
	scripts/page build
	cargo build --release --locked -p rethread
ifneq ($(ONLY),web)
	cargo run --release --locked -p rethread-bench -- $(ONLY)
endif
ifneq (,$(filter web,$(or $(ONLY),web)))
	scripts/page bench
endif

# The same tests as in `make test`, with more time to find something.
torture: ## Run the crash and fault tests for long; SECONDS_TOTAL=3600
	@scripts/torture $(ONLY)

fuzz: ## Look for inputs that break a reader; SECONDS_TOTAL=300, TARGET=one
	@scripts/fuzz
