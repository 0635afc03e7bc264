"""Parameters that identify a catalog table as a Lance table (specification: Lance Table Identification).

Both the table's type and the parameter ``table_type`` are written; on reading only ``table_type`` counts,
case-insensitively, since other writers leave the type null or MANAGED.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.locations import Location, location_fault
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Expectation
from airflow_provider_lancens.namespace.storage.allowed_locations import AllowedLocations
from airflow_provider_lancens.namespace.update_interval import check_expected_update

TABLE_TYPE = "table_type"
LANCE = "lance"
EXTERNAL = "EXTERNAL"
MANAGED_BY = "managed_by"
BY_STORAGE = "storage"
BY_IMPLEMENTATION = "impl"
VERSION = "version"
EMPTY = "0"
"""Version of a table that is declared and has no dataset yet."""
COMMIT = "lancens.commit"
"""Commit record of a managed table's version: see `managed.publication`."""
STATE = "lancens.state"
"""What a server compares before it changes a table: see `unchanged`."""
LAYOUT = "lancens.layout"
"""Storage layout of the dataset that the first write creates, as JSON."""
_OURS = (MANAGED_BY, COMMIT, STATE, LAYOUT)
"""Parameters that only Lance tables have."""
_LONGEST_VERSION = 20
"""Digits of 2^64, the limit of Lance's versions."""
_CONVERTING = "converting-"
PURGE = "external.table.purge"
EXTERNAL_TABLE = "EXTERNAL_TABLE"
# With text formats an INSERT from Spark writes junk files into the table's folder, and succeeds. With
# Lance's own and no SerDe, an engine that lacks them fails with a clear message and writes nothing.
INPUT_FORMAT = "org.lance.mapred.LanceInputFormat"
OUTPUT_FORMAT = "org.lance.mapred.LanceOutputFormat"


def is_lance(table: CatalogTable) -> bool:
    """Whether a catalog table is a Lance table."""
    return has_lance_type(table.parameters)


def has_lance_type(parameters: Mapping[str, str]) -> bool:
    """Whether the parameters of a catalog table say that it is a Lance table."""
    return parameters.get(TABLE_TYPE, "").strip().lower() == LANCE


def lost_table_type(table: CatalogTable) -> bool:
    """Whether a table was a Lance table: ``table_type`` is gone, but other Lance parameters remain."""
    return not table.parameters.get(TABLE_TYPE) and any(key in table.parameters for key in _OURS)


def check_lance(table: CatalogTable) -> None:
    """Check that a catalog table is a Lance table.

    Raises:
        InvalidInputError: (13) it isn't; the message says what it is instead.
    """
    if is_lance(table):
        return
    repair = "; another client removed it: register the table again with mode overwrite"
    raise spec_errors.InvalidInputError(
        f"table {table.id} is not a Lance table: its parameter {TABLE_TYPE!r} is "
        f"{table.parameters.get(TABLE_TYPE)!r}, expected: "
        f"{LANCE!r}{repair if lost_table_type(table) else ''}"
    )


def check_managed(table: CatalogTable) -> None:
    """Check that the metastore is a table's version authority.

    Raises:
        InvalidInputError: (13) the storage is, or it is not a Lance table.
    """
    check_lance(table)
    if not is_managed(table):
        raise spec_errors.InvalidInputError(
            f"table {table.id} has {MANAGED_BY}={BY_STORAGE}, so the storage is its version "
            "authority; convert it first"
        )


def is_managed(table: CatalogTable) -> bool:
    """Whether the metastore is the table's version authority (``managed_by=impl``)."""
    return table.parameters.get(MANAGED_BY, "").strip().lower() == BY_IMPLEMENTATION


def new_state(authority: str) -> str:
    """Return a state that no table ever had.

    Args:
        authority: the version of a table whose version authority is the metastore, else ``storage``.
    """
    return f"{authority}-{uuid.uuid4().hex[:16]}"


def converting_state(token: str) -> str:
    """Return the state of a table whose version authority is about to become the metastore."""
    return f"{_CONVERTING}{token}"


def is_converting(table: CatalogTable) -> bool:
    """Whether the version authority of a table is about to become the metastore."""
    return not is_managed(table) and table.parameters.get(STATE, "").startswith(_CONVERTING)


