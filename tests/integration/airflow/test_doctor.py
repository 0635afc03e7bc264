"""The `doctor` command with real metastores: it says what is wrong, and leaves everything as it was."""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace import DescribeNamespaceRequest, ListNamespacesRequest
from lance_namespace.errors import NamespaceNotFoundError

from airflow_provider_lancens.__main__ import main
from airflow_provider_lancens.doctor import Finding, diagnose
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.namespace.storage.table_files import TableFiles
from tests.integration.airflow.tables import Table
from tests.servers.glue_double import REGION, GlueDouble
from tests.servers.glue_faults import DENIED
from tests.unit.spark.indexed_rows import write_indexed_deleted_compacted

Connect = Callable[..., str]
HALF_A_MONTH = 15 * 24 * 3600


def of(subject: str, findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in findings if finding.subject == subject]


def databases_below(root: Path, conn_id: str, parent: list[str]) -> list[str]:
    """The databases that the doctor of this test left; other tests have theirs on the same server."""
    namespace = LanceHook.for_connection(conn_id).get_conn()
    names = namespace.list_namespaces(ListNamespacesRequest(id=parent)).namespaces
    found = []
    for name in names:
        with contextlib.suppress(NamespaceNotFoundError):  # dropped meanwhile
            described = namespace.describe_namespace(DescribeNamespaceRequest(id=[*parent, name]))
            if str(root) in str(described.properties):
                found.append(name)
    return found


@pytest.mark.parametrize(
    ("server", "conn_type", "parent", "compare_and_set"),
    [
        ("metastore", "lance_hive2", [], "supported: tables"),
        ("hms3", "lance_hive3", ["hive"], "not supported, so the storage decides"),
        ("hms4", "lance_hive3", ["hive"], "supported: tables"),
    ],
)
def test_permissions_are_tried_and_nothing_is_left(
    request: pytest.FixtureRequest,
    connect: Connect,
    tmp_path: Path,
    server: str,
    conn_type: str,
    parent: list[str],
    compare_and_set: str,
) -> None:
    uri = request.getfixturevalue(server).uri
    conn_id = connect(conn_type=conn_type, host=uri, extra={"root": str(tmp_path)})

    found = list(diagnose(conn_id))

    [(level, text)] = of("metastore", found)
    assert (level, uri in text, "answers in" in text) == ("ok", True, True)
    assert [level for level, _ in of("permissions", found)] == ["ok", "ok"]
    assert of("compare-and-set", found)[0][1].startswith(compare_and_set)
    assert [level for level, _ in of("storage", found)] == ["ok"] * 5
    assert of("clock", found) == [("ok", "this machine and the storage agree on the time")]
    assert not databases_below(tmp_path, conn_id, parent)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_a_missing_right_is_named(glue: GlueDouble, connect: Connect, tmp_path: Path) -> None:
    given = glue.properties
    extra = {"endpoint": glue.endpoint, "region": REGION, "root": str(tmp_path)}
    keys = {"login": given["access_key_id"], "password": given["secret_access_key"]}
    conn_id = connect("glue", "lance_glue", **keys, extra=extra)

    with glue.faults.on("CreateTable", DENIED):
        found = list(diagnose(conn_id))

    assert of("permissions", found)[0][0] == "ok"
    [_, (level, text)] = of("permissions", found)
    assert level == "problem"
    assert "cannot create table" in text
    assert "grant it to these credentials" in text
    assert given["secret_access_key"] not in str(found)
    assert not databases_below(tmp_path, conn_id, [])


def test_nothing_is_tried_if_only_reading_is_allowed(lake: str, tmp_path: Path) -> None:
    found = list(diagnose(lake, read_only=True))

    assert of("metastore", found)[0][0] == "ok"
    assert not of("permissions", found)
    assert not list(tmp_path.iterdir())


def test_an_unreachable_metastore_ends_the_checks(connect: Connect, free_ports: list[int]) -> None:
    found = list(diagnose(connect(host=f"127.0.0.1:{free_ports[0]}")))

    assert found[-1].subject == "metastore"
    assert found[-1].level == "problem"
    assert str(free_ports[0]) in found[-1].text


def test_an_unknown_connection_is_a_problem() -> None:
    found = list(diagnose("nowhere"))

    assert (found[-1].subject, found[-1].level) == ("connection", "problem")
    assert "nowhere" in found[-1].text


def test_a_table_needs_what_its_state_says(lake: str, table: Table) -> None:
    location = table.declare()
    for _ in range(12):
        table.advance()
    leases = TableFiles(location, {})
    leases.put("_lancens/writes/dead", b"")
    dead = Path(location, "_lancens/writes/dead")
    os.utime(dead, (dead.stat().st_mtime - HALF_A_MONTH,) * 2)

    found = list(diagnose(lake, [str(table)], read_only=True))

    [verdict, fragments, versions, writes] = of(f"table {table}", found)
    assert verdict[0] == "ok"
    assert fragments[0] == "warning"
    assert fragments[1].startswith("12 of 12 fragments are small and can be merged (min_small_fragments=10)")
    assert versions[0] == "ok"
    assert writes == ("warning", "1 writes have sent no heartbeat for a day, and left files")


def test_a_vector_index_of_deleted_rows_is_found(lake: str, table: Table) -> None:
    write_indexed_deleted_compacted(table.declare(), "IVF_FLAT", stable_row_ids=True)

    found = of(f"table {table}", list(diagnose(lake, [str(table)], read_only=True)))

    [(level, text)] = [one for one in found if "vector_idx" in one[1]]
    assert level == "warning"
    assert text.startswith("33.3% of the rows in index 'vector_idx' on vector are deleted")


def test_all_tables_of_a_namespace_are_checked(lake: str, table: Table, namespace: Any) -> None:
    other = Table(namespace, table.database, "events")
    for one in (table, other):
        one.declare()
        one.advance()

    found = list(diagnose(lake, [table.database], read_only=True))

    assert {finding.subject for finding in found} >= {f"table {table}", f"table {other}"}


def test_a_bypassed_table_is_a_problem_with_its_repair(lake: str, table: Table) -> None:
    location = table.declare(managed_by="impl")
    table.advance()
    lance.write_dataset(lance.dataset(location).to_table(), location, mode="append")

    found = list(diagnose(lake, [str(table)], read_only=True))

    verdict = next(one for one in found if one.subject == f"table {table}")
    assert verdict.level == "problem"
    assert "direct" in verdict.text
    assert "LanceCheckTableOperator" in verdict.advice


def test_a_missing_table_is_a_problem(lake: str, table: Table) -> None:
    found = list(diagnose(lake, [str(table)], read_only=True))

    assert found[-1].level == "problem"
    assert str(table) in found[-1].text


def test_the_command_prints_findings_and_ends_with_a_code(
    lake: str, table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    table.declare()
    table.advance()

    code = main(["doctor", lake, str(table), "--read-only"])

    printed = capsys.readouterr().out
    assert f"ok      table {table}: " in printed
    assert "WARNING triggerer: Airflow's database cannot be read here" in printed
    assert code == 0


def test_the_command_prints_json(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", lake, "--read-only", "--json"])

    printed = json.loads(capsys.readouterr().out)
    assert printed["level"] == "warning"  # there is no database of Airflow in tests
    assert {"level", "subject", "text", "advice"} == set(printed["findings"][0])
