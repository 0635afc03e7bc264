"""Counts the calls of functions, such as this package's requests to the storage."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import obstore

_REQUESTS = ("head", "get", "put", "delete", "list", "list_with_delimiter", "copy")


@contextmanager
def counted_requests(*others: tuple[object, str]) -> Iterator[Counter[str]]:
    """Count the storage requests of this package, not those of Lance, and the calls of other functions."""
    seen: Counter[str] = Counter()

    def counting(owner: object, name: str) -> object:
        real = getattr(owner, name)

        def call(*arguments: object, **options: object) -> object:
            seen[name] += 1
            return real(*arguments, **options)

        return patch.object(owner, name, call)

    patches = [counting(owner, name) for owner, name in (*((obstore, name) for name in _REQUESTS), *others)]
    for one in patches:
        one.start()  # type: ignore[attr-defined]
    try:
        yield seen
    finally:
        for one in patches:
            one.stop()  # type: ignore[attr-defined]
