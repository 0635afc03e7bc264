"""What other tenants of a metastore wrote: no verb reads, writes or deletes a file outside of a table."""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from lance_namespace.errors import ErrorCode, LanceNamespaceError

from airflow_provider_lancens.identifiers import TableId
from tests.conformance.codes import refused_with
from tests.hostile_names import file_names
from tests.integration.managed.managed_table import ManagedTable
from tests.support.lakes import Lake, rewrite


@pytest.fixture
def table(hive: Lake, database: str) -> Iterator[ManagedTable]:
    """A managed table at version 1, on local files."""
    declared = hive.declare(database)
    declared.append(1)
    yield declared
    declared.namespace.drop_namespace({"id": [database], "behavior": "cascade", "mode": "skip"})
    declared.namespace.close()


@pytest.fixture
def canary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of somebody else, whose bytes are compared."""
    folder = tmp_path_factory.mktemp("canary")
    (folder / "victim").write_bytes(b"alive")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def record(table: ManagedTable, staged: str) -> None:
    """Pretend that version 1 was staged under a name, and is recorded there, as another client could."""
    rewrite(table, lancens__commit=json.dumps({"version": 1, "staged": staged}))
    if "/" in staged:
        return
    final = Path(table.location, table.final(1))
    with contextlib.suppress(OSError, ValueError):  # no file can have that name
        folder = Path(table.location, "_lancens", staged)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(final, folder / final.name)


def verbs(table: ManagedTable) -> list[Callable[[], object]]:
    """What reads a table, then what writes it."""
    named, namespace = {"id": table.parts}, table.namespace
    return [
        lambda: namespace.describe_table({**named, "check_declared": True}),
        lambda: namespace.describe_table({**named, "version": 1}),
        lambda: namespace.describe_table_version({**named, "version": 1}),
        lambda: namespace.list_table_versions(named),
        lambda: namespace.compare_table(table.parts),
        lambda: namespace.for_reading().list_table_versions(named),
        lambda: namespace.poll_tables([TableId.of(table.parts)]),
        lambda: table.append(2),
        lambda: namespace.adopt_table(table.parts),
        lambda: namespace.convert_table(table.parts, managed_by="storage"),
        lambda: namespace.convert_table(table.parts, managed_by="impl"),
    ]


def test_a_staged_name_that_means_another_file_is_refused_and_deletes_nothing(
    table: ManagedTable, canary: Path
) -> None:
    record(table, f"{canary}/victim".replace("/", "%2F"))
    for read in (table.namespace, table.namespace.for_reading()):
        with refused_with(ErrorCode.INVALID_TABLE_STATE, "lancens.commit", "remove the parameter"):
            read.describe_table_version({"id": table.parts, "version": 1})
    table.namespace.describe_table({"id": table.parts, "check_declared": True})
    assert contents(canary) == {"victim": b"alive"}
    rewrite(table, "lancens.commit")
    assert table.append(2) == 2


def try_verbs(table: ManagedTable, canary: Path, name: str) -> None:
    prefix = "../" * 12 + str(canary)[1:]
    for staged in (name, f"{prefix}/{name}", f"{canary}/victim{name}".replace("/", "%2F")):
        with contextlib.suppress(LanceNamespaceError):  # the metastore can't store it
            record(table, staged)
        for verb in verbs(table):
            with contextlib.suppress(LanceNamespaceError, OSError, ValueError):
                verb()
        assert contents(canary) == {"victim": b"alive"}
        version = table.namespace.describe_table({"id": table.parts}).properties["version"]
        rewrite(table, "lancens.commit", managed_by="impl", version=version)


def generated(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    same = settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    return lambda test: same(given(name=file_names())(test))


@generated(examples=5)
def test_no_verb_leaves_a_table_by_a_name_in_its_record(table: ManagedTable, canary: Path, name: str) -> None:
    try_verbs(table, canary, name)


@pytest.mark.long
@generated(examples=300)
def test_no_verb_leaves_a_table_by_many_names(table: ManagedTable, canary: Path, name: str) -> None:
    try_verbs(table, canary, name)
