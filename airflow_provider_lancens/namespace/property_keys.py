"""Keys of a namespace's properties that connections and Spark jobs read too; imports nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

ROOT = "root"
REQUIRE_ROOT = "require_root"
"""Whether nothing is created without a location or a root; otherwise, the root is the current folder."""
STORAGE_PREFIX = "storage."


def storage_options(properties: Mapping[str, T]) -> dict[str, T]:
    """Return Lance's storage options among properties, whose keys begin with ``storage.``."""
    return {
        key.removeprefix(STORAGE_PREFIX): value
        for key, value in properties.items()
        if key.startswith(STORAGE_PREFIX)
    }
