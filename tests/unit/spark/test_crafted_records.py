"""Records that another client wrote, or a power failure emptied: they mean what is safe, in words."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from lance import LanceOperation, Transaction
from lance_namespace import DescribeTableRequest, LanceNamespace
from lance_namespace.errors import ConcurrentModificationError, InvalidTableStateError

from airflow_provider_lancens.namespace.storage import purge
from airflow_provider_lancens.namespace.storage.json_records import record_fields, whole_number
from airflow_provider_lancens.namespace.storage.object_store import version_of
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from airflow_provider_lancens.spark.maintenance.orphans import remove_orphans
from airflow_provider_lancens.spark.maintenance.restore import restore_version
from tests.support.bookmarks import list_bookmarks, move_bookmark
from tests.support.prepared_tables import ROWS

TAG: dict[str, Any] = {"branch": None, "version": 1, "manifestSize": 9, "metadata": {}}


@pytest.fixture
def table(namespace: LanceNamespace) -> Path:
    """The folder of a table of three versions."""
    location = namespace.describe_table(DescribeTableRequest(id=["orders"])).location
    for mode in ("create", "append", "append"):
        lance.write_dataset(ROWS, location, mode=mode)
    return Path(location)


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.mark.parametrize(
    "record",
    [b'{"versions": [[Infinity, 1]]}', b'{"versions": [[1e999, 1]]}', b"[" * 100_000, b"\xff", b"[1]"],
)
def test_an_unreadable_removal_keeps_versions_from_being_tagged_until_the_next_clean_up(
    namespace: LanceNamespace, table: Path, record: bytes
) -> None:
    write(table / "_lancens/removals/x", record)
    with pytest.raises(ConcurrentModificationError, match="is being removed by a clean-up"):
        restore_version(namespace, "orders", 1)
    clean_up_versions(namespace, "orders", older_than=timedelta(days=1), keep_versions=3)
    assert restore_version(namespace, "orders", 1).restored_version == 1


def test_a_removal_that_names_every_version_doesnt_remove_the_newest_or_a_tagged_one(
    namespace: LanceNamespace, table: Path
) -> None:
    move_bookmark(namespace, "orders", "consumer", 2)
    write(table / "_lancens/removals/x", b'{"versions": [[0, 1000000000000]]}')
    clean_up_versions(namespace, "orders", older_than=timedelta(days=1))
    assert [version["version"] for version in lance.dataset(table).versions()] == [2, 3]


def test_a_temporary_tag_without_a_time_is_kept(namespace: LanceNamespace, table: Path) -> None:
    write(table / "_refs/tags/lancens-temporary-x.json", json.dumps(TAG).encode())
    assert clean_up_versions(namespace, "orders", older_than=timedelta(0)).kept_by_tag == 1
    assert lance.dataset(table, version=1).count_rows() == ROWS.num_rows


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("\u202e", json.dumps(TAG)),
        ("..%2Fx", json.dumps(TAG)),
        ("a\nb", "{}"),
        ("a", "{"),
        ("a", '{"version": -1}'),
    ],
)
def test_a_file_that_is_no_tag_is_named(
    namespace: LanceNamespace, table: Path, name: str, content: str
) -> None:
    write(table / f"_refs/tags/{name}.json", content.encode())
    with pytest.raises(InvalidTableStateError, match=r"wrote a file below _refs/ that is none.*remove that"):
        list_bookmarks(namespace, "orders")


def test_a_file_that_is_no_branch_is_named(namespace: LanceNamespace, table: Path) -> None:
    write(table / "_refs/branches/..%2F..%2Fother.lance.json", b'{"parentVersion": 1, "createAt": 1}')
    with pytest.raises(InvalidTableStateError, match=r"wrote a file below _refs/ that is none.*remove that"):
        clean_up_versions(namespace, "orders", older_than=timedelta(0))


def test_a_name_with_a_line_end_is_not_retried_for_ever(namespace: LanceNamespace, table: Path) -> None:
    write(table / "data/a\nb.lance", b"x")
    with pytest.raises(
        InvalidTableStateError, match=r"whose name no file of a table may have.*a\\nb"
    ) as refusal:
        remove_orphans(namespace, "orders")
    assert str(refusal.value).isprintable()


def test_an_unreadable_expiry_is_that_of_a_lost_version(namespace: LanceNamespace, table: Path) -> None:
    for name, content in {
        "a": b"[" * 100_000,
        "b": b'{"version": "x", "moved_at": 7, "expires_at": "2020-01-01"}',
    }.items():
        write(table / f"_lancens/expired-bookmarks/{name}.json", content)
    found = list_bookmarks(namespace, "orders")
    assert [(one.name, one.version, one.moved_at, one.expires_at) for one in found] == [
        ("a", 0, None, None),
        ("b", 0, None, None),
    ]


def test_no_name_of_another_client_begins_a_line_of_a_log(
    namespace: LanceNamespace, table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    properties = {"lancens.idempotency_key": "key\n2026-01-01 INFO granted"}
    operation = LanceOperation.UpdateConfig()
    lance.LanceDataset.commit(
        table, Transaction(3, operation, transaction_properties=properties), read_version=3
    )
    with caplog.at_level("INFO"):
        restore_version(namespace, "orders", 3)
        write(table / "a\n2026-01-01 INFO granted", b"x")
        purge.remove(str(table), {})
    assert "granted" in caplog.text
    assert not [record for record in caplog.records if "\n" in record.getMessage()]


@pytest.mark.parametrize("content", [None, b"", b"[]", b"7", b"{", b"[" * 100_000, b"\xff\xfe"])
def test_an_unreadable_record_has_no_fields(content: bytes | None) -> None:
    assert record_fields(content) == {}


@pytest.mark.parametrize(
    "value", [None, True, -1, 2**64 + 1, 1.5, float("inf"), "x", "\u0663", "1" * 5000, []]
)
def test_what_is_no_number_of_a_version_counts_as_none(value: object) -> None:
    assert whole_number(value) is None


@pytest.mark.parametrize("name", ["\u0663", "9" * 40, "9" * 20, "-1", "x", ""])
def test_a_manifest_without_a_possible_version_is_that_of_none(name: str) -> None:
    assert version_of(f"_versions/{name}.manifest") is None
