"""Files as the source of an ingestion: checked where the DAG is parsed, read once its words are rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.spark.files.source import FileSource


def as_fields(source: FileSource | Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a source, to be rendered.

    Raises:
        ValueError: a field is unknown, or holds what Airflow's pages would show; the message names it.
    """
    if isinstance(source, FileSource):
        given = {field.name: getattr(source, field.name) for field in fields(source)}
        words = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    else:
        words = dict(source)
    try:
        FileSource.check_names(words)
    except ValueError as error:
        raise ValueError(f"source: {error}") from error
    if words.pop("storage_options", None):
        raise ValueError(
            "source: storage_options: Airflow's pages would show them; the files are read with those of "
            "the lance connection"
        )
    return words


def parsed(words: Mapping[str, Any]) -> FileSource:
    """The source that rendered fields describe.

    Raises:
        AirflowFailException: a field can't be what it is; the message names it.
    """
    try:
        return FileSource.parse(words)
    except ValueError as error:
        raise AirflowFailException(f"source: {error}") from error
