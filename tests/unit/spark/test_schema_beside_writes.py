"""The versions of a change of columns beside others' writes: a consumer of its event reads no rows twice."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_lancens import connect
from airflow_provider_lancens.spark.commit.schema_commits import SchemaCommits


def test_rows_of_others_are_not_between_its_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = connect("dir", {"root": str(tmp_path)}).declare_table("orders")
    table.append(pa.table({"id": [1]}))
    genuine, pending = SchemaCommits._commit, [True]

    def commit(*arguments: Any) -> bool | None:
        while pending:
            pending.pop()
            table.append(pa.table({"id": [2]}))
        if made := genuine(*arguments):
            table.append(pa.table({"id": [3], "n": [3]}))
        return made

    monkeypatch.setattr(SchemaCommits, "_commit", commit)
    result = table.add_columns({"n": "int64"})

    assert (result.previous_version, result.version, table.version) == (2, 3, 4)
