"""Operations on the rows, columns, indices, tags and branches of storage-managed and managed tables."""

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from tests.conformance.codes import refused_with
from tests.support.backends import AUTHORITIES
from tests.support.request_data import stream

VECTORS = pa.list_(pa.float32(), 2)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["a", "b", "c"],
        "v": pa.array([[0, 0], [1, 1], [5, 5]], VECTORS),
    }
)

pytestmark = pytest.mark.parametrize(("backend", "managed_by"), AUTHORITIES, indirect=["backend"])

Data = Callable[[], list[tuple[int, str]]]


def content(answer: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = pa.ipc.open_file(answer.data).read_all().to_pydict()
    return found


@pytest.fixture
def table(namespace: LanceNamespace, db: list[str], managed_by: str) -> list[str]:
    """A table of three rows."""
    made = [*db, "things"]
    request = {"id": made, "properties": {"managed_by": managed_by}}
    assert namespace.create_table(request, stream(ROWS)).version == 1
    return made


@pytest.fixture
def data(namespace: LanceNamespace, table: list[str]) -> Data:
    """Return the ids and names of the rows, as pylance reads them through the namespace."""

    def read() -> list[tuple[int, str]]:
        rows = lance.dataset(namespace_client=namespace, table_id=table).to_table().to_pylist()
        return sorted((row["id"], row["name"]) for row in rows)

    return read


def test_a_table_is_created_with_rows(namespace: LanceNamespace, db: list[str], managed_by: str) -> None:
    request = {"id": [*db, "made"], "properties": {"managed_by": managed_by, "team": "search"}}

    made = namespace.create_table(request, stream(ROWS))

    described = namespace.describe_table({"id": [*db, "made"]})
    assert (made.version, made.location, made.properties) == (1, described.location, described.properties)
    assert described.properties["team"] == "search"
    assert described.managed_versioning is (managed_by == "impl")
    with refused_with(ErrorCode.TABLE_ALREADY_EXISTS, "made", "version 1"):
        namespace.create_table(request, stream(ROWS))
    assert namespace.create_table({**request, "mode": "ExistOk"}, stream(ROWS)).version is None
    assert namespace.create_table({**request, "mode": "overwrite"}, stream(ROWS.slice(2))).version == 2
    assert namespace.count_table_rows({"id": [*db, "made"]}).count == 1


def test_a_declared_table_gets_its_first_rows(
    namespace: LanceNamespace, db: list[str], managed_by: str
) -> None:
    namespace.declare_table({"id": [*db, "t"], "properties": {"managed_by": managed_by}})

    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND, "nothing has been written"):
        namespace.count_table_rows({"id": [*db, "t"]})
    assert namespace.create_table({"id": [*db, "t"]}, stream(ROWS)).version == 1
    with refused_with(ErrorCode.TABLE_NOT_FOUND):
        namespace.count_table_rows({"id": [*db, "missing"]})
    with refused_with(ErrorCode.INVALID_INPUT, "request_data"):
        namespace.create_table({"id": [*db, "u"]}, b"no Arrow")


def test_rows_are_inserted_merged_updated_and_deleted(
    namespace: LanceNamespace, table: list[str], data: Data
) -> None:
    inserted = namespace.insert_into_table({"id": table}, stream(ROWS.slice(0, 1)))
    assert (inserted.num_inserted_rows, inserted.version) == (1, 2)
    assert namespace.count_table_rows({"id": table, "predicate": "id = 1"}).count == 2
    assert namespace.count_table_rows({"id": table, "version": 1}).count == 3

    replaced = namespace.insert_into_table({"id": table, "mode": "overwrite"}, stream(ROWS))
    assert (replaced.num_inserted_rows, replaced.version) == (3, 3)

    merge = {"id": table, "on": ["id"], "when_matched_update_all": True, "when_not_matched_insert_all": True}
    others = ROWS.set_column(0, "id", pa.array([3, 4, 5], pa.int64()))
    merged = namespace.merge_insert_into_table(merge, stream(others))
    assert (merged.num_updated_rows, merged.num_inserted_rows, merged.version) == (1, 2, 4)

    updated = namespace.update_table({"id": table, "predicate": "id = 1", "updates": [["name", "'z'"]]})
    assert (updated.updated_rows, updated.version) == (1, 5)
    assert namespace.delete_from_table({"id": table, "predicate": "id = 2"}).version == 6
    assert data() == [(1, "z"), (3, "a"), (4, "b"), (5, "c")]


