"""Staged versions that another client crafted: no file outside of the table is published or discarded."""

import json
import uuid
from pathlib import Path

import lance
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import DataFile, FragmentMetadata
from lance_namespace import DescribeTableRequest, LanceNamespace
from lance_namespace.errors import InvalidTableStateError, TableVersionNotFoundError

from airflow_provider_lancens.spark.keys import IDEMPOTENCY_KEY
from airflow_provider_lancens.spark.publish import discard_version, publish_version
from tests.support.prepared_tables import ROWS

SPEC = {"mode": "append", "base": 1, "compared": False, "condition": None, "on": []}


@pytest.fixture
def data(namespace: LanceNamespace) -> LanceDataset:
    """A table at version 1."""
    location = namespace.describe_table(DescribeTableRequest(id=["orders"])).location
    return lance.write_dataset(ROWS, location)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file beside the table."""
    path = tmp_path / "victim"
    path.write_bytes(b"alive")
    return path


def craft(data: LanceDataset, path: str, spec: str = json.dumps(SPEC)) -> int:
    """Stage a version that names a file at `path`, and return its number."""
    fragment = data.get_fragments()[0].metadata
    known = fragment.files[0]
    file = DataFile(
        path, known.fields, known.column_indices, known.file_major_version, known.file_minor_version
    )
    # Lance reads it once, under a name that it quotes.
    folder = Path(data.uri, "data")
    quoted = path.replace("%", "%25").replace("/", "%2F")
    (folder / quoted).write_bytes((folder / known.path).read_bytes())
    crafted = FragmentMetadata(fragment.id + 1, [file], fragment.physical_rows)
    properties = {"lancens.staged": spec, IDEMPOTENCY_KEY: "a key"}
    transaction = Transaction(1, LanceOperation.Append([crafted]), str(uuid.uuid4()), properties)
    return int(LanceDataset.commit(data, transaction, read_version=1, detached=True).version)


@pytest.mark.parametrize(
    "path", ["../../victim", "../../../victim", "%2e%2e/%2e%2e/victim", "..%2F..%2Fvictim"]
)
def test_discarding_a_crafted_version_keeps_files_outside_of_the_table(
    namespace: LanceNamespace,
    data: LanceDataset,
    canary: Path,
    path: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    crafted = craft(data, path)
    assert discard_version(namespace, "orders", crafted)
    assert canary.read_bytes() == b"alive"
    assert "named files outside of the table, which are kept" in caplog.text
    assert not discard_version(namespace, "orders", crafted)


def test_a_version_with_files_outside_of_the_table_is_not_published(
    namespace: LanceNamespace, data: LanceDataset, canary: Path
) -> None:
    crafted = craft(data, "../../victim")
    with pytest.raises(InvalidTableStateError, match="names files outside of the table"):
        publish_version(namespace, "orders", crafted)
    assert canary.read_bytes() == b"alive"


@pytest.mark.parametrize(
    "spec", ["{", "[]", "7", '{"mode": 7, "base": 1}', '{"mode": "append"}', "[" * 50_000]
)
def test_an_unreadable_record_makes_no_staged_version(
    namespace: LanceNamespace, data: LanceDataset, spec: str
) -> None:
    crafted = craft(data, data.get_fragments()[0].metadata.files[0].path, spec)
    with pytest.raises(TableVersionNotFoundError, match="was not staged by this package"):
        publish_version(namespace, "orders", crafted)
    assert not discard_version(namespace, "orders", crafted)
    assert data.count_rows() == ROWS.num_rows
