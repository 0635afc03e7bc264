"""One suite for all real backends: each test uses the fixture `backend`, and runs on all of them."""

from tests.support.backends import backend, db, namespace

__all__ = ["backend", "db", "namespace"]
