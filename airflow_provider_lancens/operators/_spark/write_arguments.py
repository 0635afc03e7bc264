"""Arguments of operators for writing rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_lancens.spark.options import (
    Mode,
    OnExistingKey,
    TableLayout,
    WriteIdentity,
    WriteRequest,
    change_of,
)


def write_request(
    layout: Mapping[str, Any], mode: Mode, on_existing_key: OnExistingKey = "redo", **arguments: Any
) -> WriteRequest:
    """Return the request that an operator's arguments describe.

    Args:
        layout: the fields of `TableLayout`.
        mode: what the write does.
        on_existing_key: what to do if its key was committed before.
        arguments: see `change_of`.

    Raises:
        ValueError: an argument is invalid, or doesn't go with another one; the message names it.
    """
    try:
        options = TableLayout(**layout)
    except (TypeError, ValueError) as error:
        raise ValueError(f"options: {error}") from error
    try:
        return WriteRequest(
            change_of(mode, **arguments), WriteIdentity(on_existing_key=on_existing_key), options
        )
    except Exception as error:  # an InvalidInputError: importing its class would slow down parsing all DAGs
        raise ValueError(str(error)) from error
