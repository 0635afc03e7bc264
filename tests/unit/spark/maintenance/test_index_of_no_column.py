"""An index whose column another client dropped or converted while it was built is told of, and replaced."""

import logging
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeclareTableRequest
from lance_namespace.errors import (
    InvalidInputError,
    TableColumnNotFoundError,
    TableIndexAlreadyExistsError,
)

from airflow_provider_lancens.doctor.checks import check_state
from airflow_provider_lancens.spark import LanceCatalog, Table
from airflow_provider_lancens.spark.maintenance import IndexSpec, Thresholds
from airflow_provider_lancens.spark.maintenance.index import drop_index
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table, planned_maintenance
from airflow_provider_lancens.spark.maintenance.maintenance_options import IfIndexExists, MaintenancePlan
from airflow_provider_lancens.spark.maintenance.table_state import table_state
from airflow_provider_lancens.spark.table.index_coverage import covers
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec
from tests.support.indices import build_index
from tests.unit.spark.every_verb import SPARK
from tests.unit.spark.indexed_rows import INDICES, OLD, column_of, rows_of

ROWS = pa.table({"id": range(20), "n": pa.array(range(20), pa.int32())})
REASON = "the index is on a column that no longer exists"


@pytest.fixture
def lake(tmp_path: Path) -> NamespaceSpec:
    lake = NamespaceSpec("dir", {"root": str(tmp_path)})
    lake.connect().declare_table(DeclareTableRequest(id=["t"]))
    return lake


@pytest.fixture
def location(lake: NamespaceSpec, tmp_path: Path) -> str:
    """A table of several versions, with an index `ix` of a column that was widened meanwhile."""
    location = str(tmp_path / "t.lance")
    for _ in range(3):
        lance.write_dataset(ROWS, location, mode="append")
    leave_index(location, "n", "BTREE", lambda dataset: dataset.alter_columns(WIDER))
    return location


WIDER = {"path": "n", "data_type": pa.int64()}


def leave_index(location: str, column: str, index_type: str, change: object) -> None:
    """Commit an index by pylance, whose column was changed while it was built."""
    dataset = lance.dataset(location)
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    options = INDICES[index_type]
    segment = dataset.create_index_uncommitted(
        column, index_type, name="ix", replace=True, fragment_ids=fragments, **options
    )
    assert callable(change)
    change(lance.dataset(location))
    dataset.commit_existing_index_segments("ix", column, [segment])


def opened(location: str) -> lance.LanceDataset:
    return lance.dataset(location, session=lance.Session())


def table_of(lake: NamespaceSpec) -> Table:
    return LanceCatalog(lake.connect).table("t")


def test_reads_with_a_filter_fail_as_the_troubleshooting_page_says(
    lake: NamespaceSpec, location: str
) -> None:
    with pytest.raises(InvalidInputError, match="which did not exist in the schema"):
        table_of(lake).count_rows(filter="id = 3")


@pytest.mark.parametrize("if_exists", ["extend", "replace"])
@pytest.mark.parametrize("column", ["n", "id"])
def test_the_index_is_replaced(
    lake: NamespaceSpec, location: str, if_exists: IfIndexExists, column: str
) -> None:
    before = opened(location).version

    built = build_index(SPARK, lake, "t", column, "BTREE", name="ix", if_exists=if_exists)

    assert (built.is_done, built.rows, built.previous_version) == (True, 60, before)
    dataset = opened(location)
    [index] = dataset.describe_indices()
    assert (index.field_names, dataset.count_rows("n = 3"), dataset.count_rows("id = 3")) == ([column], 3, 3)


@pytest.mark.parametrize("if_exists", ["skip", "fail"])
def test_the_index_is_not_taken_for_the_wanted_one(
    lake: NamespaceSpec, location: str, if_exists: IfIndexExists
) -> None:
    before = opened(location).version
    with pytest.raises(
        TableIndexAlreadyExistsError, match="pass if_exists='replace', or drop it by drop_index"
    ):
        build_index(SPARK, lake, "t", "n", "BTREE", name="ix", if_exists=if_exists)
    assert opened(location).version == before


def test_the_index_is_kept_if_the_column_that_is_to_have_it_does_not_exist(
    lake: NamespaceSpec, location: str
) -> None:
    before = opened(location).version
    with pytest.raises(TableColumnNotFoundError, match="column='m' does not exist"):
        build_index(SPARK, lake, "t", "m", "BTREE", name="ix", if_exists="replace")
    assert opened(location).version == before


def test_the_index_is_dropped(lake: NamespaceSpec, location: str) -> None:
    assert drop_index(lake, "t", "ix")
    assert opened(location).count_rows("id = 3") == 3


def test_maintenance_replaces_the_index(lake: NamespaceSpec, location: str) -> None:
    due = Thresholds(min_small_fragments=2)
    plan = MaintenancePlan(indices=(IndexSpec("n", "BTREE", "ix"),), thresholds=due, segments=1)
    assert planned_maintenance(lake, "t", plan).steps["index.ix"].reason == REASON

    result = maintain_table(SPARK, lake, "t", plan)

    assert result.done_steps == ["compact", "index.ix"]
    assert result.steps["index.ix"].reason == REASON
    assert opened(location).count_rows("n = 3") == 3
    assert maintain_table(SPARK, lake, "t", plan).done_steps == []


def test_maintenance_tells_of_an_index_that_is_not_in_its_plan(
    lake: NamespaceSpec, location: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    plan = MaintenancePlan(thresholds=Thresholds(min_small_fragments=100))

    maintain_table(SPARK, lake, "t", plan)

    [told] = [one.getMessage() for one in caplog.records if "no longer exists" in one.getMessage()]
    assert told.startswith("table t: the column of index 'ix' no longer exists, so reads with a filter fail")


def test_the_table_shows_the_index(lake: NamespaceSpec, location: str) -> None:
    table = table_of(lake)
    [index] = table.indices()
    assert (index.name, index.column, table.stats().rows) == ("ix", "<unknown>", 60)


@pytest.mark.parametrize("index_type", INDICES)
def test_the_doctor_names_the_index_and_reads_nothing_of_it(
    lake: NamespaceSpec, tmp_path: Path, index_type: str
) -> None:
    location, column = str(tmp_path / "t.lance"), column_of(index_type)
    lance.write_dataset(rows_of(range(OLD), "alpha", 0), location, enable_stable_row_ids=True)
    leave_index(location, column, index_type, lambda dataset: dataset.drop_columns([column]))

    with table_state(lake, "t") as state:
        [told] = [finding for finding in check_state("t", state) if finding.level == "problem"]

    assert told.text == "the column of index 'ix' no longer exists, so reads with a filter fail"
    assert told.advice.startswith("Drop it, by Table.drop_index, or build it on a column that exists")
    built = build_index(SPARK, lake, "t", "id", "BTREE", name="ix", if_exists="replace")
    assert built.is_done
    assert opened(location).count_rows("id = 3") == 1


def test_a_sensor_waits_for_an_index_that_has_a_column(location: str) -> None:
    dataset = lance.dataset(location)
    assert not covers(dataset, "ix", dataset.version)
    dataset.drop_index("ix")
    dataset.create_scalar_index("n", "BTREE", name="ix")
    assert covers(dataset, "ix", dataset.version)
