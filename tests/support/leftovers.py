"""Files that no version refers to."""

from collections.abc import Callable

Leave = Callable[[], str]
