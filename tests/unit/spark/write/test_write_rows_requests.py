"""How often an append asks the catalog and the storage: each thing that it needs to know once.

A commit looks up once more which version is the newest: others may have committed meanwhile.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens import LanceCatalog, Table
from tests.histories.local_session import LocalFrame, LocalSession
from tests.servers.s3_double import S3Double
from tests.servers.s3_requests import Request
from tests.unit.spark.commit.memory_lake import NAME, Lake
from tests.unit.spark.every_verb import PickledNamespace

ROWS = pa.table({"n": [1, 2]})


class ReadableLake(Lake):
    """One whose tables Spark's tasks can write."""

    kind = PickledNamespace


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as double:
        yield double


def table_of(lake: Lake) -> Table:
    """A table with three versions, with keys and without."""
    spark: Any = LocalSession()
    namespace = lake.namespace
    table = LanceCatalog(lambda: namespace, spark=spark).table(NAME)
    for key in (None, "first", None):
        table.append(ROWS, key=key)
    return table


def kind_of(request: Request) -> str:
    """What a request to the storage is for."""
    folder = request.key.rpartition("/t.lance/")[2].partition("/")[0]
    return f"{request.kind} {folder}"


def counted(lake: Lake, append: Callable[[], object]) -> tuple[Counter[str], Counter[str]]:
    """The requests of an append to the storage, and its calls to the metastore."""
    before, calls = len(lake.s3.requests), len(lake.metastore.calls)
    append()
    lake.s3.wait_until_quiet()
    made = Counter(kind_of(request) for request in lake.s3.requests[before:])
    return made, Counter(lake.metastore.calls[calls:])


OF_KEY = Counter({"list _lancens": 2, "put _lancens": 2})
"""The records of the key, and the index of keys; its announcement, and its confirmation."""
BY_STORAGE = Counter(
    {
        "list _versions": 3,  # the newest version; that of the commit; and once more by Lance
        "get _versions": 3,  # its manifest, its transaction, and the staged manifest
        "put _lancens": 1,  # the lease
        "put data": 1,
        "put _transactions": 1,
        "put _versions": 2,  # the manifest, staged and with its name
        "list _lancens": 1,  # the leases
        "bulk delete _lancens": 1,
    }
)
BY_METASTORE = Counter(
    {
        "head _lancens": 3,  # whether the newest version is finished: first, at the commit, before the next
        "head _versions": 4,  # its manifest: the same, and once by Lance as it opens it
        "get _versions": 3,
        "list _versions": 1,
        "put _lancens": 3,  # the lease, the record of the manifest, the highest version
        "put data": 1,
        "put _transactions": 1,
        "put _versions": 2,
        "list _lancens": 1,
        "bulk delete _lancens": 2,
    }
)
CALLS = Counter({"get_table": 4, "alter_table": 1})
"""The description, the newest version at the beginning and at the commit, and the compare-and-set."""


@pytest.mark.parametrize("key", [None, "another"])
def test_where_the_storage_decides(s3: S3Double, key: str | None) -> None:
    lake = ReadableLake(s3, "storage")
    lake.declare("storage")
    table = table_of(lake)

    requests, calls = counted(lake, lambda: table.append(ROWS, key=key))

    # With a key, the version is looked up first: its records are listed while it is opened.
    assert requests == BY_STORAGE + (OF_KEY + Counter({"head _versions": 1}) if key else Counter())
    assert calls == {"get_table": 1}


@pytest.mark.parametrize("key", [None, "another"])
def test_where_the_metastore_decides(s3: S3Double, key: str | None) -> None:
    lake = ReadableLake(s3, "impl")
    lake.declare("impl")
    table = table_of(lake)

    requests, calls = counted(lake, lambda: table.append(ROWS, key=key))

    assert requests == BY_METASTORE + (OF_KEY if key else Counter())
    assert calls == CALLS


@pytest.mark.parametrize(("managed_by", "calls"), [("storage", {"get_table": 1}), ("impl", CALLS)])
def test_a_task_of_spark_asks_for_the_place_of_the_manifest_alone(
    s3: S3Double, managed_by: str, calls: Counter[str]
) -> None:
    lake = ReadableLake(s3, managed_by)
    lake.declare(managed_by)
    table = table_of(lake)
    frame = LocalFrame(table.lake.spark, [ROWS])
    of_arrow, _ = counted(lake, lambda: table.append(ROWS, key="in memory"))

    requests, made = counted(lake, lambda: table.append(frame, key="by Spark"))

    assert requests - of_arrow == {"head _versions": 1}
    assert made == calls
