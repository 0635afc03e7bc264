"""Converts a Lance table's asset to an OpenLineage data set, under the name that other tools use for it.

Names follow OpenLineage's specification (Naming): a Hive table is ``database.table`` in ``hive://host:port``,
a Glue table ``table/database/table`` in ``arn:aws:glue:region:account``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.assets.table import LanceTable
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId

if TYPE_CHECKING:
    from airflow.providers.common.compat.openlineage.facet import Dataset
    from airflow.sdk import Asset

_DEFAULT_CATALOG = "hive"
_GLUE = "lance_glue"


def convert_asset_to_openlineage(
    asset: Asset,
    lineage_context: Any,  # noqa: ARG001 - Airflow passes it by this name
) -> Dataset | None:
    """Return the OpenLineage data set of an asset, without a call to the metastore.

    Args:
        asset: the asset of a Lance table.
        lineage_context: Airflow's; unused, since the asset names its connection.

    Returns:
        None if the connection doesn't specify the Glue catalog or region: then the data set can't be
        identified with that of other tools.
    """
    from airflow.providers.common.compat.openlineage.facet import Dataset

    named = LanceTable.parse(asset.uri)
    hook = LanceHook.for_connection(named.lance_conn_id)
    endpoint = hook.endpoint_properties()
    if hook.conn_type == _GLUE:
        return _in_glue(Dataset, named.table, endpoint.get("region"), endpoint.get("catalog_id"))
    # The first of several servers: the others serve the same metastore.
    address = endpoint["uri"].partition(",")[0].partition("://")[2]
    return Dataset(namespace=f"hive://{address}", name=_hive_name(named.table))


def _in_glue(dataset: type[Any], table: TableId, region: str | None, account: str | None) -> Dataset | None:
    if not region or not account:
        return None
    name = f"table/{table.namespace.name}/{table.name}"
    made: Dataset = dataset(namespace=f"arn:aws:glue:{region}:{account}", name=name)
    return made


def _hive_name(table: TableId) -> str:
    # Tools without catalogs see only tables in the catalog "hive".
    return ".".join(table.parts[1:] if len(table) > 2 and table.parts[0] == _DEFAULT_CATALOG else table.parts)
