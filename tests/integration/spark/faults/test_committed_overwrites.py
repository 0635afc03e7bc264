"""A committed overwrite succeeds even if later steps fail."""

from pathlib import Path

import pytest

from airflow_provider_lancens.spark.table.resolved_table import ResolvedTable
from tests.integration.spark.faults.orders_table import Orders
from tests.integration.spark.faults.table_kinds import DIR, declare, spec_of


def test_a_committed_overwrite_is_found_although_the_previous_version_was_removed(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(DIR, request, tmp_path)
    orders = Orders(spec, declare(spec, database, DIR), "append")
    orders.write("december", range(3))
    genuine = ResolvedTable.open

    def cleaned_up(target: ResolvedTable, version: int) -> object:
        if target.latest_version() == 2 and version == 1:
            raise ValueError("version 1 was not found")
        return genuine(target, version)

    monkeypatch.setattr(ResolvedTable, "open", cleaned_up)

    assert orders.write("january", range(5), mode="overwrite").is_done
    assert orders.ids == list(range(5))
