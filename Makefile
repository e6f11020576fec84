# `make` lists what there is.

CARGO ?= cargo
PORT ?= 6379
TIME ?= 300
TARGET := $(or $(CARGO_TARGET_DIR),target)
MODULE := $(TARGET)/release/libbloomgate.so

export TIME SEED

.PHONY: help run demo test test-all torture lint accuracy bench bench-core fmt clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/    make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

run: ## Start redis-server with the module on PORT (6379), in the foreground; its data is kept in .run/
	@.ci/need rust cc libclang redis-server
	$(CARGO) build --release --locked
	@.ci/serve $(MODULE) $(PORT) .run

demo: ## Load 100,000 words, probe them and 100,000 others, before and after a restart
	@.ci/need rust cc libclang redis-server words
	$(CARGO) run --release --locked --example demo

test: ## Unit, property and integration tests, on redis-server; needs no download
	@.ci/need rust cc libclang redis-server
	$(CARGO) test --locked

test-all: test ## The tests, and on Redis 6.2, 7.0, 8.2 and Valkey 9.1 with the clients (fetched into .peers/)
	@.ci/need pip node
	.ci/peers
	.ci/test-all

torture: ## Kills, failovers, moving slots and forged bytes, each for TIME seconds (300) at most; SEED=… draws as then
	@.ci/need rust cc libclang redis-server
	$(CARGO) test --locked --test server torture:: -- --ignored --nocapture --test-threads 1

lint: ## Formatting, clippy without a warning, and which part of the code may import which
	@.ci/need rust cc libclang
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	.ci/layers

accuracy: ## Measure false-positive rates at many sizes and rates, and print the table (long)
	@.ci/need rust cc libclang
	$(CARGO) run --release --locked --example accuracy

bench: ## Measure the server beside a floor and RedisBloom (FULL=1, SECTION=…: see benches/server/main.rs)
	@.ci/need rust cc libclang redis-server
	$(CARGO) build --release --locked --lib --example floor
	$(CARGO) bench --locked --bench server

bench-core: ## Measure the filter alone beside other crates (FULL=1: 100 M items)
	@.ci/need rust cc libclang
	$(CARGO) bench --locked --bench core

fmt: ## Format the code
	$(CARGO) fmt

clean: ## Remove what was built and fetched; the data in .run/ stays
	$(CARGO) clean
	rm -rf .peers
