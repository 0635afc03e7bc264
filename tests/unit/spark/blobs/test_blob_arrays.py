"""The values of a column that are refused as blobs, with messages that name the column."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from airflow_provider_lancens.namespace.row_errors import RowError
from airflow_provider_lancens.spark import connect
from airflow_provider_lancens.spark.blobs import blob_array

REFERENCE = pa.struct([("uri", pa.string()), ("position", pa.int64()), ("size", pa.int64())])


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("", "column video: expected the URI of a file, or null, but it is empty"),
        ("relative/x.bin", "column video: .*is relative"),
        ("s3://key:secret@bucket/x", "column video: .*contains credentials"),
    ],
)
def test_an_invalid_uri_is_refused(uri: str, message: str) -> None:
    with pytest.raises(RowError, match=f"row 2, {message}") as caught:
        blob_array(pa.array([None, uri]), "video")

    assert "key:secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ((None, None, 5), "a reference without a URI"),
        (("/x", 0, None), "only one of position and size"),
        (("/x", None, 5), "only one of position and size"),
        (("/x", -1, 5), "position of at least 0"),
        (("/x", 0, 0), "size of at least 1"),
    ],
)
def test_an_invalid_reference_is_refused(reference: Any, message: str) -> None:
    value = dict(zip(("uri", "position", "size"), reference, strict=True))

    with pytest.raises(RowError, match=f"row 2, column video: .*{message}"):
        blob_array(pa.array([None, value], REFERENCE), "video")


def test_references_and_nulls_are_taken() -> None:
    values = [None, {"uri": "/x", "position": 3, "size": 5}, {"uri": "/y", "position": None, "size": None}]

    taken = blob_array(pa.array(values, REFERENCE), "video").storage.to_pylist()

    assert taken == [
        None,
        {"data": None, "uri": "file:///x", "position": 3, "size": 5},
        {"data": None, "uri": "file:///y", "position": None, "size": None},
    ]


def test_a_write_of_a_relative_uri_is_refused_rather_than_retried(tmp_path: Path) -> None:
    lake = connect("dir", {"root": str(tmp_path)})
    lake.create_namespace("media")
    clips = lake.declare_table("media.clips", layout={"blob_columns": ["video"]})
    clips.append(pa.table({"id": [1], "video": ["/x.bin"]}))

    with pytest.raises(InvalidInputError, match=r"rows: row 2, column video: .*is relative"):
        clips.append(pa.table({"id": [2, 3], "video": ["/y.bin", "z.bin"]}))
    assert clips.count_rows() == 1
