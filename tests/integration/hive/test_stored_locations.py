"""Locations as servers take and store them."""

from contextlib import closing
from pathlib import Path

from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace, Hive3Namespace
from airflow_provider_lancens.namespace.namespace_properties import LOCATION
from tests.conformance.codes import refused_with


def test_a_location_in_the_warehouse_of_managed_tables_is_the_callers_input(
    hms4: MetastoreServer, database: str, tmp_path: Path
) -> None:
    with closing(Hive3Namespace(uri=hms4.uri, root=str(tmp_path))) as namespace:
        namespace.create_namespace({"id": ["hive", database]})
        warehouse = namespace.describe_namespace({"id": ["hive"]}).properties[LOCATION]

        with refused_with(ErrorCode.INVALID_INPUT, "managed warehouse", "property 'root'"):
            namespace.declare_table(
                {"id": ["hive", database, "t"], "location": f"{warehouse}/{database}/t.lance"}
            )


def test_a_created_namespace_has_the_location_that_is_stored(
    metastore: MetastoreServer, database: str, tmp_path: Path
) -> None:
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        made = namespace.create_namespace(
            {"id": [database], "properties": {LOCATION: f"{tmp_path}/{database.upper()}.db"}}
        )
        described = namespace.describe_namespace({"id": [database]})

    assert made.properties == described.properties
