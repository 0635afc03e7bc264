"""What lists, plans and polls cost in a catalog of 100,000 tables in a database, and of 1,000 databases."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.benchmarks.namespace.catalog_steps import CROWDED, SINGLE
from tests.servers.glue_double import LARGEST, GlueDouble
from tests.servers.many_tables import copy_database, copy_table
from tests.servers.releases import hms_2

pytestmark = [pytest.mark.long, pytest.mark.timeout(4 * 3600)]

TREE = Path(__file__).parents[3]
TABLES, DATABASES = 100_000, 1_000
PAGES = TABLES // LARGEST + 1
LARGEST_BATCH = 500
MOST_MEGABYTES = 60
"""Of the names of all tables, and of a batch of tables."""
MEGABYTES_OF_A_PLAN = 120

Found = Mapping[str, Mapping[str, Any]]


@pytest.fixture
def run_steps(capsys: pytest.CaptureFixture[str]) -> Callable[..., Found]:
    """Run steps in a process of their own, and print what each cost."""

    def run(kind: str, properties: Mapping[str, str], *steps: str) -> Found:
        what = {
            "kind": kind,
            "properties": properties,
            "tables": TABLES,
            "databases": DATABASES,
            "steps": steps,
        }
        command = [sys.executable, "-m", "tests.benchmarks.namespace.catalog_steps", json.dumps(what)]
        done = subprocess.run(command, cwd=TREE, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = {one["step"]: one for one in map(json.loads, done.stdout.splitlines())}
        with capsys.disabled():
            print(f"\n{kind}: {TABLES} tables in a database, {DATABASES} databases")  # noqa: T201
            for name, one in found.items():
                print(f"  {name:24} {one['calls']:6} calls {one['peak_megabytes']:8} MB {one['seconds']:9} s")  # noqa: T201
        return found

    return run


@pytest.fixture
def crowded_metastore(tmp_path: Path) -> Iterator[MetastoreServer]:
    server = MetastoreServer(hms_2(), tmp_path / "metastore")
    with server, Hive2Namespace(uri=server.uri, root=str(tmp_path / "root")) as namespace:
        for database in (CROWDED, SINGLE):
            namespace.create_namespace({"id": [database]})
            rows, table = pa.table({"x": [1]}), [database, "t"]
            lance.write_dataset(rows, namespace_client=namespace, table_id=table, mode="create")
    copy_table(hms_2(), server.folder, CROWDED, "t", TABLES)
    copy_database(hms_2(), server.folder, SINGLE, "t", DATABASES)
    with server:
        yield server


@pytest.fixture
def crowded_glue(glue: GlueDouble, tmp_path: Path) -> GlueDouble:
    lance.write_dataset(pa.table({"x": [1]}), str(tmp_path / "t.lance"))
    location = f"file:{tmp_path}/t.lance"
    client = glue.client("glue")
    client.create_database(DatabaseInput={"Name": CROWDED})
    glue.add_tables(CROWDED, ["t", *(f"t_{number:06}" for number in range(TABLES))], location)
    for number in range(DATABASES):
        client.create_database(DatabaseInput={"Name": f"{SINGLE}_{number:06}"})
        glue.add_tables(f"{SINGLE}_{number:06}", ["t"], location)
    return glue


def check_memory(found: Found) -> None:
    for name, one in found.items():
        most = MEGABYTES_OF_A_PLAN if name.startswith("plan") else MOST_MEGABYTES
        assert one["peak_megabytes"] <= most, one


def test_a_metastore_of_a_hundred_thousand_tables(
    crowded_metastore: MetastoreServer, tmp_path: Path, run_steps: Callable[..., Found]
) -> None:
    properties = {"uri": crowded_metastore.uri, "root": str(tmp_path / "root")}
    found = run_steps("Hive2Namespace", properties)
    connecting = 1
    for name in ("list_whole", "first_page", "last_page", "namespaces_whole", "namespaces_page"):
        assert found[name]["calls"] == 1 + connecting, found[name]
    for name in ("first_page_with_data", "last_page_with_data"):
        assert found[name]["calls"] == 2 + connecting, found[name]
    assert found["all_pages"]["calls"] <= 20
    assert found["all_tables_first_page"]["calls"] <= 3 + connecting
    assert found["plan"]["calls"] <= TABLES // LARGEST_BATCH + 10
    assert found["poll_all_databases"]["calls"] == DATABASES + connecting
    check_memory(found)


def test_a_glue_catalog_of_a_hundred_thousand_tables(
    crowded_glue: GlueDouble, tmp_path: Path, run_steps: Callable[..., Found]
) -> None:
    found = run_steps("GlueNamespace", {**crowded_glue.properties, "root": str(tmp_path)})
    for name in ("list_whole", "first_page", "some_pages", "all_pages", "whole_with_data"):
        assert found[name]["calls"] == PAGES, found[name]
    assert found["first_page_with_data"]["calls"] <= PAGES + 2 * LARGEST
    assert found["plan"]["calls"] == PAGES + 1
    assert found["poll_one_database"]["calls"] <= PAGES
    check_memory(found)
