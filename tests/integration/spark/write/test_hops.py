"""How often a write of a DataFrame describes its table and looks up its key."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, LanceNamespace
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.operators.ingest import LanceAppendOperator
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.keys.key_search import RecordSearch
from tests.support.writes import write_table


@contextmanager
def calls_of(namespace: LanceNamespace) -> Iterator[Counter[str]]:
    """How often the block describes a table, and looks up a key."""
    calls: Counter[str] = Counter()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return real(*arguments, **options)

        return call

    describe = counted("describe", type(namespace).describe_table)
    with (
        patch.object(type(namespace), "describe_table", describe),
        patch.object(RecordSearch, "commit", counted("look up", RecordSearch.commit)),
    ):
        yield calls


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.range(10).selectExpr("id", "cast(id as string) as name")


@pytest.fixture(params=["dir", "storage", "impl"])
def namespace(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> Iterator[LanceNamespace]:
    """Lance's directory namespace, and a metastore with storage-managed or managed tables."""
    spec = NamespaceSpec("dir", {"root": str(tmp_path)})
    if request.param != "dir":
        properties = {"uri": request.getfixturevalue("metastore").uri, "root": str(tmp_path)}
        spec = NamespaceSpec("airflow_provider_lancens.namespace.Hive2Namespace", properties)
    connected = spec.connect()
    connected.create_namespace(CreateNamespaceRequest(id=[database]))
    managed_by = {"managed_by": request.param} if request.param != "dir" else None
    connected.declare_table(DeclareTableRequest(id=[database, "orders"], properties=managed_by))
    yield connected
    if hasattr(connected, "close"):
        connected.close()


def test_an_append_describes_its_table_once(
    namespace: LanceNamespace, database: str, frame: DataFrame
) -> None:
    table = f"{database}$orders"
    for key in ("december", "january"):
        write_table(frame, namespace, table, key=key)

    with calls_of(namespace) as calls:
        written = write_table(frame, namespace, table, key="february")

    assert (written.version, written.is_done) == (3, True)
    assert calls == {"describe": 1, "look up": 1}  # again only if the table has newer versions


@pytest.mark.parametrize("source", ["function", "files"])
def test_a_task_describes_its_table_once_and_looks_its_key_up_twice(
    metastore: MetastoreServer,
    connect: Callable[..., str],
    database: str,
    frame: DataFrame,
    tmp_path: Path,
    source: str,
) -> None:
    lake = connect(host=metastore.uri, extra={"root": str(tmp_path)})
    frame.write.parquet(str(tmp_path / "files"))
    files = {"format": "parquet", "paths": str(tmp_path / "files")}
    with closing(LanceHook.for_connection(lake)) as hook:
        namespace: Any = hook.get_conn()
        namespace.create_namespace(CreateNamespaceRequest(id=[database]))
        namespace.declare_table(DeclareTableRequest(id=[database, "orders"]))
        task = LanceAppendOperator(
            task_id="ingest",
            lance_conn_id=lake,
            table=f"{database}$orders",
            source=files if source == "files" else lambda _: frame,
        )
        context: Any = {
            "ti": SimpleNamespace(dag_id="d", task_id="ingest", map_index=-1, max_tries=0),
            "run_id": "1",
        }

        with calls_of(namespace) as calls:
            first, again = task.execute(context), task.execute(context)

    assert (first["version"], first["outcome"], again["outcome"] == "done") == (1, "done", False)
    assert calls == {"describe": 2, "look up": 1}  # there is nothing to look up before the first commit
