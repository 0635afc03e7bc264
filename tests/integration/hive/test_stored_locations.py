"""Locations as servers take and store them."""

from contextlib import closing
from pathlib import Path

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.namespace_properties import LOCATION


def test_a_created_namespace_has_the_location_that_is_stored(
    metastore: MetastoreServer, database: str, tmp_path: Path
) -> None:
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        made = namespace.create_namespace(
            {"id": [database], "properties": {LOCATION: f"{tmp_path}/{database.upper()}.db"}}
        )
        described = namespace.describe_namespace({"id": [database]})

    assert made.properties == described.properties
