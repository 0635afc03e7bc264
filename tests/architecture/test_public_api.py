"""The public API: each package exports it lazily, and nothing else."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PUBLIC: dict[str, set[str]] = {
    "assets": {"lance_table", "new_versions", "watched_table"},
    "doctor": {"Finding", "diagnose"},
    "embedded": {
        "Distribution",
        "EmbeddedMetastore",
        "EmbeddedMetastoreError",
        "FolderInUseError",
        "JarsMissingError",
        "JavaUnsuitableError",
        "MetastoreServer",
        "MetastoreStartError",
    },
    "hooks": {
        "LanceCatalogHook",
        "LanceGlueHook",
        "LanceHive2Hook",
        "LanceHive3Hook",
        "LanceHook",
        "LanceRetryableError",
        "LanceSqlHook",
    },
    "namespace": {"CatalogNamespace", "GlueNamespace", "Hive2Namespace", "Hive3Namespace"},
    "operators": {
        "LanceAdvanceVersionOperator",
        "LanceAlterTableOperator",
        "LanceCleanUpVersionsOperator",
        "LanceCompactTableOperator",
        "LanceCheckTableOperator",
        "LanceComputeColumnOperator",
        "LanceConvertTableOperator",
        "LanceCreateIndexOperator",
        "LanceCreateNamespaceOperator",
        "LanceDeclareTableOperator",
        "LanceDeleteOperator",
        "LanceDeregisterTableOperator",
        "LanceDropNamespaceOperator",
        "LanceDropTableOperator",
        "LanceFindChangesOperator",
        "LanceFindReleaseOperator",
        "LanceFindVersionOperator",
        "LanceMaintainOperator",
        "LanceRegisterTableOperator",
        "LanceReleaseOperator",
        "LanceDeleteTagOperator",
        "LanceRemoveOrphansOperator",
        "LanceRestoreOperator",
        "LancePublishOperator",
        "LanceDiscardOperator",
        "LanceAppendOperator",
        "LanceOverwriteOperator",
        "LanceUpsertOperator",
        "LanceStreamOperator",
        "LanceTagOperator",
        "lance_spark",
    },
    "sensors": {"LanceTableVersionSensor"},
    "spark": {
        "WriteIdentity",
        "VersionInfo",
        "Tag",
        "TableStats",
        "IndexInfo",
        "ReleaseSet",
        "connect",
        "LanceCatalog",
        "Table",
        "Changes",
        "Bookmark",
        "UnreadVersions",
        "ColumnFunctionError",
        "CatalogResult",
        "CheckResult",
        "FreshnessResult",
        "CompactionResult",
        "ComputeResult",
        "ExpireResult",
        "FileSource",
        "LanceDataSource",
        "IndexResult",
        "MaintenanceResult",
        "NamespaceSpec",
        "OrphansResult",
        "ReleaseResult",
        "RestoreResult",
        "SchemaResult",
        "StreamResult",
        "TableLayout",
        "WriteResult",
        "fingerprint_files",
        "foreach_batch",
        "lance_data_source",
    },
    "spark.maintenance": {
        "CompactionOptions",
        "IndexSpec",
        "Thresholds",
        "measure_recall",
    },
    "triggers": {"LanceAnyTableTrigger", "LanceTableAdvancedTrigger", "LanceTableVersionTrigger"},
}
IMPORT_OF_OURS = re.compile(r"^\s*from (airflow_provider_lancens[\w.]*) import", re.MULTILINE)
NEEDS_PYSPARK_4_1 = {"LanceDataSource", "lance_data_source"}

LOADED_BY = """
import importlib, json, sys
package, name = sys.argv[1:]
getattr(importlib.import_module(package), name)
print(json.dumps(sorted(module for module in sys.modules if module.startswith(package + "."))))
"""


@pytest.mark.parametrize("room", PUBLIC)
def test_a_package_exports_exactly_its_public_names(room: str) -> None:
    package = importlib.import_module(f"airflow_provider_lancens.{room}")

    assert set(package.__all__) == PUBLIC[room]


@pytest.mark.parametrize(
    ("room", "name"), [(room, name) for room, names in PUBLIC.items() for name in sorted(names)]
)
def test_a_public_name_can_be_imported_from_its_package(room: str, name: str) -> None:
    if name in NEEDS_PYSPARK_4_1:
        from tests.pyspark_versions import SPARK_V_4_1_PLUS

        if not SPARK_V_4_1_PLUS:
            pytest.skip("the data source needs PySpark 4.1")

    assert getattr(importlib.import_module(f"airflow_provider_lancens.{room}"), name).__name__ == name


@pytest.mark.parametrize("room", PUBLIC)
def test_no_module_shadows_an_export(room: str, root: Path) -> None:
    folder = root / "airflow_provider_lancens" / room.replace(".", "/")

    assert PUBLIC[room].isdisjoint(module.stem for module in folder.iterdir())


def test_an_unknown_name_raises_an_attribute_error() -> None:
    import airflow_provider_lancens.operators as operators

    with pytest.raises(
        AttributeError, match=r"'airflow_provider_lancens.operators' has no attribute 'Nothing'"
    ):
        operators.Nothing  # type: ignore[attr-defined]  # noqa: B018 the look-up is the test


def test_importing_one_operator_loads_no_other(ask_fresh_python: Callable[..., Any]) -> None:
    loaded = ask_fresh_python(LOADED_BY, "airflow_provider_lancens.operators", "LanceDropTableOperator")

    assert loaded == [
        "airflow_provider_lancens.operators.lance_operator",
        "airflow_provider_lancens.operators.tables",
    ]


def test_pages_and_examples_import_only_from_packages(root: Path) -> None:
    public = {"airflow_provider_lancens", *(f"airflow_provider_lancens.{room}" for room in PUBLIC)}
    files = [root / "README.md", *(root / "docs").glob("*.md"), *(root / "example_dags").rglob("*.py")]
    imported = {(file.name, name) for file in files for name in IMPORT_OF_OURS.findall(file.read_text())}

    assert {one for one in imported if one[1] not in public} == set()


@pytest.mark.parametrize("room", sorted(set(PUBLIC) - {"embedded"}))
def test_type_checkers_see_lazy_exports(room: str, root: Path) -> None:
    init = root / "airflow_provider_lancens" / room.replace(".", "/") / "__init__.py"
    tree = ast.parse(init.read_text())
    seen = {
        (alias.name, (node.module or "").removeprefix(f"airflow_provider_lancens.{room}."))
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    [call] = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    ]

    assert seen == set(ast.literal_eval(call.args[1]).items())


def test_each_public_name_has_one_entry_in_the_reference_and_is_in_its_list(root: Path) -> None:
    pages = "".join(page.read_text() for page in sorted((root / "docs").glob("api-*.md")))
    entries = [name.rpartition(".")[2] for name in re.findall(r"auto(?:class|function):: (\S+)", pages)]
    listed = re.findall(r"`~[\w.]*?(\w+)`", (root / "docs" / "reference.md").read_text())

    public = {name for names in PUBLIC.values() for name in names}
    assert sorted(set(entries) - {"LanceWriteOperator"}) == sorted(public | {"connect", "literal"})
    assert len(entries) == len(set(entries))
    assert sorted(listed) == sorted(set(entries) - {"LanceWriteOperator"})
