"""What a task that ran reports to OpenLineage, as the JSON of its event."""

import json
from typing import Any

from openlineage.client.event_v2 import Dataset
from openlineage.client.serde import Serde

from airflow_provider_lancens.operators.lance_operator import LanceOperator

SPECIFIED = ("_producer", "_schemaURL")


def reported(task: LanceOperator) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the inputs and the outputs, without the fields that all facets have."""
    facets = task.get_openlineage_facets_on_complete(None)
    assert (facets.run_facets, facets.job_facets) == ({}, {})
    return [_as_json(one) for one in facets.inputs], [_as_json(one) for one in facets.outputs]


def _as_json(dataset: Dataset) -> dict[str, Any]:
    plain: dict[str, Any] = _plain(json.loads(Serde.to_json(dataset)))
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in SPECIFIED}
    return value
