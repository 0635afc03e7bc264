"""What Lance needs to change columns: paths of fields, indices that are in the way, and the calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.schema.merge_plan import Path, lance_path, overlaps

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset


def alter(dataset: LanceDataset, types: Mapping[Path, pa.DataType]) -> None:
    """Convert columns or nested fields to other types, in one commit."""
    changes: list[Any] = [{"path": lance_path(path), "data_type": to} for path, to in types.items()]
    dataset.alter_columns(*changes)


def file_format(dataset: LanceDataset) -> tuple[int, int]:
    """Return the version of a dataset's file format."""
    major, _, minor = dataset.data_storage_version.partition(".")
    return (int(major), int(minor or 0)) if major.isdecimal() else (0, 1)


def indices_over(dataset: LanceDataset, paths: Collection[Path]) -> list[tuple[str, Path]]:
    """Return the indices on any of these columns or nested fields, with the path of the indexed one."""
    by_id = dict(_paths(dataset.lance_schema.fields()))
    indexed = [
        (index.name, by_id[number])
        for index in dataset.describe_indices()
        for number in index.fields
        if number in by_id
    ]
    return [(name, path) for name, path in indexed if overlaps(path, paths)]


def _paths(fields: Iterable[Any], parent: Path = ()) -> Iterator[tuple[int, Path]]:
    for one in fields:
        path = (*parent, one.name())
        yield one.id(), path
        yield from _paths(one.children(), path)
