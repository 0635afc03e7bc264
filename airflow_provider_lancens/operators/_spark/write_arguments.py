"""The arguments of operators that say how to write rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_lancens.spark.options import WriteOptions, WriteRequest


def write_request(layout: Mapping[str, Any], **arguments: Any) -> WriteRequest:
    """Return the request that an operator's arguments describe.

    Args:
        layout: the fields of `WriteOptions`.
        arguments: the fields of `WriteRequest`.

    Raises:
        ValueError: an argument is invalid, or doesn't go with another one; the message names it.
    """
    try:
        options = WriteOptions(**layout)
    except (TypeError, ValueError) as error:
        raise ValueError(f"options: {error}") from error
    try:
        return WriteRequest(**arguments, options=options)
    except Exception as error:  # an InvalidInputError: importing its class would slow down parsing all DAGs
        raise ValueError(str(error)) from error
