"""OpenLineage names of Lance tables and files, as other tools use them; converts a table's asset.

They follow OpenLineage's specification (Naming): a Hive table is ``database.table`` in ``hive://host:port``,
a Glue table ``table/database/table`` in ``arn:aws:glue:region:account``, a table of a REST service
``database.table`` in the service's address, a table in a folder and a file its path in ``file`` or its
key in ``s3://bucket``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_lancens.assets.table import LanceTable
from airflow_provider_lancens.hooks.airflow_errors import AirflowException
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId

if TYPE_CHECKING:
    from airflow.sdk import Asset
    from openlineage.client.event_v2 import Dataset

_DEFAULT_CATALOG = "hive"
_GLUE, _ANY_CATALOG = "lance_glue", "lance"
_WILD = re.compile(r"[*?\[]")
_OBJECT_STORES = ("s3", "gs", "abfs", "abfss")


class DatasetName(NamedTuple):
    """A dataset of OpenLineage."""

    namespace: str
    name: str


def convert_asset_to_openlineage(
    asset: Asset,
    lineage_context: Any,  # noqa: ARG001 - Airflow passes it by this name
) -> Dataset | None:
    """Return the OpenLineage dataset of an asset, without a call to the metastore.

    Args:
        asset: the asset of a Lance table.
        lineage_context: Airflow's; unused, since the asset names its authority.

    Returns:
        None if no Lance connection has the asset's authority as its id, or the table has no name: see
        `name_of_table`.
    """
    from openlineage.client.event_v2 import Dataset

    lance_table = LanceTable.parse(asset.uri)
    try:
        hook = LanceHook.for_connection(lance_table.authority)
    except AirflowException:
        return None
    named = name_of_table(hook, lance_table.table)
    return None if named is None else Dataset(namespace=named.namespace, name=named.name)


def name_of_table(hook: LanceHook, table: TableId) -> DatasetName | None:
    """Return the name of a table, without a call to the metastore.

    Args:
        hook: the hook of its connection.
        table: its identifier.

    Returns:
        None if the connection doesn't specify the Glue catalog or region, or has neither root nor service:
        then the dataset can't be identified with the names that other tools give.
    """
    endpoint = hook.endpoint_properties()
    if hook.conn_type == _GLUE:
        return _name_in_glue(table, endpoint.get("region"), endpoint.get("catalog_id"))
    if hook.conn_type == _ANY_CATALOG:
        return _name_in_catalog(table, endpoint.get("uri"), endpoint.get("root"))
    # The first of several servers: the others serve the same metastore.
    address = endpoint["uri"].partition(",")[0].partition("://")[2]
    return DatasetName(f"hive://{address}", _name_in_hive(table))


def name_of_files(path: str) -> DatasetName | None:
    """Return the name of a file or a folder; for a pattern, of the folder above its first wildcard.

    Args:
        path: an absolute path or a URL, as in the ``paths`` of a `FileSource`.

    Returns:
        None if the specification names no files on such a storage, or the path contains credentials.
    """
    # Loads the specification's errors: not where a DAG is parsed.
    from airflow_provider_lancens.namespace.locations import is_local, normalize
    from airflow_provider_lancens.redaction import has_credentials

    if has_credentials(path):
        return None
    location = normalize(path)
    if is_local(location):
        return DatasetName("file", _above_wildcards(location) or "/")
    scheme, _, rest = location.partition("://")
    authority, _, key = rest.partition("/")
    if scheme not in _OBJECT_STORES or not authority or _WILD.search(authority):
        return None
    return DatasetName(f"{scheme}://{authority}", _above_wildcards(key) or "/")


def _above_wildcards(path: str) -> str:
    wild = _WILD.search(path)
    return path.rstrip("/") if wild is None else path[: wild.start()].rpartition("/")[0]


def _name_in_glue(table: TableId, region: str | None, account: str | None) -> DatasetName | None:
    if not region or not account:
        return None
    return DatasetName(f"arn:aws:glue:{region}:{account}", f"table/{table.namespace.name}/{table.name}")


def _name_in_catalog(table: TableId, uri: str | None, root: str | None) -> DatasetName | None:
    if uri:
        return DatasetName(uri.rstrip("/"), ".".join(table.parts))
    folder = name_of_files(root) if root else None
    if folder is None:
        return None
    # Lance chooses the folder of a table in a database by chance.
    name = f"{table.name}.lance" if len(table) == 1 else ".".join(table.parts)
    above = folder.name.rstrip("/")
    return DatasetName(folder.namespace, f"{above}/{name}" if above or folder.namespace == "file" else name)


def _name_in_hive(table: TableId) -> str:
    # Tools without catalogs see only tables in the catalog "hive".
    return ".".join(table.parts[1:] if len(table) > 2 and table.parts[0] == _DEFAULT_CATALOG else table.parts)