def unchanged(table: CatalogTable) -> Expectation | None:
    """Return the expectation that this is still the same table, with the same version and authority.

    A number doesn't identify the table whose version it is: a table that was dropped and declared again has
    had the same versions. Its state is new at each declaration, commit, repair and conversion. The parameter
    ``version`` is compared instead where another client has changed it alone, or before the first state.
    """
    state = table.parameters.get(STATE)
    version = table.parameters.get(VERSION) if is_managed(table) else BY_STORAGE
    if state is not None and (state.startswith(f"{version}-") or is_converting(table)):
        return Expectation(STATE, state)
    key = VERSION if is_managed(table) else MANAGED_BY
    value = table.parameters.get(key)
    return None if value is None else Expectation(key, value)


def has_version(table: CatalogTable) -> bool:
    """Whether a table's ``version`` is a number; other writers may have removed or overwritten it."""
    text = table.parameters.get(VERSION, "").strip()
    return text.isdecimal() and len(text) <= _LONGEST_VERSION


def managed_version(table: CatalogTable) -> int:
    """Return the version of an implementation-managed table: 0 while it is declared and still empty.

    Raises:
        InvalidTableStateError: (19) its parameter isn't a number.
    """
    if VERSION not in table.parameters:
        return int(EMPTY)
    if not has_version(table):
        raise spec_errors.InvalidTableStateError(
            f"table {table.id}: its parameter {VERSION!r} is {table.parameters[VERSION][:50]!r}, "
            "not a whole number; adopt the storage's newest version, or correct the parameter "
            "yourself"
        )
    return int(table.parameters[VERSION])


def location_of(catalog_table: CatalogTable, allowed: AllowedLocations) -> Location:
    """Return a catalog table's location as Lance expects it.

    Args:
        catalog_table: which any client may have written.
        allowed: where tables may be.

    Raises:
        InvalidInputError: (13) its location is missing or invalid: see `location_fault`.
        PermissionDeniedError: (15) its location isn't allowed.
    """
    if not catalog_table.location:
        raise spec_errors.InvalidInputError(
            f"table {catalog_table.id}: its catalog table has no location; deregister and register it"
        )
    if fault := location_fault(catalog_table.location):
        raise spec_errors.InvalidInputError(
            f"table {catalog_table.id}: the location in its catalog table is invalid: {fault}; deregister "
            "the table, and register it with a valid location"
        )
    allowed.check(catalog_table.location, f"table {catalog_table.id}")
    return Location.of(catalog_table.location)


def new_table_parameters(properties: Mapping[str, str], managed_by: str = BY_STORAGE) -> dict[str, str]:
    """Return the parameters of a new catalog table: the caller's properties and the Lance identification.

    Args:
        properties: the caller's properties.
        managed_by: ``storage`` or ``impl``, the default if the properties have none.

    Raises:
        InvalidInputError: (13) a property contradicts the identification, or ``managed_by`` or the expected
            interval of updates is invalid.
    """
    _check_fixed(properties, TABLE_TYPE, LANCE)
    _check_fixed(properties, EXTERNAL, "true")
    _check_fixed(properties, PURGE, "false")
    check_expected_update(properties)
    manager = properties.get(MANAGED_BY, managed_by).strip().lower()
    if manager not in (BY_STORAGE, BY_IMPLEMENTATION):
        raise spec_errors.InvalidInputError(
            f"property {MANAGED_BY!r}: expected {BY_STORAGE!r} or {BY_IMPLEMENTATION!r}, "
            f"got {properties[MANAGED_BY]!r}"
        )
    version = {VERSION: EMPTY} if manager == BY_IMPLEMENTATION else {}
    state = {STATE: new_state(EMPTY if version else BY_STORAGE)}
    # Another table's commit record and state don't apply to this one.
    own = {key: value for key, value in properties.items() if key not in (COMMIT, STATE)}
    return {**own, **version, **state, TABLE_TYPE: LANCE, EXTERNAL: "TRUE", MANAGED_BY: manager}


def _check_fixed(properties: Mapping[str, str], key: str, only: str) -> None:
    for given, value in properties.items():
        if given.lower() == key.lower() and (given != key or value.strip().lower() != only):
            raise spec_errors.InvalidInputError(
                f"property {given!r}: a Lance table always has {key}={only}, got {value!r}; leave it out"
            )
