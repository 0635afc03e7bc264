"""Tables that Spark can't read, as a metastore describes them."""

from typing import Any

import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from airflow_provider_lancens.namespace.hive.foreign_tables import foreign_table

ORC = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
ACID = "is an ACID table (transactional=true), whose files only Hive can merge"


@pytest.mark.parametrize(
    ("fields", "obstacle"),
    [
        ({}, None),
        ({"parameters": None}, None),
        ({"parameters": {"transactional": "TRUE"}}, ACID),
        ({"parameters": {"transactional": "true", "transactional_properties": "insert_only"}}, ACID),
        ({"parameters": {"transactional": "false"}}, None),
        ({"tableType": "MATERIALIZED_VIEW"}, "is a materialized view"),
        ({"parameters": {"table_type": "HUDI"}}, "is a Hudi table, which Spark reads with the jars of"),
        ({"sd": None}, "has no SerDe"),
    ],
)
def test_a_table_has_the_obstacle_that_its_entry_tells(fields: dict[str, Any], obstacle: str | None) -> None:
    storage = ttypes.StorageDescriptor(serdeInfo=ttypes.SerDeInfo(serializationLib=ORC))
    given = {"tableType": "MANAGED_TABLE", "sd": storage, "parameters": {}, **fields}

    found = foreign_table(ttypes.Table(tableName="t", **given)).obstacle

    assert found == obstacle or (obstacle and found and found.startswith(obstacle))