def test_invalid_changes_of_rows_are_refused(namespace: LanceNamespace, table: list[str]) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "idd"):
        namespace.delete_from_table({"id": table, "predicate": "idd = 2"})
    with refused_with(ErrorCode.INVALID_INPUT, "idd"):
        namespace.count_table_rows({"id": table, "predicate": "idd = 2"})
    with refused_with(ErrorCode.TABLE_SCHEMA_VALIDATION_ERROR, "x"):
        namespace.insert_into_table({"id": table}, stream(pa.table({"x": [1]})))
    with refused_with(ErrorCode.INVALID_INPUT, "on"):
        namespace.merge_insert_into_table({"id": table, "on": None}, stream(ROWS))
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND, "version 9"):
        namespace.count_table_rows({"id": table, "version": 9})
    assert namespace.count_table_rows({"id": table}).count == 3


def test_rows_are_queried(namespace: LanceNamespace, table: list[str]) -> None:
    near = {"id": table, "k": 2, "vector": {"single_vector": [1.0, 1.0]}, "columns": {"column_names": ["id"]}}
    listed = {"id": table, "k": 10, "vector": {}, "filter": "id > 1", "with_row_id": True}
    aliased = {**listed, "columns": {"column_aliases": {"twice": "id * 2"}}, "offset": 1}

    assert content(namespace.query_table(near))["id"] == [2, 1]
    assert set(content(namespace.query_table(listed))) == {"id", "name", "v", "_rowid"}
    assert content(namespace.query_table(aliased))["twice"] == [6]
    assert "KNN" in namespace.explain_table_query_plan({"id": table, "query": near})
    assert "output_rows" in namespace.analyze_table_query_plan(near)
    with refused_with(ErrorCode.UNSUPPORTED, "multi_vector"):
        namespace.query_table({**near, "vector": {"multi_vector": [[1.0, 1.0]]}})
    with refused_with(ErrorCode.INVALID_INPUT, "nobody"):
        namespace.query_table({**listed, "filter": "nobody = 1"})


def test_a_table_has_statistics(namespace: LanceNamespace, table: list[str]) -> None:
    namespace.insert_into_table({"id": table}, stream(ROWS.slice(0, 1)))

    stats = namespace.get_table_stats({"id": table})

    lengths = stats.fragment_stats.lengths
    assert (stats.num_rows, stats.num_indices, stats.fragment_stats.num_fragments) == (4, 0, 2)
    assert (lengths.min, lengths.max, lengths.mean) == (1, 3, 2)
    assert stats.total_bytes > 0


def test_columns_are_added_changed_and_dropped(namespace: LanceNamespace, table: list[str]) -> None:
    def schema() -> pa.Schema:
        return lance.dataset(namespace_client=namespace, table_id=table).schema

    new = [{"name": "twice", "expression": "id * 2"}]
    assert namespace.alter_table_add_columns({"id": table, "new_columns": new}).version == 2
    renamed = [{"path": "twice", "rename": "double", "data_type": {"type": "int32"}}]
    assert namespace.alter_table_alter_columns({"id": table, "alterations": renamed}).version == 3
    assert schema().field("double").type == pa.int32()
    with refused_with(ErrorCode.TABLE_COLUMN_NOT_FOUND, "twice"):
        namespace.alter_table_alter_columns({"id": table, "alterations": renamed})
    assert namespace.alter_table_drop_columns({"id": table, "columns": ["double"]}).version == 4
    with refused_with(ErrorCode.TABLE_COLUMN_NOT_FOUND, "double"):
        namespace.alter_table_drop_columns({"id": table, "columns": ["double"]})
    with refused_with(ErrorCode.INVALID_INPUT, "expected an expression"):
        namespace.alter_table_add_columns({"id": table, "new_columns": [{"name": "empty"}]})
    assert schema().names == ["id", "name", "v"]


def test_metadata_is_updated_and_a_version_restored(
    namespace: LanceNamespace, table: list[str], data: Data
) -> None:
    answer = namespace.update_table_schema_metadata({"id": table, "metadata": {"owner": "me"}})
    assert answer.metadata["owner"] == "me"
    updates = [{"path": "id", "metadata": {"unit": "none"}}]
    fields = namespace.update_field_metadata({"id": table, "updates": updates})
    assert (fields.version, fields.fields["id"]["unit"]) == (3, "none")
    namespace.delete_from_table({"id": table, "predicate": "true"})
    assert data() == []

    namespace.restore_table({"id": table, "version": 1})

    assert len(data()) == 3
    assert namespace.count_table_rows({"id": table, "version": 5}).count == 3


