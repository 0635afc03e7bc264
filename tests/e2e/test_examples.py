"""The example DAGs of the documentation, run by Airflow one after the other in one process."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from nycflights.tables import TABLES

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.conformance.foreign import make_foreign_table
from tests.e2e.dag_run import TREE, DagRun, dag_runs
from tests.e2e.example_connections import BUCKET, connections_of
from tests.e2e.outcomes import Outcome, outcomes_in, xcom
from tests.integration.airflow.tables import Table
from tests.pyspark_versions import has_data_sources
from tests.servers.glue_double import REGION, GlueDouble
from tests.support.backends import Backend

EXAMPLES = TREE / "example_dags"
NAMES = (
    "wait_for_version",
    "new_flights",
    "cascade_safely",
    "advance_version",
    "glue_assumed_role",
    "spark_pinned_read",
    "spark_files",
    "spark_own_function",
    "maintain_table",
    "maintain_hourly",
    "embeddings",
    "daily_readings",
    "mean_temperature",
    "correct_and_restore",
    "schema_changes",
    "large_values",
    "write_audit_publish",
    "sql_checks",
    "increments",
    "stream_readings",
    "release_daily",
)
REJECTED = "write_audit_publish, with rows in error"
PARAMS = {"wait_for_version": {"table": "sales$orders"}}

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def namespace(metastore: MetastoreServer, root: Path) -> Iterator[Hive2Namespace]:
    with closing(Hive2Namespace(uri=metastore.uri, root=str(root))) as opened:
        yield opened


@pytest.fixture(scope="module")
def scratch(metastore: MetastoreServer, namespace: Hive2Namespace, root: Path) -> str:
    """The namespace that an example drops, with a Lance table and a foreign one."""
    server = Backend("a metastore", "Hive2Namespace", {"uri": metastore.uri, "root": str(root)})
    Table(namespace, "scratch", "orders").declare()
    make_foreign_table(server, ["scratch"], "tmp_rows")
    return "scratch"


@pytest.fixture(scope="module")
def outcomes(
    airflow_home: dict[str, str],
    metastore: MetastoreServer,
    root: Path,
    glue: GlueDouble,
    namespace: Any,
    scratch: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Outcome]:
    """The results of each example's tasks, by the example's file."""
    glue.client("s3").create_bucket(Bucket=BUCKET)
    params = {**PARAMS, "stream_readings": {"folder": str(tmp_path_factory.mktemp("readings"))}}
    runs = [(str(EXAMPLES / f"{name}.py"), json.dumps(params.get(name, {}))) for name in NAMES]
    runs += [(str(EXAMPLES / "write_audit_publish.py"), json.dumps({"day": 1, "errors": 3}))]
    runs[6:6] = [("--session", "local[2]")]  # shared by the tasks of later examples, which is quicker
    settings = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
        "PYTHONPATH": str(EXAMPLES),
        "LANCE_EXAMPLE_POLL": "1",
        "AWS_ENDPOINT_URL_GLUE": glue.endpoint,  # so that the connection looks like one to AWS
        **connections_of(metastore, glue, root),
    }
    flights = Table(namespace, *TABLES["flights"].split("$"))
    lance.write_dataset(_flights_of(1, 1), location := flights.declare())
    with dag_runs([*chain(*runs)], {**os.environ, **airflow_home, **settings}) as run:
        _write_while_somebody_waits(run, Table(namespace, "sales", "orders"))
        run.wait_for(f"{flights} is at version 1; waiting for a version greater than 1")
        lance.write_dataset(_flights_of(1, 2, 2), location, mode="append")
        run.result()
    return dict(zip([*NAMES, REJECTED], outcomes_in(run.log), strict=True))


def _flights_of(*months: int) -> pa.Table:
    return pa.table({"month": pa.array(months, pa.int32())})


def _write_while_somebody_waits(run: DagRun, orders: Table) -> None:
    run.wait_for("does not exist; waiting for a version of at least 1")
    location = orders.declare()
    orders.advance()
    run.wait_for("is at version 1; waiting for a version greater than 1")
    lance.dataset(location).update_config({"note": "no data"})
    run.wait_for("is at version 2; waiting for a version greater than 1")
    orders.advance()


def test_a_reader_gets_the_version_that_changed_data(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["wait_for_version"]
    assert xcom(outcome, "wait_until_filled")["version"] == 1
    assert (xcom(outcome, "wait_for_more")["version"], xcom(outcome, "count_rows")) == (3, 2)
    assert xcom(outcome, "release")["outcome"] == "done"
    assert list(xcom(outcome, "wait_for_any")) == ["sales$orders"]


def test_a_reader_of_new_rows_reads_rows_committed_since_its_start(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["new_flights"]
    assert xcom(outcome, "wait_for_flights")["version"] == 2
    assert xcom(outcome, "what_came") == {"2013-01": 1, "2013-02": 2}


def test_a_namespace_is_dropped_as_planned(outcomes: dict[str, Outcome], namespace: Hive2Namespace) -> None:
    outcome = outcomes["cascade_safely"]
    planned, dropped = xcom(outcome, "plan"), xcom(outcome, "drop")
    assert planned["plan"]["lance_tables"] == ["scratch$orders"]
    assert xcom(outcome, "approve") == planned["plan"]["foreign_tables"] == ["scratch$tmp_rows"]
    assert (planned["outcome"], dropped["outcome"]) == ("planned", "done")
    assert "scratch" not in namespace.list_namespaces({"id": []}).namespaces


def test_a_version_is_advanced_to_another_writers_commit(
    outcomes: dict[str, Outcome], namespace: Hive2Namespace
) -> None:
    outcome = outcomes["advance_version"]
    moved = {"table": "returns$parcels", "version": 1, "previous_version": 0, "outcome": "done"}
    assert xcom(outcome, "advance").items() >= moved.items()
    assert xcom(outcome, "check")["verdict"] == "consistent"
    assert namespace.describe_table({"id": ["returns", "parcels"]}).version == 1


def test_glue_and_s3_are_called_with_the_assumed_role(outcomes: dict[str, Outcome], glue: GlueDouble) -> None:
    outcome = outcomes["glue_assumed_role"]
    assert xcom(outcome, "declare")["location"].startswith(f"s3://{BUCKET}/")
    assert xcom(outcome, "wait")["version"] == xcom(outcome, "write") == 1
    created = next(request for request in glue.requests if request.body.get("DatabaseName") == "sales")
    assert created.headers["X_AMZ_SECURITY_TOKEN"]
    assert glue.properties["access_key_id"] not in created.headers["AUTHORIZATION"]


def test_a_task_on_glue_has_a_button_that_opens_its_page(outcomes: dict[str, Outcome]) -> None:
    console = f"https://{REGION}.console.aws.amazon.com/glue/home?region={REGION}#/v2/data-catalog"
    in_glue = f"{console}/tables/view/orders?database=sales"
    tasks = outcomes["glue_assumed_role"]
    assert tasks["create"]["links"].pop("Lance page").endswith("&namespace=sales")
    assert tasks["create"]["links"] == {"Database in AWS Glue": f"{console}/databases/view/sales"}
    for task in ("declare", "wait"):  # its S3 isn't Amazon's
        assert "&table=sales%24orders" in tasks[task]["links"].pop("Lance page")
        assert tasks[task]["links"] == {"Table in AWS Glue": in_glue, "Data in Amazon S3": ""}


def test_the_dag_of_the_readme_ingests_a_day_and_waits_for_it(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["daily_readings"]
    assert (xcom(outcome, "ingest")["inserted"], xcom(outcome, "wait")["version"]) == (24, 1)


def test_the_second_dag_of_the_readme_reads_the_table_without_spark(outcomes: dict[str, Outcome]) -> None:
    mean = 15 + sum(hour % 7 for hour in range(24)) / 24
    assert xcom(outcomes["mean_temperature"], "mean_temperature") == mean


def test_spark_reads_the_awaited_version(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["spark_pinned_read"]
    assert (xcom(outcome, "ingest")["inserted"], xcom(outcome, "wait")["version"]) == (24, 1)
    assert xcom(outcome, "summarize")["inserted"] == 1


def test_a_table_is_compacted_indexed_and_cleaned_up_and_keeps_recent_versions(
    outcomes: dict[str, Outcome],
) -> None:
    outcome = outcomes["maintain_table"]
    assert xcom(outcome, "delete_nights")["deleted"] == 6
    assert xcom(outcome, "compact")["fragments_added"] == 1
    assert xcom(outcome, "index")["rows"] == 18
    assert xcom(outcome, "clean_up")["versions"] == 0
    assert xcom(outcome, "remove_orphans")["files"] == 0


def test_hourly_maintenance_finds_nothing_due(outcomes: dict[str, Outcome]) -> None:
    did = xcom(outcomes["maintain_hourly"], "maintain")
    assert {step["outcome"] for step in did["steps"].values()} == {"unchanged"}
    assert did["steps"]["compact"]["reason"].startswith(
        "0 of 1 fragments are small and can be merged (min_small_"
    )
    [indexed] = [step["reason"] for name, step in did["steps"].items() if name.startswith("index.")]
    assert indexed == "0.0% of 18 rows are not indexed (max_unindexed_share=0.1)"
    assert did["steps"]["expire"]["reason"] == "no version can be removed"


def test_images_are_found_by_similarity_at_the_pinned_version(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["embeddings"]
    assert (xcom(outcome, "ingest")["inserted"], xcom(outcome, "ingest")["version"]) == (1797, 1)
    computed, index = xcom(outcome, "compute"), xcom(outcome, "index")
    assert (computed["computed"], computed["nulls"], computed["files"]) == (1797, 0, 4)
    assert (index["index"], index["rows"], index["segments"]) == ("embedding_idx", 1797, 4)
    assert index["version"] == xcom(outcome, "wait")["version"] == computed["version"] + 1
    answer = xcom(outcome, "look_alikes")
    assert (answer["version"], answer["asked"]) == (index["version"], 90)
    assert answer["same_digit"] > 0.9
    assert xcom(outcome, "release")["outcome"] == "done"


def test_files_are_ingested_as_specified(outcomes: dict[str, Outcome], namespace: Hive2Namespace) -> None:
    assert xcom(outcomes["spark_files"], "ingest")["inserted"] == 10
    table = lance.dataset(namespace.describe_table({"id": ["shops", "prices"]}).location)
    assert table.schema.names == ["shop", "article_id", "price"]
    assert pa.types.is_decimal(table.schema.field("price").type)


def test_a_tasks_own_pyspark_reads_one_version_and_writes_two_tables(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["spark_own_function"]
    split = xcom(outcome, "split")
    assert xcom(outcome, "collect")["inserted"] == split["warm"]["inserted"] + split["cold"]["inserted"] == 24
    assert [split[name]["version"] for name in ("warm", "cold")] == [1, 1]


def test_a_corrected_day_is_compared_with_the_one_before_and_undone(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["correct_and_restore"]

    restored = xcom(outcome, "restore")

    assert xcom(outcome, "turnover") == [30.0, 45.0]
    assert (restored["version"], restored["restored_version"], restored["outcome"]) == (3, 1, "done")
    assert [one["version"] for one in restored["undone"]] == [2]


def test_columns_follow_the_rows_and_the_tasks(
    outcomes: dict[str, Outcome], namespace: Hive2Namespace
) -> None:
    outcome = outcomes["schema_changes"]
    assert (xcom(outcome, "first")["version"], xcom(outcome, "later")["version"]) == (1, 4)
    changed = ["parcel_id", "delivered_at", "embedding", "grams", "carrier"]
    assert xcom(outcome, "alter")["columns"] == changed
    table = lance.dataset(namespace.describe_table({"id": ["post", "parcels"]}).location)
    names = ["parcel_id", "kilos", "recipient", "delivered_at", "embedding", "grams"]
    assert table.schema.names == names
    assert table.to_table().to_pylist()[-1] == dict(
        zip(names, [2, 5_000_000_002, {"country": "DE"}, None, None, 5_000_000_002_000], strict=True)
    )


def test_large_values_are_referred_to_and_read_by_ranges(
    outcomes: dict[str, Outcome], namespace: Hive2Namespace
) -> None:
    outcome = outcomes["large_values"]
    assert xcom(outcome, "durations") == {"0.wav": 1.0, "1.wav": 2.0, "2.wav": 3.0}
    location = str(namespace.describe_table({"id": ["radio", "recordings"]}).location)
    assert not list(Path(location).glob("data/*/*.blob"))


def test_checked_rows_are_published(outcomes: dict[str, Outcome], namespace: Hive2Namespace) -> None:
    outcome = outcomes["write_audit_publish"]
    staged, published = xcom(outcome, "stage"), xcom(outcome, "publish")
    assert (staged["version"], staged["outcome"], staged["previous_version"]) == (None, "staged", 1)
    assert {outcome[check]["state"] for check in ("check_columns", "check_table")} == {"success"}
    assert (published["version"], published["inserted"], published["outcome"]) == (2, 100, "done")
    assert outcome["discard"]["state"] == "skipped"


def test_a_version_is_checked_by_sql(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["sql_checks"]
    assert {name: task["state"] for name, task in outcome.items() if task["state"] != "success"} == {}
    assert xcom(outcome, "wait")["version"] == 2
    rows = [row["__data__"] for row in xcom(outcome, "largest")]  # of tuples
    assert rows == [[99, 109.0], [98, 108.0], [97, 107.0]]
    assert "SQL reads table ledger$payments at version 1" in outcome.log


def test_rows_that_fail_the_check_are_discarded(
    outcomes: dict[str, Outcome], namespace: Hive2Namespace
) -> None:
    outcome = outcomes[REJECTED]
    tasks = ("stage", "check_table", "check_columns", "publish", "discard")
    states = [outcome[task]["state"] for task in tasks]
    assert states == ["success", "success", "failed", "upstream_failed", "success"]
    staged = xcom(outcome, "stage")["staged_version"]
    assert f"(of ledger$payments at version {staged})" in outcome.log
    assert "Column: amount\n\tCheck: min," in outcome.log.replace("\\n", "\n").replace("\\t", "\t")
    assert xcom(outcome, "discard")["outcome"] == "done"
    location = str(namespace.describe_table({"id": ["ledger", "payments"]}).location)
    assert lance.dataset(location).count_rows() == 100


def test_an_increment_is_computed_up_to_the_version_that_was_ingested(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["increments"]
    ingested, found, moved = (xcom(outcome, task) for task in ("ingest", "changes", "move"))
    assert (found["previous_version"], found["version"]) == (None, ingested["version"])
    assert xcom(outcome, "compute")["inserted"] == 1
    assert moved["version"] == ingested["version"]


@has_data_sources
def test_streams_write_what_has_arrived(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["stream_readings"]
    written, kept = xcom(outcome, "write"), xcom(outcome, "keep")
    assert (written["version"], written["epochs"], written["inserted"]) == (1, 1, 10)
    assert (kept["version"], kept["inserted"]) == (1, 5)


def test_tables_of_a_release_set_are_read_at_its_versions(
    outcomes: dict[str, Outcome], namespace: Hive2Namespace
) -> None:
    outcome = outcomes["release_daily"]
    released, found = xcom(outcome, "release"), xcom(outcome, "find")
    assert (released["version"], found["version"]) == (1, 1)
    assert released["tables"] == {"store$orders": 1, "store$customers": 1}
    location = namespace.describe_table({"id": ["store", "orders"]}).location
    assert found["store$orders"] == {"table": "store$orders", "version": 1, "location": location}
    assert xcom(outcome, "join")["inserted"] == 10
