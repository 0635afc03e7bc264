"""Checks of the arguments of a read of changes: the range, the columns and the filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.namespace.storage.object_store import is_detached
from airflow_provider_lancens.spark.changes.changed_rows import LABELS
from airflow_provider_lancens.spark.options import is_whole_number
from airflow_provider_lancens.spark.table.column_history import described_fields

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

    from airflow_provider_lancens.conditions import Condition
    from airflow_provider_lancens.spark.table.column_history import MatchedColumns
    from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable


def check_range(target: ResolvedTable, after_version: int, version: int) -> None:
    """Check that the first version of a range is a version, and not newer than the last one.

    Raises:
        InvalidInputError: (13) it isn't, or it is staged.
    """
    if not is_whole_number(after_version, at_least=0):
        problem = "isn't a version; expected a whole number of at least 0, or None"
    elif is_detached(after_version) and after_version != version:
        problem = "is a staged version, which no version follows; pass the version that it was published as"
    elif after_version > version:
        problem = f"is newer than version={version}"
    else:
        return
    raise spec_errors.InvalidInputError(f"table {target.id}: after_version={after_version!r} {problem}")


def check_precedes(target: ResolvedTable, after_version: int, newest: LanceDataset) -> None:
    """Check that a staged version follows the older one: otherwise its row ids are others' rows there.

    Raises:
        InvalidInputError: (13) it was staged onto a version before that.
    """
    if not is_detached(newest.version):
        return
    transaction = newest.read_transaction(newest.version)
    if transaction is not None and after_version > transaction.read_version:
        raise spec_errors.InvalidInputError(
            f"table {target.id}: after_version={after_version}: version {newest.version} was staged "
            f"onto version {transaction.read_version}; expected that version or an older one"
        )


def check_labels(target: ResolvedTable, schema: pa.Schema) -> None:
    """Check that no column has the name of a label, which a stream of the table may have.

    Raises:
        InvalidInputError: (13) one has.
    """
    if reserved := sorted({label.name for label in LABELS} & set(schema.names)):
        raise spec_errors.InvalidInputError(
            f"table {target.id}: columns: {reserved} are names of columns that changes have in addition to "
            "the table's; leave them out with columns=[...] of Changes.read"
        )


def check_same_kinds(
    target: ResolvedTable, before: LanceDataset, schema: pa.Schema, match: MatchedColumns
) -> None:
    """Check that no overwrite has given a column another kind of type, such as numbers after text.

    Its earlier values would be null in the rows that were removed, as if the column had been added.

    Args:
        target: the table.
        before: the version with the earlier values.
        schema: the columns that are read.
        match: these columns in that version.

    Raises:
        InvalidInputError: (13) one has.
    """
    earlier, unmatched = before.schema, match.replaced - match.names.keys() - match.unknown
    if replaced := [name for name in schema.names if name in unmatched and name in earlier.names]:
        types = ", ".join(
            f"{name!r} was {earlier.field(name).type}, and is {schema.field(name).type}" for name in replaced
        )
        raise spec_errors.InvalidInputError(
            f"table {target.id}: columns: an overwrite after version {before.version} has given a column "
            f"another kind of type: {types}. The earlier values can't be read as values of that type: leave "
            "the column out with columns=[...] of Changes.read, or read the whole table with "
            "if_unavailable='read_all'"
        )


def check_filter_at(
    target: ResolvedTable,
    read: LanceDataset,
    wanted: LanceDataset,
    names: Mapping[str, str],
    condition: Condition,
) -> None:
    """Check that a filter means the same for the rows of another version: that its columns have their names.

    Args:
        target: the table.
        read: the version with these rows.
        wanted: the version for which the filter is valid.
        names: the names of the columns of `wanted` in `read`, without columns that `read` lacks.
        condition: the filter.

    Raises:
        InvalidInputError: (13) a column of the filter was added, renamed or replaced between the versions.
    """
    kept = _same_columns(read, wanted, names)
    if not condition.columns.issubset(kept):
        raise spec_errors.InvalidInputError(
            f"table {target.id}: filter {condition.text!r}: a column that it uses was added, renamed or "
            f"replaced between versions {read.version} and {wanted.version}, so that it can't select rows of "
            "both; filter the DataFrame instead"
        )


def _same_columns(read: LanceDataset, wanted: LanceDataset, names: Mapping[str, str]) -> list[str]:
    """Return the columns that have the same name, and nested fields of the same names, in both versions."""
    fields = [{field.name(): field for field in dataset.lance_schema.fields()} for dataset in (read, wanted)]
    return [
        name
        for name, there in names.items()
        if name == there and _is_same(*(by_name[name] for by_name in fields))
    ]


def _is_same(read: Any, wanted: Any) -> bool:
    if read.id() == wanted.id():
        return described_fields([read]) == described_fields([wanted])
    return not read.children() or bool(read.to_arrow().type == wanted.to_arrow().type)
