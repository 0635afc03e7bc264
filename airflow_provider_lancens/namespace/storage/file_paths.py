"""Paths of files below a table's location: the single check of every path that others may have written.

A manifest, a commit record, a transaction, a tag or a listing names files, and any of them may have been
written by another client. A `FilePath` can't be absolute, leave its folder, or mean another file once it is
decoded.
"""

from __future__ import annotations

from typing import Self

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import readings, shown_location

_LONGEST = 1024
"""Bytes of an object's key on S3."""
_LONGEST_NAME = 255
"""Bytes of a name on file systems."""


class FilePath(str):
    """The path of a file or a folder, relative to a table's location, that was checked."""

    __slots__ = ()

    @classmethod
    def of(cls, text: str, location: str) -> Self:
        """Check a path, unless it was checked before.

        Args:
            text: the path.
            location: the table's location, for the message.

        Raises:
            InvalidTableStateError: (19) it isn't the path of a file below the location.
        """
        if isinstance(text, cls):
            return text
        if not is_file_path(text):
            raise spec_errors.InvalidTableStateError(
                f"{location}: {shown_location(str(text))} is not the path of a file below it: another client "
                "wrote it; nothing outside of the location is read or changed"
            )
        return cls(text)


def is_file_path(text: str) -> bool:
    """Return whether a text is the path of a file below a folder, also once it is decoded."""
    return (
        isinstance(text, str)
        and text.isprintable()
        and len(text.encode()) <= _LONGEST
        and all(_stays_below(reading, text.count("/")) for reading in readings(text))
    )


def _stays_below(path: str, depth: int) -> bool:
    # A decoded "/" would make other folders of it.
    names = path.split("/")
    return (
        path.isprintable()
        and len(names) == depth + 1
        and {"", ".", ".."}.isdisjoint(names)
        and all(len(name.encode()) <= _LONGEST_NAME for name in names)
    )
