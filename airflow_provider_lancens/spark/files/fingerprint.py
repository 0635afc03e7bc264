"""Whether files are still what they were: their places, sizes and states, and what is taken of them."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import TYPE_CHECKING

from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.spark.files.source import FileSource
from airflow_provider_lancens.spark.files.store import find_files
from airflow_provider_lancens.spark.target import NamespaceSpec, described

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

_NOT_OF_THE_ROWS = frozenset({"storage_options", "tasks"})


def fingerprint_files(
    source: FileSource, namespace: NamespaceSpec | LanceNamespace, table: TableId | str
) -> str | None:
    """The `fingerprint` of a `write_files`: differs where a file or anything asked of the files does.

    Args:
        source: the files.
        namespace: the namespace that knows the table, or the words that make one.
        table: the table that they are written to, whose storage options may be what reaches them.

    Returns:
        Words to compare; None where a path has no file any more: what is gone tells nothing.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        ServiceUnavailableError: (17) the storage didn't answer as expected.
    """
    with described(namespace, table) as target:
        options = source.options_over(target.dataset.storage_options)
    try:
        files = find_files(source.paths, options)
    except InvalidInputError:
        return None
    words = {f.name: getattr(source, f.name) for f in fields(source) if f.name not in _NOT_OF_THE_ROWS}
    return hashlib.sha256(repr((sorted(files), words)).encode()).hexdigest()
