"""Tables of a directory namespace, ready for a commit."""

import pyarrow as pa
from lance.fragment import write_fragments

from airflow_provider_lancens.spark.commit.append_overwrite import KINDS
from airflow_provider_lancens.spark.commit.table_change import TableChange
from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable

ROWS = pa.table({"n": [1, 2]})


def prepare(target: ResolvedTable, mode: str, rows: pa.Table = ROWS) -> TableChange:
    """Write files as the executors do, with the table at its newest version."""
    base = target.open_latest()
    appends = mode == "append" and base is not None
    fragments = write_fragments(
        rows, base if appends else target.dataset.location, mode="append" if appends else "overwrite"
    )
    version = None if base is None else base.version
    columns = None if base is None else base.lance_schema
    return KINDS[mode](str(target.id), version, rows.schema, fragments, written_for=columns)
