"""pylance with tables given by their names."""

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.support.backends import Backend


def rows(*values: int) -> pa.Table:
    return pa.table({"x": list(values)})


def write(namespace: LanceNamespace, table: list[str], data: pa.Table, mode: str) -> lance.LanceDataset:
    return lance.write_dataset(data, namespace_client=namespace, table_id=table, mode=mode)


def open_table(namespace: LanceNamespace, table: list[str], **more: object) -> lance.LanceDataset:
    return lance.dataset(namespace_client=namespace, table_id=table, **more)


def test_a_table_is_created_appended_to_and_overwritten(
    backend: Backend, namespace: LanceNamespace, db: list[str]
) -> None:
    table = [*db, "t"]
    write(namespace, table, rows(1, 2), "create")
    write(namespace, table, rows(3), "append")
    assert open_table(namespace, table).to_table()["x"].to_pylist() == [1, 2, 3]
    write(namespace, table, rows(9), "overwrite")
    with backend.connect() as other:  # type: ignore[attr-defined]
        assert open_table(other, table).to_table()["x"].to_pylist() == [9]
        assert open_table(other, table, version=2).count_rows() == 3


def test_creating_an_existing_table_is_refused(namespace: LanceNamespace, db: list[str]) -> None:
    write(namespace, [*db, "t"], rows(1), "create")
    with refused_with(ErrorCode.TABLE_ALREADY_EXISTS):
        write(namespace, [*db, "t"], rows(2), "create")
    assert open_table(namespace, [*db, "t"]).count_rows() == 1


@pytest.mark.parametrize("mode", ["append", "read"])
def test_a_missing_table_is_not_found(namespace: LanceNamespace, db: list[str], mode: str) -> None:
    with refused_with(ErrorCode.TABLE_NOT_FOUND):
        if mode == "read":
            open_table(namespace, [*db, "t"])
        else:
            write(namespace, [*db, "t"], rows(1), mode)


def test_a_write_that_failed_after_the_declaration_can_be_repeated(
    namespace: LanceNamespace, db: list[str]
) -> None:
    def breaking() -> object:
        yield pa.record_batch({"x": [1]})
        raise RuntimeError("out of data")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), breaking())
    with pytest.raises(OSError, match="out of data"):
        write(namespace, [*db, "t"], reader, "create")
    # pylance keeps the table that it declared, which can be written or dropped.
    assert namespace.describe_table({"id": [*db, "t"], "check_declared": True}).is_only_declared
    write(namespace, [*db, "t"], rows(1), "overwrite")
    assert open_table(namespace, [*db, "t"]).count_rows() == 1


def test_storage_options_reach_the_data_set(backend: Backend, db: list[str]) -> None:
    with backend.connect(**{"storage.allow_http": "true"}) as namespace:  # type: ignore[attr-defined]
        write(namespace, [*db, "t"], rows(1), "create")
        assert namespace.describe_table({"id": [*db, "t"]}).storage_options["allow_http"] == "true"
        silent = namespace.describe_table({"id": [*db, "t"], "vend_credentials": False})
        assert silent.storage_options is None
