"""`docs/cost.md`: its requests are counted, and its example is added up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from airflow_provider_lancens import Table, connect
from tests.servers.glue_double import GlueDouble
from tests.servers.s3_double import S3Double
from tests.support.repository import ROOT

PAGE = (ROOT / "docs/cost.md").read_text()
ROWS = pa.table({"id": list(range(100)), "day": ["2026-11-01"] * 100})
BILLED_AS_WRITES = {"put", "list", "bulk delete"}
OPERATIONS: dict[str, Callable[[Table], object]] = {
    "append of one file": lambda table: table.append(ROWS, key="a"),
    "overwrite with `where`": lambda table: table.overwrite(ROWS, where="day = '2026-11-01'", key="b"),
    "upsert": lambda table: table.upsert(ROWS, on=["id"], key="c"),
    "delete": lambda table: table.delete("id = 3", key="d"),
    "newest version": lambda table: table.version,
    "number of rows": lambda table: table.count_rows(),
    "all rows of the newest version": lambda table: table.to_arrow(),
    "maintenance that finds nothing due": lambda table: table.maintain(),
}


def cells(heading: str) -> dict[str, list[str]]:
    """The rows of the first table below a heading, by their first cell."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n|")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in f"|{section}".splitlines()]
    return {name: values for name, *values in rows[2:]}


@pytest.fixture
def s3() -> Iterator[S3Double]:
    with S3Double() as double:
        yield double


def test_the_requests_of_each_operation_are_as_the_page_says(
    glue: GlueDouble, s3: S3Double, database: str
) -> None:
    storage = {f"storage.{name}": value for name, value in s3.storage.items()}
    lake = connect("glue", {**glue.properties, **storage, "root": f"s3://{s3.bucket_name}/lake"})
    lake.create_namespace(database)
    table = lake.declare_table(f"{database}.orders", schema=ROWS.schema)
    table.append(ROWS)  # the first one asks more, once in a process
    counted = {}
    for name, operation in OPERATIONS.items():
        calls = len(glue.requests)
        with s3.counted() as requests:
            operation(table)
        writes = sum(number for kind, number in requests.items() if kind in BILLED_AS_WRITES)
        counted[name] = [str(one) for one in (writes, requests.total() - writes, len(glue.requests) - calls)]

    assert counted == cells("Requests of an operation")


def test_the_example_is_the_sum_of_its_operations() -> None:
    one = {
        name: [int(value) for value in values] for name, values in cells("Requests of an operation").items()
    }
    rows = cells("A lake of 1,000 tables")
    polls = 24 * 60
    expected = {
        "appends": [1000 * number for number in one["append of one file"]],
        "reads": [5000 * number for number in one["all rows of the newest version"]],
        "polls, of 100 listings and ten calls": [polls * 100, 0, polls * 10],
        "maintenance": [24 * 1000 * number for number in one["maintenance that finds nothing due"]],
    }

    parts = {name: [int(value) for value in values[1:]] for name, values in rows.items() if name in expected}
    assert parts == expected
    total = [sum(column) for column in zip(*expected.values(), strict=True)]
    assert [int(value) for value in rows["in all"][1:]] == total
    dollars = (total[0] * 0.005 + total[1] * 0.0004) / 1000
    assert f"{dollars:.2f} dollars a day" in PAGE.replace("\n", " ")
