import shutil
from pathlib import Path
from typing import Any

import pytest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableColumnNotFoundError,
    TableIndexAlreadyExistsError,
)
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_lancens.spark import IndexResult, TableLayout
from airflow_provider_lancens.spark.maintenance import index, measure_recall
from airflow_provider_lancens.spark.maintenance.maintenance_options import SCALAR_TYPES, VECTOR_TYPES
from tests.support.indices import build_index
from tests.support.maintained_tables import (
    Maintained,
    Meanwhile,
    mostly_long,
    on,
    rows,
    stored_in,
    stored_table,
)

pytestmark = pytest.mark.thorough

DIMENSION = 16
COLUMN_OF = {"LABEL_LIST": "words", "NGRAM": "word"}


def build(table: Maintained, column: str, index_type: str, **arguments: Any) -> IndexResult:
    return build_index(table.spark, table.spec, table.id, column, index_type, **arguments)


def with_vectors(table: Maintained, count: int = 600) -> DataFrame:
    """Vectors on a circle: neighbors have neighboring ids."""
    coordinates = [f"float({f}(2 * pi() * id * {n} / {count}))" for n in range(1, 9) for f in ("sin", "cos")]
    return table.spark.range(0, count, 1, 3).selectExpr(
        "id",
        "concat('word ', id) AS word",
        "array('all', word) AS words",
        f"array({', '.join(coordinates)}) AS v",
    )


