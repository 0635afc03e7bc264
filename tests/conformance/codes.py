"""Expecting an error by the specification's code."""

import contextlib
from collections.abc import Iterator

import pytest
from lance_namespace.errors import ErrorCode, LanceNamespaceError


@contextlib.contextmanager
def refused_with(code: ErrorCode, *words: str) -> Iterator[None]:
    """The block fails with this very code, and the message holds these words."""
    with pytest.raises(LanceNamespaceError) as caught:
        yield
    assert caught.value.code == code, f"{caught.value.code!r}: {caught.value}"
    for word in words:
        assert word in str(caught.value)
