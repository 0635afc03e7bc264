"""What makes an entry of a metastore a Lance table (specification: Lance Table Identification).

Two marks are written, the table's type and ``table_type``; on reading ``table_type`` alone
decides, in any case, since other writers leave the type null or MANAGED.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_namespace.errors import InvalidInputError, InvalidTableStateError

from airflow_provider_lancens.namespace.metastore import Table

TABLE_TYPE = "table_type"
LANCE = "lance"
EXTERNAL = "EXTERNAL"
MANAGED_BY = "managed_by"
BY_STORAGE = "storage"
BY_IMPLEMENTATION = "impl"
VERSION = "version"
EMPTY = "0"
"""The version of a table that is declared and holds no data set yet."""
COMMIT = "lancens.commit"
"""Which manifest made the version of a managed table: see `managed`."""
WRITES = "lancens.writes"
"""The newest writes and their idempotency keys: see `writes`."""
_LONGEST_VERSION = 20
"""Digits of 2^64, above which Lance can't count."""
PURGE = "external.table.purge"
EXTERNAL_TABLE = "EXTERNAL_TABLE"
# With text formats an INSERT from Spark drops junk files into the table's folder, and succeeds. With
# Lance's own and no SerDe, an engine that lacks them says so clearly and writes nothing.
INPUT_FORMAT = "org.lance.mapred.LanceInputFormat"
OUTPUT_FORMAT = "org.lance.mapred.LanceOutputFormat"


def is_lance(table: Table) -> bool:
    """Whether an entry is a Lance table."""
    return table.parameters.get(TABLE_TYPE, "").strip().lower() == LANCE


def check_lance(table: Table) -> None:
    """Return where an entry is a Lance table.

    Raises:
        InvalidInputError: (13) it isn't; the message says what it is instead.
    """
    if not is_lance(table):
        raise InvalidInputError(
            f"table {table.id} is not a Lance table: its parameter {TABLE_TYPE!r} is "
            f"{table.parameters.get(TABLE_TYPE)!r}, needed: {LANCE!r}"
        )


def check_managed(table: Table) -> None:
    """Return where the metastore decides a table's version.

    Raises:
        InvalidInputError: (13) the storage does.
    """
    check_lance(table)
    if not is_managed(table):
        raise InvalidInputError(
            f"table {table.id} has {MANAGED_BY}={BY_STORAGE}, so its version is the storage's alone; "
            "convert it first"
        )


def is_managed(table: Table) -> bool:
    """Whether the metastore decides the table's version (``managed_by=impl``)."""
    return table.parameters.get(MANAGED_BY, "").strip().lower() == BY_IMPLEMENTATION


def has_version(table: Table) -> bool:
    """Whether an entry's ``version`` is a number; other writers may have left it out, or worse."""
    text = table.parameters.get(VERSION, "").strip()
    return text.isdecimal() and len(text) <= _LONGEST_VERSION


def managed_version(table: Table) -> int:
    """The version of an implementation-managed table: 0 while it is declared and still empty.

    Raises:
        InvalidTableStateError: (19) its parameter isn't a number.
    """
    if VERSION not in table.parameters:
        return int(EMPTY)
    if not has_version(table):
        raise InvalidTableStateError(
            f"table {table.id}: its parameter {VERSION!r} is {table.parameters[VERSION][:50]!r}, not a whole "
            "number; adopt the storage's newest version, or repair the entry by hand"
        )
    return int(table.parameters[VERSION])


def entry_parameters(properties: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a new entry: the caller's properties, with both marks on top.

    Raises:
        InvalidInputError: (13) a property would undo the identification, or names an unknown manager.
    """
    _check_fixed(properties, TABLE_TYPE, LANCE)
    _check_fixed(properties, EXTERNAL, "true")
    _check_fixed(properties, PURGE, "false")
    manager = properties.get(MANAGED_BY, BY_STORAGE).strip().lower()
    if manager not in (BY_STORAGE, BY_IMPLEMENTATION):
        raise InvalidInputError(
            f"property {MANAGED_BY!r}: expected {BY_STORAGE!r} or {BY_IMPLEMENTATION!r}, "
            f"got {properties[MANAGED_BY]!r}"
        )
    version = {VERSION: EMPTY} if manager == BY_IMPLEMENTATION else {}
    # Another entry's: nothing of it was made here.
    own = {key: value for key, value in properties.items() if key not in (COMMIT, WRITES)}
    return {**own, **version, TABLE_TYPE: LANCE, EXTERNAL: "TRUE", MANAGED_BY: manager}


def _check_fixed(properties: Mapping[str, str], key: str, only: str) -> None:
    for given, value in properties.items():
        if given.lower() == key.lower() and (given != key or value.strip().lower() != only):
            raise InvalidInputError(
                f"property {given!r}: a Lance table's entry has {key}={only}, got {value!r}; leave it out"
            )
