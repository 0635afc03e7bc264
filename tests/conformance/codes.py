"""Expect errors by the specification's code."""

import contextlib
from collections.abc import Iterator

import pytest
from lance_namespace.errors import ErrorCode, LanceNamespaceError


@contextlib.contextmanager
def refused_with(code: ErrorCode, *texts: str) -> Iterator[None]:
    """Expect the block to fail with exactly this code and a message that contains these texts."""
    with pytest.raises(LanceNamespaceError) as caught:
        yield
    assert caught.value.code == code, f"{caught.value.code!r}: {caught.value}"
    for text in texts:
        assert text in str(caught.value)
