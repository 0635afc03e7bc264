"""What an index finds is what a scan finds, after a staged version was published."""

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance_namespace import LanceNamespace

from airflow_provider_lancens.spark.commit.table_change import TableChange
from airflow_provider_lancens.spark.commit.write_lease import acquire_lease
from airflow_provider_lancens.spark.keys import Counts, KeyedWrite
from airflow_provider_lancens.spark.publish import ChangeSpec, publish_version, stage
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.unit.spark.indexed_rows import INDICES, NEW, OLD, found, rows_of, write_indexed


def change_of(target: ResolvedTable, rows: pa.Table, mode: str) -> tuple[TableChange, ChangeSpec]:
    base = target.open_latest()
    assert base is not None
    fragments = write_fragments(rows, base, mode="append")
    condition = f"id < {NEW} OR id >= {OLD}" if mode == "overwrite" else None
    spec = ChangeSpec(mode, base.version, ["id"] if mode == "upsert" else [], condition=condition)
    return spec.change(target, rows.schema, fragments, base.lance_schema), spec


@pytest.mark.parametrize(
    ("index_type", "mode"), [*((one, "upsert") for one in INDICES), ("IVF_FLAT", "overwrite")]
)
def test_an_index_finds_what_a_published_version_wrote(
    namespace: LanceNamespace, target: ResolvedTable, index_type: str, mode: str
) -> None:
    write_indexed(target.dataset.location, index_type, stable_row_ids=True)
    written = [*range(NEW), OLD, OLD + 1]
    rows = rows_of(range(OLD + 2), "omega", 9).take(written)
    change, spec = change_of(target, rows, mode)
    with acquire_lease(target.dataset).kept_alive(end=True) as lease:
        staged = stage(target, KeyedWrite("k"), change, Counts(len(written), 1, 1), spec, lease)

    publish_version(namespace, "orders", staged.commit.version)

    dataset = lance.dataset(target.dataset.location)
    assert found(dataset, index_type, "omega", 9) == written
    assert found(dataset, index_type, "alpha", 0) == [one for one in range(OLD) if one not in written]
