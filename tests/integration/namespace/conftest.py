"""Namespaces for other libraries, on the conformance suite's backends."""

from tests.support.backends import backend, db, namespace

__all__ = ["backend", "db", "namespace"]
