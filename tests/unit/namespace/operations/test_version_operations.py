"""Advances of a table's version, after commits made elsewhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError

from airflow_provider_lancens import LanceCatalog
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.config import Properties, StorageConfig
from airflow_provider_lancens.namespace.error_types import PassedVersionError
from tests.unit.spark.commit.memory_lake import MemoryMetastore, MemoryNamespace

TABLE = TableId.of(["db", "t"])


@pytest.fixture
def namespace(tmp_path: Path) -> Any:
    """A namespace with a table at version 5, which the metastore decides."""
    metastore, properties = MemoryMetastore(), {"root": str(tmp_path), "managed_by": "impl"}
    config = StorageConfig.parse(Properties(properties, ["root", "managed_by"]))
    made = MemoryNamespace(metastore, config, properties)  # type: ignore[arg-type]
    made.declare_table({"id": list(TABLE.parts), "location": str(tmp_path / "t")})
    declared = metastore.tables[TABLE]
    metastore.tables[TABLE] = replace(declared, parameters={**declared.parameters, "version": "5"})
    return made


def test_an_expected_version_that_the_table_has_passed_is_told_from_one_that_it_may_reach(
    namespace: Any,
) -> None:
    with pytest.raises(PassedVersionError, match="it is at version 5, expected 3"):
        namespace.advance_table_version(TABLE.parts, expected=3, new=4)
    with pytest.raises(ConcurrentModificationError, match="it is at version 5, expected 6") as early:
        namespace.advance_table_version(TABLE.parts, expected=6, new=7)
    assert not isinstance(early.value, PassedVersionError)


@pytest.mark.parametrize("version", [4, 5])
def test_an_advance_that_goes_nowhere_is_refused_by_the_names_of_the_arguments(
    namespace: Any, version: int
) -> None:
    table = LanceCatalog(lambda: namespace).table(TABLE)

    message = rf"^version: expected one above expected_version=5, got {version}"
    with pytest.raises(InvalidInputError, match=message):
        table.advance(version, expected_version=5)
