"""Namespaces for other libraries, on the conformance suite's backends."""

from tests.conformance.conftest import backend, db, namespace

__all__ = ["backend", "db", "namespace"]
