"""Hive tables of a connection's metastore, read by Spark in a process with Hive support."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import airflow_errors
from airflow_provider_lancens.spark.hive_tables import CATALOG, URIS
from airflow_provider_lancens.spark.session import opened_session
from tests.pyspark_versions import has_hive_4_client
from tests.support.brought_tables import BROUGHT, SECONDS, bring, client_of_hive_4, rows

Connect = Callable[..., str]

pytestmark = pytest.mark.timeout(SECONDS + 20)


@pytest.mark.thorough
@pytest.mark.parametrize(("release", "conn_type"), [("metastore", "lance_hive2"), ("hms3", "lance_hive3")])
def test_hive_tables_come_with_their_partition_columns_and_types(
    request: pytest.FixtureRequest,
    connect: Connect,
    database: str,
    tmp_path: Path,
    release: str,
    conn_type: str,
) -> None:
    server: MetastoreServer = request.getfixturevalue(release)
    connect(conn_type=conn_type, host=server.uri, extra={"root": str(tmp_path / "lake")})

    brought = rows(bring(database, tmp_path))

    assert brought == BROUGHT
    assert not (tmp_path / "metastore_db").exists()  # that of a Spark without a metastore


@pytest.mark.thorough
def test_a_metastore_of_hive_4_is_refused_with_what_to_set(
    hms4: MetastoreServer, connect: Connect, database: str, tmp_path: Path
) -> None:
    connect(conn_type="lance_hive3", host=hms4.uri, extra={"root": str(tmp_path / "lake")})

    done = bring(database, tmp_path)

    assert done.returncode
    assert f"the metastore {hms4.uri} is of Hive 4, which Spark's own client" in done.stderr
    assert "(code 0, UNSUPPORTED)" in done.stderr


@pytest.mark.thorough
@has_hive_4_client
def test_tables_of_hive_4_come_with_hives_own_client(
    hms4: MetastoreServer, connect: Connect, database: str, tmp_path: Path
) -> None:
    connect(conn_type="lance_hive3", host=hms4.uri, extra={"root": str(tmp_path / "lake")})
    brought = rows(bring(database, tmp_path, **client_of_hive_4()))

    assert brought == BROUGHT


@pytest.mark.thorough
def test_a_metastore_that_spark_cannot_reach_is_told(connect: Connect, tmp_path: Path) -> None:
    connect(conn_type="lance_hive2", host="thrift://127.0.0.1:9", extra={"root": str(tmp_path / "lake")})

    done = bring("sales", tmp_path, **{"spark.hadoop.hive.metastore.client.connect.retry.delay": "0"})

    assert done.returncode
    # Airflow 3.1.0 logs that Py4J's connection ends.
    last = [line for line in done.stderr.splitlines() if line and "py4j.clientserver" not in line][-1]
    assert "Spark can't read the tables of the metastore thrift://127.0.0.1:9" in last
    assert "Connection refused" in last
    assert "(code 17" in last


def test_a_session_without_hive_support_is_refused_at_once(spark: SparkSession) -> None:
    conf = {CATALOG: "hive", URIS: "thrift://hms:9083"}

    with (
        pytest.raises(Exception, match="the Spark session that is used has no Hive support") as raised,
        airflow_errors("opening a Spark session"),
        opened_session("tests", conf),
    ):
        pytest.fail("opened")

    assert f"start it with {CATALOG}=hive and {URIS}=thrift://hms:9083" in str(raised.value)
    assert spark.range(1).count() == 1  # it goes on
