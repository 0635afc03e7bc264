"""Fingerprint of files: their locations, sizes and states, and the projection applied to them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.file_source import FileSource
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
from airflow_provider_lancens.spark.write.files.file_system import SourceFile, find_files

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

_IGNORED = frozenset({"storage_options", "tasks"})
"""Fields that do not affect the rows."""
_MARK = "files-"


def fingerprint_files(
    source: FileSource, namespace: NamespaceSpec | LanceNamespace, table: TableId | str
) -> str | None:
    """Return a `fingerprint` for `write_files`, which changes if a file or a field of the source does.

    Args:
        source: the files.
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: the table to write to, whose storage options may be needed to reach the files.

    Returns:
        Text to compare; None if a path has no files any more, so that there is nothing to compare.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        ServiceUnavailableError: (17) the storage returned an unexpected response, or none.
    """
    with resolved_table(namespace, table) as target:
        return fingerprint_of_files(source, target.dataset.storage_options)


def fingerprint_of_files(source: FileSource, storage_options: Mapping[str, str]) -> str | None:
    """Return the same as `fingerprint_files`, given the storage options of the table to write to."""
    try:
        files = find_files(source.paths, source.options_over(storage_options))
    except spec_errors.InvalidInputError:
        return None
    return fingerprint_of_found(source, files)


def fingerprint_of_found(source: FileSource, files: Sequence[SourceFile]) -> str:
    """Return the same as `fingerprint_files`, given the files that the source's paths match."""
    settings = {f.name: getattr(source, f.name) for f in fields(source) if f.name not in _IGNORED}
    return _MARK + hashlib.sha256(repr((sorted(files), settings)).encode()).hexdigest()


def is_of_files(fingerprint: str | None) -> bool:
    """Return whether text is a fingerprint of files, rather than one of the caller's own."""
    return fingerprint is not None and fingerprint.startswith(_MARK)
