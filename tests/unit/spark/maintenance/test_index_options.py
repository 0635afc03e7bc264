"""An index that is extended, or built anew by maintenance, keeps the options that aren't given."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.query import MatchQuery, PhraseQuery
from lance_namespace import DeclareTableRequest

from airflow_provider_lancens.namespace.storage.vended_options import EXPIRES_AT, VendedOptions
from airflow_provider_lancens.spark.maintenance import IndexSpec, Thresholds
from airflow_provider_lancens.spark.maintenance.index import text_options_before, trained_before
from airflow_provider_lancens.spark.maintenance.maintain import maintain_table
from airflow_provider_lancens.spark.maintenance.maintenance_options import MaintenancePlan
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec
from tests.support.indices import build_index
from tests.unit.spark.every_verb import SPARK

Bring = Callable[[NamespaceSpec, IndexSpec], None]


def extend(lake: NamespaceSpec, spec: IndexSpec) -> None:
    build_index(
        SPARK, lake, "t", spec.column, spec.index_type, name="i", if_exists="extend", options=spec.options
    )


def maintain(lake: NamespaceSpec, spec: IndexSpec) -> None:
    maintain_table(SPARK, lake, "t", MaintenancePlan(indices=(spec,), thresholds=Thresholds()))


@pytest.fixture
def lake(tmp_path: Path) -> NamespaceSpec:
    lake = NamespaceSpec("dir", {"root": str(tmp_path)})
    lake.connect().declare_table(DeclareTableRequest(id=["t"]))
    return lake


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "t.lance")


def spec_of(column: str, index_type: str, **options: Any) -> IndexSpec:
    return IndexSpec(column, index_type, "i", options)


def texts(count: int) -> pa.Table:
    return pa.table({"s": ["a red apple pie"] * count, "id": list(range(count))})


def vectors(count: int) -> pa.Table:
    values = [[1.0 + row % 7, 2.0 + row % 5] for row in range(count)]
    return pa.table({"v": pa.array(values, pa.list_(pa.float32(), 2))})


def described(location: str) -> Any:
    [index] = lance.dataset(location).describe_indices()
    return index


def build(lake: NamespaceSpec, spec: IndexSpec, **how: Any) -> None:
    build_index(SPARK, lake, "t", spec.column, spec.index_type, name="i", options=spec.options, **how)


@pytest.mark.parametrize("bring_up_to_date", [extend, maintain])
def test_new_texts_are_indexed_as_the_others(
    lake: NamespaceSpec, location: str, bring_up_to_date: Bring
) -> None:
    lance.write_dataset(texts(20), location)
    build(lake, spec_of("s", "INVERTED", with_position=True, custom_stop_words=["red"], stem=False))
    lance.write_dataset(texts(20), location, mode="append")

    bring_up_to_date(lake, spec_of("s", "INVERTED", stem=False))

    index, dataset = described(location), lance.dataset(location)
    assert (len(index.segments), index.num_rows_indexed) == (2, 40)
    for query, rows in ((MatchQuery("apple", "s"), 40), (MatchQuery("red", "s"), 0)):
        assert dataset.to_table(["id"], full_text_query=query).num_rows == rows
    assert dataset.to_table(["id"], full_text_query=PhraseQuery("apple pie", "s")).num_rows == 40


@pytest.mark.parametrize("bring_up_to_date", [extend, maintain])
def test_the_same_stop_words_in_another_order_extend_an_index(
    lake: NamespaceSpec, location: str, bring_up_to_date: Bring
) -> None:
    lance.write_dataset(texts(20), location)
    build(lake, spec_of("s", "INVERTED", custom_stop_words=["red", "pie"]))
    [before] = described(location).segments
    lance.write_dataset(texts(20), location, mode="append")

    bring_up_to_date(lake, spec_of("s", "INVERTED", custom_stop_words=("pie", "red")))

    index = described(location)
    assert (len(index.segments), index.num_rows_indexed) == (2, 40)
    assert before.uuid in [segment.uuid for segment in index.segments]


@pytest.mark.parametrize("bring_up_to_date", [extend, maintain])
@pytest.mark.parametrize("other", [{"with_position": True}, {"custom_stop_words": ["red"]}])
def test_texts_are_indexed_anew_with_other_options(
    lake: NamespaceSpec, location: str, bring_up_to_date: Bring, other: dict[str, Any]
) -> None:
    lance.write_dataset(texts(20), location)
    build(lake, spec_of("s", "INVERTED", language="German"))
    lance.write_dataset(texts(20), location, mode="append")

    bring_up_to_date(lake, spec_of("s", "INVERTED", **other))

    index, dataset = described(location), lance.dataset(location)
    assert (index.num_rows_indexed, index.details["language"]) == (40, "German")
    assert index.details["with_position"] == other.get("with_position", False)
    found = dataset.to_table(["id"], full_text_query=MatchQuery("red", "s")).num_rows
    assert found == (0 if "custom_stop_words" in other else 40)


@pytest.mark.parametrize("bring_up_to_date", [extend, maintain])
def test_a_vector_index_that_is_trained_anew_keeps_its_metric(
    lake: NamespaceSpec, location: str, bring_up_to_date: Bring
) -> None:
    lance.write_dataset(vectors(20), location)
    build(lake, spec_of("v", "IVF_FLAT", metric="cosine"))
    lance.write_dataset(vectors(400), location, mode="append")

    bring_up_to_date(lake, spec_of("v", "IVF_FLAT"))

    index = described(location)
    assert (index.details["metric_type"].lower(), len(index.segments)) == ("cosine", 2)
    assert index.num_rows_indexed == 420


@pytest.mark.parametrize("bring_up_to_date", [extend, maintain])
@pytest.mark.parametrize(
    ("rows", "spec"),
    [
        (vectors(20), spec_of("v", "IVF_FLAT", metric="cosine")),
        (vectors(40), spec_of("v", "IVF_PQ", num_partitions=1, num_bits=4, num_sub_vectors=2)),
        (vectors(20), spec_of("v", "IVF_HNSW_FLAT", m=7, ef_construction=33)),
        (texts(20), spec_of("s", "INVERTED", with_position=True)),
    ],
)
def test_an_index_whose_files_are_lost_is_built_anew_with_its_options(
    lake: NamespaceSpec, location: str, bring_up_to_date: Bring, rows: pa.Table, spec: IndexSpec
) -> None:
    lance.write_dataset(rows, location)
    build(lake, spec)
    before = described(location)
    shutil.rmtree(Path(location, "_indices"))

    bring_up_to_date(lake, spec_of(spec.column, spec.index_type))

    after = described(location)
    assert after.segments[0].uuid != before.segments[0].uuid
    for name in ("metric_type", "compression", "hnsw", "with_position"):
        assert after.details.get(name) == before.details.get(name)


def test_an_index_that_is_replaced_has_the_given_options_alone(lake: NamespaceSpec, location: str) -> None:
    lance.write_dataset(vectors(20), location)
    build(lake, spec_of("v", "IVF_FLAT", metric="cosine"))
    build(lake, spec_of("v", "IVF_FLAT"), if_exists="replace")
    assert described(location).details["metric_type"].lower() == "l2"


PQ = spec_of("v", "IVF_PQ", num_partitions=1, num_bits=4, num_sub_vectors=2)


@pytest.mark.parametrize(
    ("rows", "spec", "read"),
    [(texts(20), spec_of("s", "INVERTED"), text_options_before), (vectors(40), PQ, trained_before)],
)
def test_the_options_of_an_index_are_read_with_current_credentials(
    lake: NamespaceSpec, location: str, rows: pa.Table, spec: IndexSpec, read: Callable[..., Any]
) -> None:
    dataset, renewed = lance.write_dataset(rows, location), []
    build(lake, spec)
    vended: Any = VendedOptions(lambda: renewed.append(1) or lake.connect(), ("t",), {}, {EXPIRES_AT: "1"})  # type: ignore[func-returns-value]

    assert read(dataset.checkout_version(2), vended, spec, described(location)) is not None
    assert renewed
