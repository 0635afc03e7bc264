from typing import Any

import pytest

from airflow_provider_lancens.spark import FileSource


def test_a_file_source_can_be_given_as_a_mapping() -> None:
    given = {"format": "csv", "paths": "/data/a.csv", "delimiter": ";"}

    assert FileSource.parse(given) == FileSource("csv", ["/data/a.csv"], delimiter=";")


def test_the_repr_shows_no_secret() -> None:
    source = FileSource("csv", "/a", storage_options={"aws_secret_access_key": "hidden"})

    assert "hidden" not in repr(source)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"paths": "/a"}, "format: missing"),
        ({"format": "orc", "paths": "/a"}, "format: expected one of parquet, arrow, csv, json, got 'orc'"),
        ({"format": "csv", "paths": []}, "paths: expected at least one"),
        ({"format": "csv", "paths": ["/a", " "]}, "paths: "),
        ({"format": "csv", "paths": "/a", "columns": "id"}, "columns: expected a list"),
        ({"format": "csv", "paths": "/a", "columns": []}, "columns: expected a list"),
        ({"format": "csv", "paths": "/a", "columns": 7}, "columns: expected a list"),
        ({"format": "csv", "paths": None}, "paths: expected at least one"),
        ({"format": "csv", "paths": "/a", "casts": "{'id': 'int64'}"}, "casts: expected a mapping"),
        ({"format": "csv", "paths": "/a", "renames": None}, "renames: expected a mapping"),
        ({"format": "csv", "paths": "/a", "schema": ["id"]}, "schema: expected a mapping"),
        ({"format": "csv", "paths": "/a", "header": "False"}, "header: expected True or False"),
        ({"format": "csv", "paths": "/a", "delimiter": None}, "delimiter: "),
        ({"format": "csv", "paths": "/a", "tasks": 0}, "tasks: "),
        ({"format": "csv", "paths": "/a", "header": False}, "header: "),
        ({"format": "csv", "paths": "/a", "delimiter": "||"}, "delimiter: "),
        ({"format": "parquet", "paths": "/a", "schema": {"id": "int64"}}, "schema: parquet files contain"),
        ({"format": "csv", "paths": "/a", "partitions": "False"}, "partitions: expected True, False, or a"),
        ({"format": "csv", "paths": "/a", "partitions": None}, "partitions: expected True, False, or a"),
        ({"format": "csv", "paths": "/a", "partitions": {"day": None}}, "partitions: expected text by"),
        ({"format": "csv", "paths": "/a", "columns": ["id", None]}, "columns: expected a list of names"),
        ({"format": "csv", "paths": "/a", "filter": True}, "filter: expected a condition, or None, got True"),
        ({"format": "csv", "paths": "/a", "casts": {"id": 64}}, "casts: expected text by columns' names"),
        ({"format": "csv", "paths": "/a", "renames": {1: "id"}}, "renames: expected text by columns' names"),
        ({"format": "csv", "paths": "/a", "tasks": True}, "tasks: expected a whole number"),
        ({"format": "csv", "paths": "/a", "storage_options": "hush"}, "storage_options: expected a mapping"),
        ({"format": "csv", "paths": "/a", 1: "a"}, "1: unknown; expected format, paths"),
        ({"format": "csv", "paths": "/a", "where": "1"}, "where: unknown; expected format, paths"),
    ],
)
def test_an_invalid_field_is_named(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        FileSource.parse(given)


def test_outputs_of_other_tasks_are_accepted_until_they_are_rendered() -> None:
    class Output:
        def resolve(self, context: Any) -> str:
            raise AssertionError(context)

    output: Any = Output()

    source = FileSource("csv", "/a", filter=output, renames={"id": output}, columns=["id", output])

    assert source.filter is output
