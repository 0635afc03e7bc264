"""A Lance table's asset as an OpenLineage data set, by the name that other tools' lineage uses for it.

Names follow OpenLineage's specification (Naming): a Hive table is ``database.table`` in ``hive://host:port``,
a Glue table ``table/database/table`` in ``arn:aws:glue:region:account``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.assets.table import LanceTable
from airflow_provider_lancens.hooks.base import LanceHook
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
    """The data set that an asset is; no metastore is asked.

    Args:
        asset: a Lance table's.
        lineage_context: Airflow's; not needed, since the asset names its connection.

    Returns:
        None where the connection doesn't say which Glue catalog or region it is: then nobody could
        tell whether it is the data set that others speak of.
    """
    from airflow.providers.common.compat.openlineage.facet import Dataset

    named = LanceTable.parse(asset.uri)
    hook = LanceHook.for_connection(named.lance_conn_id)
    endpoint = hook.endpoint_properties()
    if hook.conn_type == _GLUE:
        return _in_glue(Dataset, named.table, endpoint.get("region"), endpoint.get("catalog_id"))
    # Of several servers the first: the others are the same metastore.
    address = endpoint["uri"].partition(",")[0].partition("://")[2]
    return Dataset(namespace=f"hive://{address}", name=_hive_name(named.table))


def _in_glue(dataset: type[Any], table: TableId, region: str | None, account: str | None) -> Dataset | None:
    if not region or not account:
        return None
    name = f"table/{table.namespace.name}/{table.name}"
    made: Dataset = dataset(namespace=f"arn:aws:glue:{region}:{account}", name=name)
    return made


def _hive_name(table: TableId) -> str:
    # The catalog "hive" is where every table lies that tools without catalogs see.
    return ".".join(table.parts[1:] if len(table) > 2 and table.parts[0] == _DEFAULT_CATALOG else table.parts)