@pytest.fixture(scope="module")
def written_vectors(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a table with vectors, written once by Spark."""
    folder = tmp_path_factory.mktemp("vectors")
    table = stored_table(spark, folder)
    table.write(with_vectors(table), options=TableLayout(vector_columns={"v": DIMENSION}))
    return folder


@pytest.fixture
def vectors(spark: SparkSession, written_vectors: Path, tmp_path: Path) -> Maintained:
    """A copy of it, for each test."""
    shutil.copytree(written_vectors, tmp_path, dirs_exist_ok=True)
    return stored_in(spark, tmp_path)


@on("hive")
def test_an_index_is_built_over_all_rows_and_committed_once(table: Maintained) -> None:
    table.write_small_files(6)

    result = build(table, "id", "btree", segments=2)

    assert (result.version, result.previous_version, result.is_done) == (2, 1, True)
    assert (result.index, result.index_type, result.rows, result.segments) == ("id_idx", "BTREE", 60, 2)
    assert table.newest.version == table.by_path.version == 2
    assert "ScalarIndexQuery" in table.newest.scanner(filter="id = 42").explain_plan()
    assert table.newest.to_table(filter="id = 42")["word"].to_pylist() == ["word 42"]


@pytest.mark.parametrize("index_type", mostly_long("BTREE", "INVERTED", of=[*SCALAR_TYPES, "INVERTED"]))
def test_every_type_can_be_built_in_segments(vectors: Maintained, index_type: str) -> None:
    column = COLUMN_OF.get(index_type, "word")

    result = build(vectors, column, index_type)

    assert (result.rows, result.segments, result.is_done) == (600, 3, True)
    assert build(vectors, column, index_type).is_done is False


@pytest.mark.parametrize("index_type", mostly_long("IVF_PQ", of=VECTOR_TYPES))
def test_the_nearest_neighbors_are_found_through_the_index(vectors: Maintained, index_type: str) -> None:
    built = build(vectors, "v", index_type, options={"num_partitions": 4})
    assert (built.rows, built.segments, build(vectors, "v", index_type).is_done) == (600, 3, False)
    asked = vectors.newest.to_table(filter="id = 300")["v"][0].as_py()

    scanner = vectors.newest.scanner(
        columns=["id"], nearest={"column": "v", "q": asked, "k": 5, "nprobes": 4, "refine_factor": 10}
    )

    assert "ANNSubIndex" in scanner.explain_plan()
    # A quantizer is approximate: true distances decide between ten times as many candidates.
    assert sorted(scanner.to_table()["id"].to_pylist()) == [298, 299, 300, 301, 302]


def test_text_is_found_through_the_full_text_index(vectors: Maintained) -> None:
    build(vectors, "word", "INVERTED", options={"with_position": True})

    assert vectors.newest.to_table(full_text_query="42")["id"].to_pylist() == [42]


def test_rows_appended_meanwhile_are_found_without_the_index(hive: Maintained, meanwhile: Meanwhile) -> None:
    hive.write_small_files(6)
    meanwhile(index, lambda: hive.write(rows(hive.spark, 100, 110)))

    result = build(hive, "id", "BTREE")

    assert (result.version, result.rows) == (3, 60)
    assert hive.newest.to_table(filter="id = 105")["word"].to_pylist() == ["word 105"]


def test_an_index_over_removed_fragments_is_refused(hive: Maintained, meanwhile: Meanwhile) -> None:
    hive.write_small_files(6)
    meanwhile(index, lambda: hive.newest.optimize.compact_files())

    with pytest.raises(ConcurrentModificationError, match="run it again"):
        build(hive, "id", "BTREE")

    assert build(hive, "id", "BTREE").rows == 60


def test_one_of_two_concurrent_builds_of_an_index_is_refused(
    stored: Maintained, meanwhile: Meanwhile
) -> None:
    stored.write_small_files(2)
    meanwhile(index, lambda: stored.newest.create_scalar_index("id", "BTREE", name="id_idx"))

    with pytest.raises(ConcurrentModificationError):
        build(stored, "id", "BTREE")

    assert build(stored, "id", "BTREE").is_done is False


def test_an_existing_index_is_kept_replaced_or_refused_by_mode(stored: Maintained) -> None:
    stored.write_small_files(3)
    build(stored, "id", "BTREE")
    stored.write(rows(stored.spark, 100, 110))

    skipped = build(stored, "id", "BTREE")
    with pytest.raises(TableIndexAlreadyExistsError, match="'id_idx' already exists as BTree on id"):
        build(stored, "id", "BTREE", if_exists="fail")
    replaced = build(stored, "id", "BITMAP", if_exists="replace")

    assert (skipped.is_done, skipped.version, skipped.rows) == (False, 3, 30)
    assert (replaced.is_done, replaced.version, replaced.rows) == (True, 4, 40)
    assert [found.index_type for found in stored.newest.describe_indices()] == ["Bitmap"]


@pytest.mark.parametrize("if_exists", ["skip", "replace"])
def test_an_index_of_the_same_name_on_another_column_is_kept(stored: Maintained, if_exists: Any) -> None:
    stored.write_small_files(1)
    build(stored, "id", "BTREE", name="mine")

    with pytest.raises(TableIndexAlreadyExistsError, match=r"BTree on id.*choose another name$"):
        build(stored, "word", "BTREE", name="mine", if_exists=if_exists)


@pytest.mark.parametrize(
    ("column", "index_type", "arguments", "error", "message"),
    [
        ("nope", "BTREE", {}, TableColumnNotFoundError, "'nope' does not exist; columns: .*'words', 'v'"),
        ("id", "INVERTED", {}, InvalidInputError, "column id is int64; .*'INVERTED' requires text"),
        ("v", "BTREE", {}, InvalidInputError, "column v is fixed_size_list.*requires numbers"),
        ("words", "IVF_PQ", {}, InvalidInputError, "requires vectors, which TableLayout"),
        ("v", "IVF_PQ", {"options": {"num_sub_vectors": 5}}, InvalidInputError, r"is 5.*\[1, 2, 4, 8, 16\]"),
        ("v", "IVF_FLAT", {"options": {"num_partitions": 301}}, InvalidInputError, "602 rows.*there are 600"),
    ],
)
def test_an_impossible_index_is_reported_and_nothing_is_committed(
    vectors: Maintained, column: str, index_type: str, arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build(vectors, column, index_type, **arguments)

    assert vectors.newest.version == 1


def test_too_few_rows_for_a_quantizer_are_reported(stored: Maintained) -> None:
    stored.write(with_vectors(stored, 100), options=TableLayout(vector_columns={"v": DIMENSION}))

    with pytest.raises(InvalidInputError, match=r"requires at least 512 rows, but there are 100.*IVF_FLAT"):
        build(stored, "v", "IVF_PQ")

    assert build(stored, "v", "IVF_PQ", options={"num_bits": 4}).rows == 100


def test_a_table_without_rows_is_named(stored: Maintained) -> None:
    stored.write(rows(stored.spark, 0, 0))

    with pytest.raises(InvalidInputError, match="version 1 has no rows to index"):
        build(stored, "id", "BTREE")


@pytest.mark.parametrize("index_type", mostly_long("BTREE", "IVF_PQ", of=[*SCALAR_TYPES, *VECTOR_TYPES]))
def test_an_extension_builds_segments_over_the_new_rows_alone(vectors: Maintained, index_type: str) -> None:
    is_vector = index_type in VECTOR_TYPES
    column = "v" if is_vector else COLUMN_OF.get(index_type, "word")
    options = {"num_partitions": 4} if is_vector else {}
    build(vectors, column, index_type, options=options)
    before = segments_of(vectors)
    vectors.write(with_vectors(vectors), options=TableLayout(vector_columns={"v": DIMENSION}))

    result = build(vectors, column, index_type, options=options, if_exists="extend")

    assert (result.rows, result.is_done) == (1200, True)
    assert before < segments_of(vectors)
    assert build(vectors, column, index_type, options=options, if_exists="extend").is_done is False


def segments_of(table: Maintained) -> set[str]:
    return {segment.uuid for index in table.newest.describe_indices() for segment in index.segments}


@pytest.mark.parametrize("index_type", mostly_long("IVF_PQ", of=["IVF_FLAT", "IVF_PQ"]))
def test_new_vectors_are_found_through_an_extended_index(vectors: Maintained, index_type: str) -> None:
    options = {"num_partitions": 4}
    build(vectors, "v", index_type, options=options)
    vectors.write(with_vectors(vectors), options=TableLayout(vector_columns={"v": DIMENSION}))
    build(vectors, "v", index_type, options=options, if_exists="extend")
    asked = vectors.newest.to_table(filter="id = 300")["v"][0].as_py()

    scanner = vectors.newest.scanner(
        columns=["id"], nearest={"column": "v", "q": asked, "k": 6, "nprobes": 4, "refine_factor": 10}
    )

    # Rows without an index are searched by another step of the plan.
    assert "KNNVectorDistance" not in scanner.explain_plan().split("ANNSubIndex")[1]
    assert sorted(scanner.to_table()["id"].to_pylist()) == [299, 299, 300, 300, 301, 301]


@pytest.mark.parametrize("options", [{"num_partitions": 5}, {"num_partitions": 4, "metric": "cosine"}])
def test_a_vector_index_with_other_options_is_rebuilt(vectors: Maintained, options: dict[str, Any]) -> None:
    build(vectors, "v", "IVF_FLAT", options={"num_partitions": 4})
    before = segments_of(vectors)
    vectors.write(with_vectors(vectors), options=TableLayout(vector_columns={"v": DIMENSION}))

    assert build(vectors, "v", "IVF_FLAT", options=options, if_exists="extend").rows == 1200

    assert before.isdisjoint(segments_of(vectors))


def test_a_vector_index_of_a_table_that_has_grown_is_trained_again(vectors: Maintained) -> None:
    build(vectors, "v", "IVF_FLAT", options={"num_partitions": 4})
    vectors.write(with_vectors(vectors), options=TableLayout(vector_columns={"v": DIMENSION}))

    build(vectors, "v", "IVF_FLAT", if_exists="extend")

    assert len(vectors.newest.centroids(index_name="v_idx")) == 35


def test_small_segments_are_merged(stored: Maintained) -> None:
    stored.write(rows(stored.spark, 0, 200))
    build(stored, "id", "BTREE", segments=1)
    counts = []
    for first in range(200, 240, 10):
        stored.write(rows(stored.spark, first, first + 10))
        result = build(stored, "id", "BTREE", segments=1, if_exists="extend")
        counts.append((result.segments, result.rows))

    assert counts == [(2, 210), (2, 220), (2, 230), (2, 240)]
    assert stored.newest.to_table(filter="id in (5, 205, 235)").num_rows == 3


def test_recall_compares_the_index_with_a_search_of_all_rows(vectors: Maintained) -> None:
    given = {"column": "v", "queries": 20, "k": 5}
    assert measure_recall(vectors.spec, vectors.id, **given) == 1

    build(vectors, "v", "IVF_FLAT", options={"num_partitions": 30, "metric": "cosine"})

    assert measure_recall(vectors.spec, vectors.id, **given, nprobes=30) == 1
    assert 0 < measure_recall(vectors.spec, vectors.id, **given, nprobes=1) < 1


@pytest.mark.parametrize(
    ("column", "given", "error", "message"),
    [
        ("nope", {}, TableColumnNotFoundError, "column='nope' does not exist; columns: "),
        ("word", {}, InvalidInputError, "column word is string; recall requires vectors"),
        ("v", {"queries": 0}, InvalidInputError, "queries: .*at least 1"),
    ],
)
def test_a_recall_that_cannot_be_measured_is_refused(
    vectors: Maintained, column: str, given: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        measure_recall(vectors.spec, vectors.id, column, **given)