def test_indices_are_created_described_and_dropped(namespace: LanceNamespace, table: list[str]) -> None:
    scalar = {"id": table, "column": "id", "index_type": "BTREE"}
    vector = {"id": table, "column": "v", "index_type": "IVF_FLAT", "name": "near", "num_partitions": 1}
    namespace.create_table_scalar_index(scalar)
    namespace.create_table_index({**vector, "distance_type": "cosine"})
    namespace.create_table_index({"id": table, "column": "name", "index_type": "FTS", "name": "words"})
    namespace.insert_into_table({"id": table}, stream(ROWS.slice(0, 1)))

    first = namespace.list_table_indices({"id": table, "limit": 2})
    rest = namespace.list_table_indices({"id": table, "page_token": first.page_token})

    found = {index.index_name: index for index in [*first.indexes, *rest.indexes]}
    assert sorted(found) == ["id_idx", "near", "words"]
    assert (found["near"].columns, found["near"].num_indexed_rows) == (["v"], 3)
    stats = namespace.describe_table_index_stats({"id": table, "index_name": "near"})
    assert (stats.num_indexed_rows, stats.num_unindexed_rows, stats.distance_type) == (3, 1, "cosine")
    words = {"id": table, "k": 5, "vector": {}, "full_text_query": {"string_query": {"query": "b"}}}
    assert content(namespace.query_table(words))["id"] == [2]
    with refused_with(ErrorCode.TABLE_INDEX_ALREADY_EXISTS, "id_idx"):
        namespace.create_table_scalar_index(scalar)
    with refused_with(ErrorCode.INVALID_INPUT, "index_type"):
        namespace.create_table_scalar_index({**vector})
    with refused_with(ErrorCode.TABLE_COLUMN_NOT_FOUND, "nobody"):
        namespace.create_table_index({**scalar, "column": "nobody"})
    namespace.drop_table_index({"id": table, "index_name": "near"})
    with refused_with(ErrorCode.TABLE_INDEX_NOT_FOUND, "near", "id_idx, words"):
        namespace.drop_table_index({"id": table, "index_name": "near"})


def test_versions_are_tagged(namespace: LanceNamespace, table: list[str]) -> None:
    namespace.insert_into_table({"id": table}, stream(ROWS))
    namespace.create_table_tag({"id": table, "tag": "gold", "version": 1})

    with refused_with(ErrorCode.TABLE_TAG_ALREADY_EXISTS, "gold"):
        namespace.create_table_tag({"id": table, "tag": "gold", "version": 1})
    with refused_with(ErrorCode.TABLE_VERSION_NOT_FOUND, "9"):
        namespace.create_table_tag({"id": table, "tag": "late", "version": 9})
    namespace.update_table_tag({"id": table, "tag": "gold", "version": 2})
    assert namespace.get_table_tag_version({"id": table, "tag": "gold"}).version == 2
    assert {name: tag.version for name, tag in namespace.list_table_tags({"id": table}).tags.items()} == {
        "gold": 2
    }
    namespace.delete_table_tag({"id": table, "tag": "gold"})
    for refused in (namespace.get_table_tag_version, namespace.delete_table_tag):
        with refused_with(ErrorCode.TABLE_TAG_NOT_FOUND, "gold"):
            refused({"id": table, "tag": "gold"})
    with refused_with(ErrorCode.TABLE_TAG_NOT_FOUND, "gold"):
        namespace.update_table_tag({"id": table, "tag": "gold", "version": 1})


def test_branches_are_written_apart_from_main(
    namespace: LanceNamespace, table: list[str], data: Data
) -> None:
    namespace.create_table_branch({"id": table, "name": "trial"})

    with refused_with(ErrorCode.TABLE_BRANCH_ALREADY_EXISTS, "trial"):
        namespace.create_table_branch({"id": table, "name": "trial"})
    namespace.insert_into_table({"id": table, "branch": "trial"}, stream(ROWS))
    assert namespace.count_table_rows({"id": table, "branch": "trial"}).count == 6
    assert len(data()) == 3
    assert namespace.list_table_branches({"id": table}).branches["trial"].parent_version == 1
    namespace.delete_table_branch({"id": table, "name": "trial"})
    with refused_with(ErrorCode.TABLE_BRANCH_NOT_FOUND, "trial"):
        namespace.delete_table_branch({"id": table, "name": "trial"})
    with refused_with(ErrorCode.TABLE_BRANCH_NOT_FOUND, "trial"):
        namespace.count_table_rows({"id": table, "branch": "trial"})
