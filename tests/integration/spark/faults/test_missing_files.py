"""Tables whose versions refer to missing files: detected, and repaired by a restore."""

from pathlib import Path

import pytest
from lance_namespace.errors import InvalidTableStateError

from airflow_provider_lancens.spark.maintenance.restore import check_files, restore_version
from tests.integration.spark.faults.orders_table import Orders
from tests.integration.spark.faults.table_actions import ACTIONS, prepare, work_without_spark
from tests.integration.spark.faults.table_files import files_of, folder_of
from tests.integration.spark.faults.table_kinds import (
    DIR,
    HIVE_MANAGED,
    HIVE_STORAGE,
    KINDS,
    declare,
    spec_of,
)


@pytest.fixture
def orders(request: pytest.FixtureRequest, tmp_path: Path, database: str, kind: str) -> Orders:
    """A table with the rows 0 to 2, in three commits."""
    spec = spec_of(kind, request, tmp_path)
    made = Orders(spec, declare(spec, database, kind), "append")
    prepare(made)
    return made


def lose_data_of(orders: Orders, key: str, ids: range) -> str:
    """Commit rows, remove their file like a clean-up that presumed the write dead, and return its path."""
    folder = folder_of(orders.spec, orders.table)
    before = files_of(folder)
    orders.write(key, ids)
    [lost] = [file for file in files_of(folder) - before if file.suffix == ".lance"]
    lost.unlink()
    return str(lost.relative_to(folder))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_with_missing_files_is_restored_and_its_writes_are_repeated(orders: Orders) -> None:
    lost = lose_data_of(orders, "january", range(3, 8))
    orders.write("february", range(8, 9))

    found = check_files(orders.spec, orders.table)
    repaired = restore_version(orders.spec, orders.table)

    assert (found.version, found.checked, found.complete_version) == (5, 5, 3)
    assert found.missing == {5: (lost,), 4: (lost,)}
    assert (repaired.version, repaired.restored_version, repaired.is_done) == (6, 3, True)
    undone = [(one.version, one.operation, one.key, one.inserted) for one in repaired.undone]
    assert undone == [(4, "append", "january", 5), (5, "append", "february", 1)]
    assert orders.ids == [0, 1, 2]
    assert orders.write("january", range(3, 8)).is_done
    assert orders.write("february", range(8, 9)).is_done
    assert orders.ids == list(range(9))


@pytest.mark.parametrize("kind", [HIVE_STORAGE, HIVE_MANAGED])
def test_a_comparison_reports_missing_files(orders: Orders) -> None:
    namespace, table = orders.spec.connect(), orders.table.split("$")
    assert namespace.compare_table(table).verdict == "consistent"  # type: ignore[attr-defined]
    lost = lose_data_of(orders, "january", range(3, 8))

    found = namespace.compare_table(table)  # type: ignore[attr-defined]

    assert (found.verdict, found.missing_files, found.complete_version) == ("files_missing", (lost,), 3)
    assert "restore version 3, then repeat the later writes" in found.explanation
    restore_version(orders.spec, orders.table)
    assert namespace.compare_table(table).verdict == "consistent"  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [DIR])
def test_a_complete_table_is_not_changed(orders: Orders) -> None:
    found = check_files(orders.spec, orders.table)
    left = restore_version(orders.spec, orders.table)

    assert (found.missing, found.complete_version) == ({}, 3)
    assert (left.version, left.is_done, left.undone) == (3, False, ())


@pytest.mark.parametrize("kind", [DIR])
def test_missing_index_files_are_reported(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    work_without_spark(monkeypatch)
    ACTIONS["index"].run(orders)
    folder = folder_of(orders.spec, orders.table)
    for file in files_of(folder / "_indices"):
        file.unlink()

    [(version, missing)] = check_files(orders.spec, orders.table).missing.items()

    assert (version, len(missing)) == (4, 3)  # a segment for each fragment
    assert all(path.startswith("_indices/") for path in missing)


@pytest.mark.parametrize("kind", [DIR])
def test_nothing_is_restored_if_no_version_is_complete(orders: Orders) -> None:
    for file in files_of(folder_of(orders.spec, orders.table) / "data"):
        file.unlink()

    with pytest.raises(InvalidTableStateError, match="each of its 3 versions refers to files"):
        restore_version(orders.spec, orders.table)
    with pytest.raises(InvalidTableStateError, match="version 2 refers to files that were removed"):
        restore_version(orders.spec, orders.table, 2)
    assert check_files(orders.spec, orders.table).version == 3
