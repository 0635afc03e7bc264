"""Default location of a table: beside its database's location, never below it.

A metastore deletes the folder of a database when any of its clients drops it with its data, including the
files of external tables in it. So the tables of a database are placed in a folder of their own, beside it,
named after the database's with the suffix ``-lance``. No database or catalog gets such a location by default:
a database's ends with ``.db``, and a catalog's name contains no hyphen.

Each declaration has a folder of its own in there, so that a request of a table that was dropped, which
arrives late, never becomes part of the table that has its name now.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

from airflow_provider_lancens.namespace.locations import DATABASE_SUFFIX, TABLE_SUFFIX, join
from airflow_provider_lancens.namespace.storage.location_overlap import ResolvedLocation

TABLES_SUFFIX = "-lance"
_DIGITS = 12
_PLACE = re.compile(rf"(.+)-[0-9a-f]{{{_DIGITS}}}/\1{re.escape(TABLE_SUFFIX)}", re.DOTALL)


def table_location(table: str, database: str, deletable: Sequence[str]) -> str:
    """Return a new location of a table for which none is given; no two calls return the same.

    Args:
        table: its name.
        database: its database's default folder below a root, such as ``sales.db`` or ``catalog/sales.db``.
        deletable: the folders that are deleted with the database's data, its own location first.
    """
    place = f"{table}-{uuid.uuid4().hex[:_DIGITS]}"
    return join(_tables_folder(database.strip("/").split("/"), deletable), place, f"{table}{TABLE_SUFFIX}")


def is_own_place(location: str) -> bool:
    """Return whether a table's location is in a folder that was made for its declaration alone."""
    return _PLACE.fullmatch("/".join(location.split("/")[-2:])) is not None


def folder_around(location: str, deletable: Sequence[str]) -> str | None:
    """Return the first of some folders that contains a location; None if none does."""
    resolved = ResolvedLocation(location)
    return next((folder for folder in deletable if resolved.lies_in(ResolvedLocation(folder))), None)


def _tables_folder(names: Sequence[str], deletable: Sequence[str]) -> str:
    base, folder = deletable[0], ""
    for _ in deletable:
        folder = _beside(base.rstrip("/"), names)
        around = folder_around(folder, deletable)
        if around is None:
            break
        base = around  # a folder that may be deleted as a whole, such as the catalog's
    return folder


def _beside(folder: str, names: Sequence[str]) -> str:
    _, separator, path = folder.rpartition("://")
    _, _, name = path.rpartition("/")
    if name == path and (separator or not name):
        # The root of a bucket or a file system has no siblings; no file system deletes it, though.
        return join(folder, *names[:-1], f"{names[-1]}{TABLES_SUFFIX}")
    # Databases may share a location: if its name isn't the database's, use subfolders.
    is_named_alike = name in (names[0], names[0].removesuffix(DATABASE_SUFFIX))
    return join(f"{folder}{TABLES_SUFFIX}", *(names[1:] if is_named_alike else names))
