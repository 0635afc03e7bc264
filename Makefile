# Each target calls one script, which makes the environment first where it is missing.
.DEFAULT_GOAL := help
.PHONY: help quickstart airflow unit test check ci long benchmarks docs release

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

quickstart: ## run the example pipeline on real parts and show what it made
	./scripts/quickstart

airflow: ## the same in the Airflow UI: scheduler, triggerer and API server on loopback
	./scripts/airflow

unit: ## the tests of the modules one by one: a minute, without Java
	./scripts/test -n 2 -m "not long" tests/unit tests/architecture

test: ## the everyday tests, as pytest alone runs them: minutes, neither slow nor thorough nor long
	./scripts/test -n 2

check: ## lint, format, spelling, types, import contracts
	./scripts/check

ci: ## all that CI runs: check, wheel, every test that isn't long
	./.ci/run

long: ## races at full size, soak, each fault by promise, every Python, the lowest versions, older PySparks, minimal systems
	./scripts/test -m long
	./scripts/fault-table
	./scripts/test-oldest
	./scripts/test-sparks
	./scripts/test-minimal-system

benchmarks: ## measure and draw what docs/performance.md shows, peers in the same run: an hour and more
	./scripts/benchmarks

docs: ## build the documentation, warnings are errors
	./scripts/docs

release: ## build wheel and sdist in dist, and check them on each Python with the lowest and the newest Airflow
	./scripts/release
