"""What only reads, only reads: the page, the doctor and the sensor leave a table's bytes as they were."""

from pathlib import Path

import pytest

from airflow_provider_lancens.doctor.checks import check_table
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.hooks.table_checks import data_changed, index_covers
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.managed.publication import Publication
from airflow_provider_lancens.ui import catalog, table_details
from airflow_provider_lancens.ui.version_history import list_versions
from tests.integration.airflow.tables import Table


def contents(folder: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_another_writers_commit_is_read_and_not_finished(
    lake: str, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = table.declare(managed_by="impl").removeprefix("file://")
    table.advance()
    with monkeypatch.context() as dying:
        dying.setattr(Publication, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(BaseException):  # noqa: B017, PT011 - the writer dies, in Lance's threads
            table.advance()
    before, hook, id_ = contents(location), LanceHook.for_connection(lake), TableId.parse(str(table))

    assert hook.table_status(id_).version == 2
    assert table_details.describe(hook, str(table))["version"] == 2
    assert table_details.check(hook, str(table))["findings"]
    assert [entry["version"] for entry in list_versions(hook, str(table), None, 5)["versions"]] == [2, 1]
    assert catalog.list_tables(hook, table.database, None, 5)["tables"][0]["version"] == 2
    assert next(check_table(hook, id_)).level == "ok"
    assert data_changed(hook, id_, 1, 2)
    assert not index_covers(hook, id_, "none", 1, 2)

    assert contents(location) == before
    assert table.advance() == 3
