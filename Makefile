# Each target calls one script, which makes the environment first where it is missing.
.DEFAULT_GOAL := help
.PHONY: help quickstart airflow test check ci long docs

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

quickstart: ## run the example pipeline on real parts and show what it made
	./scripts/quickstart

airflow: ## the same in the Airflow UI: scheduler, triggerer and API server on loopback
	./scripts/airflow

test: ## the everyday tests: minutes, neither slow nor long
	./scripts/test -n 2 -m "not slow and not long"

check: ## lint, format, types, import contracts
	./scripts/check

ci: ## all that a change must pass: check, wheel, every test that isn't long
	./scripts/test

long: ## races at full size, soak, what faces Airflow on the lowest versions, ingestion on older PySparks
	./scripts/test -m long
	./scripts/test-oldest
	./scripts/test-sparks

docs: ## build the documentation, warnings are errors
	./scripts/docs
