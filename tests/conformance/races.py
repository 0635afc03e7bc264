"""Changes by another client at a given moment of an operation."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch


def just_before(verb: str, namespace: Any, event: Callable[[], object]) -> Any:
    """Call a function just before the first call of this metastore method in the block."""
    metastore = type(namespace._metastore)
    real, left = getattr(metastore, verb), [event]

    def late(self: object, *arguments: object) -> object:
        while left:
            left.pop()()
        return real(self, *arguments)

    return patch.object(metastore, verb, late)
