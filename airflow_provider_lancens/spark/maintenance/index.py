"""Indices: each executor task builds a segment over some fragments, the driver commits them as one index.

An index is extended only if its segments have no values that were rewritten since; otherwise it is rebuilt.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as kinds

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.formatting import format_examples
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.lance_errors import LANCE_ERRORS
from airflow_provider_lancens.namespace.storage.vended_options import snapshot
from airflow_provider_lancens.spark.maintenance.indexed_column import IndexedColumn
from airflow_provider_lancens.spark.maintenance.maintenance_options import (
    DEFAULT_MAX_DELETED_SHARE,
    DEFAULT_SEGMENTS,
    METRICS,
    QUANTIZER_BITS,
    TEXT_TYPE,
    IfIndexExists,
    IndexSpec,
    Thresholds,
)
from airflow_provider_lancens.spark.maintenance.parallel_tasks import Spark, run_in_parallel
from airflow_provider_lancens.spark.maintenance.table_state import (
    Coverage,
    MaintainedTable,
    TableState,
    described_index,
    has_old_values,
    maintained,
    may_have_old_values,
    same_type,
    state_of,
    stored_segments,
)
from airflow_provider_lancens.spark.observed import observed
from airflow_provider_lancens.spark.results import IndexResult, elapsed
from airflow_provider_lancens.spark.storage_failures import storage_failures
from airflow_provider_lancens.spark.table.dataset_ref import DatasetRef
from airflow_provider_lancens.spark.table.index_coverage import deleted_share, lacks_column, misses_rows
from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.dataset import Index
    from lance.file import LanceFileReader
    from lance.fragment import LanceFragment
    from lance_namespace import LanceNamespace

_CREATE_INDEX = "create_index"
_KEEPING = ("skip", "fail")
"""Values of `if_exists` with which no index is changed."""
_log = logging.getLogger(__name__)


def check_column(table: str, spec: IndexSpec, schema: pa.Schema) -> None:
    """Refuse an index that Lance can't build.

    Args:
        table: the table's identifier, for the message.
        spec: the index.
        schema: the table's columns.

    Raises:
        TableColumnNotFoundError: (12) there is no such column.
        InvalidInputError: (13) the column's type can't have this index, or a vector can't be divided so.
    """
    if spec.column not in schema.names:
        raise spec_errors.TableColumnNotFoundError(
            f"table {table}: column={spec.column!r} does not exist; columns: {schema.names}"
        )
    arrow = schema.field(spec.column).type
    fits, wanted = _FITTING.get(spec.index_type, _VECTOR if spec.is_vector else _ORDERED)
    if not fits(arrow):
        raise spec_errors.InvalidInputError(
            f"table {table}: column {spec.column} is {arrow}; index_type {spec.index_type!r} "
            f"requires {wanted}"
        )
    if spec.is_quantized:
        _check_divisible(table, spec, arrow.list_size)


def sub_vectors(spec: IndexSpec, dimension: int) -> int | None:
    """Return the number of sub-vectors of a vector; None if it must be given."""
    if given := spec.options.get("num_sub_vectors"):
        return int(given)
    # The same choice as in Lance's own training.
    return next((parts for size in (16, 8) if _divides(spec, parts := dimension // size, dimension)), None)


def _check_divisible(table: str, spec: IndexSpec, dimension: int) -> None:
    parts = sub_vectors(spec, dimension)
    if parts is None or not _divides(spec, parts, dimension):
        divisors = [n for n in range(1, dimension + 1) if _divides(spec, n, dimension)]
        raise spec_errors.InvalidInputError(
            f"table {table}: column {spec.column} has {dimension} dimensions; "
            f"options['num_sub_vectors'] is {parts}, but must divide them; expected {divisors}"
        )


def _divides(spec: IndexSpec, parts: int, dimension: int) -> bool:
    # With four bits, two codes share a byte, so their number must be even.
    step = 2 if spec.options.get("num_bits") == 4 else 1
    return parts > 0 and dimension % parts == 0 and parts % step == 0


def _is_ordered(arrow: pa.DataType) -> bool:
    plain = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_temporal, kinds.is_decimal)
    return any(is_kind(arrow) for is_kind in (*plain, _is_text, _is_bytes))


def _is_hashed(arrow: pa.DataType) -> bool:
    unfit = (kinds.is_decimal, kinds.is_float16, kinds.is_boolean, kinds.is_duration)
    others = (*unfit, kinds.is_fixed_size_binary)
    return _is_ordered(arrow) and not any(is_kind(arrow) for is_kind in others)


def _is_text(arrow: pa.DataType) -> bool:
    return bool(kinds.is_string(arrow) or kinds.is_large_string(arrow))


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(kinds.is_binary(arrow) or kinds.is_large_binary(arrow) or kinds.is_fixed_size_binary(arrow))


def _is_list(arrow: pa.DataType) -> bool:
    return bool(kinds.is_list(arrow) or kinds.is_large_list(arrow))


def _is_text_or_list_of_it(arrow: pa.DataType) -> bool:
    return _is_text(arrow.value_type if _is_list(arrow) else arrow)


def _is_vector(arrow: pa.DataType) -> bool:
    return bool(kinds.is_fixed_size_list(arrow) and kinds.is_floating(arrow.value_type))


_Rule = tuple[Callable[[Any], bool], str]
_ORDERED: _Rule = (_is_ordered, "numbers, booleans, text, bytes, dates and times")
_VECTOR: _Rule = (
    _is_vector,
    "vectors, which TableLayout(vector_columns={'embedding': 768}) makes from an array",
)
_FITTING: dict[str, _Rule] = {
    "BLOOMFILTER": (_is_hashed, "whole numbers, floats, doubles, text, bytes, dates, times or timestamps"),
    "LABEL_LIST": (_is_list, "lists"),
    "NGRAM": (_is_text, "text"),
    TEXT_TYPE: (_is_text_or_list_of_it, "text and lists of text"),
}


_SAMPLE_RATE = 256
"""Rows sampled per centroid, if there are as many; Lance's default."""
_LEAST_RATE = 2
"""Lance's minimum."""
_ITERATIONS = 50
_TENSOR_HEADER = 64
"""More bytes than precede the values of a codebook."""


def train(table: str, dataset: LanceDataset, spec: IndexSpec) -> dict[str, Any]:
    """Train the centroids of the partitions, and the quantizer's codebook if the index has one.

    With the same centroids in all segments, a query searches the same partitions of each.

    Args:
        table: the table's identifier, for the message.
        dataset: the vectors.
        spec: a vector index.

    Returns:
        Arguments for `LanceDataset.create_index_uncommitted`.

    Raises:
        InvalidInputError: (13) there are too few rows for it.
    """
    from lance.indices import IndicesBuilder

    options = dict(spec.options)
    metric = options.pop("metric", METRICS[0])
    iterations = options.pop("max_iterations", _ITERATIONS)
    rows = dataset.count_rows()
    partitions = options.pop("num_partitions", None) or _default_partitions(dataset)
    rate = _sample_rate(table, spec, rows, partitions, "num_partitions")
    builder = IndicesBuilder(dataset, spec.column)
    try:
        ivf = builder.train_ivf(partitions, distance_type=metric, sample_rate=rate, max_iters=iterations)
        shared = {"metric": metric, "num_partitions": partitions, "ivf_centroids": ivf.centroids, **options}
        if not spec.is_quantized:
            return shared
        bits = options.get("num_bits", QUANTIZER_BITS[0])
        parts = sub_vectors(spec, builder.dimension)
        rate = _sample_rate(table, spec, rows, 2**bits, "num_bits")
        pq = builder.train_pq(ivf, parts, sample_rate=rate, max_iters=iterations, num_bits=bits)
    except (RuntimeError, ValueError) as error:  # too few rows that have a vector, for instance
        raise spec_errors.InvalidInputError(
            f"table {table}: column {spec.column}: {spec.index_type} cannot be trained on it: {error}"
        ) from error
    return {**shared, "num_sub_vectors": parts, "num_bits": bits, "pq_codebook": pq.codebook}


def trained_before(
    dataset: LanceDataset, storage_options: Mapping[str, str] | None, spec: IndexSpec, present: Any
) -> dict[str, Any] | None:
    """Return what the segments of an existing vector index share, for further segments.

    Args:
        dataset: the vectors.
        storage_options: of their storage.
        spec: the index to build.
        present: the index, as Lance describes it.

    Returns:
        Arguments for `LanceDataset.create_index_uncommitted`; None if the index must be trained again: with
        other options, or since the table has grown to more than four times the rows.
    """
    partitions = dataset.get_ivf_model(spec.name).centroids
    found: dict[str, Any] = {"metric": metric_of(present), "num_partitions": len(partitions)}
    model: dict[str, Any] = {"ivf_centroids": partitions}
    if spec.is_quantized:
        quantizer = _read_quantizer(dataset, storage_options, spec, present)
        if quantizer is None:
            return None
        found |= {name: quantizer[name] for name in ("num_sub_vectors", "num_bits")}
        model["pq_codebook"] = quantizer["pq_codebook"]
    if any(found.get(name, value) != value for name, value in spec.options.items()):
        return None
    if "num_partitions" not in spec.options and _default_partitions(dataset) > 2 * len(partitions):
        return None
    options = {name: value for name, value in spec.options.items() if name != "max_iterations"}
    return {**options, **found, **model}


_OPTIONS_OF_OTHERS = ("min_ngram_length", "max_ngram_length", "prefix_only", "block_size")
"""Options of a full-text index that only other clients set."""
_ANALYZER = {
    "lance_tokenizer": (None, "text"),
    "document_granularity": (None, "row"),
    **dict.fromkeys(
        ("split_identifiers", "split_on_numerics", "preserve_original", "index_operators"), (None, False)
    ),
}
"""The values that these options have in each segment that this package builds."""


def text_options_before(
    dataset: LanceDataset, storage_options: Mapping[str, str] | None, spec: IndexSpec, present: Any
) -> dict[str, Any] | None:
    """Return the options of an existing full-text index, for further segments.

    Queries fail if segments differ in how they divide text into words, and find rows of some segments alone
    if these differ in their stop words.

    Args:
        dataset: the text.
        storage_options: of its storage.
        spec: the index to build.
        present: the index, as Lance describes it.

    Returns:
        Arguments for `LanceDataset.create_index_uncommitted`; None if the index must be built anew: with
        other options, or since another client has built it with options that no segment can be built with.
    """
    if not _is_plain_text(present):
        return None
    found = _text_options(dataset, storage_options, spec, present)
    if found is None or any(_unordered(found.get(name)) != _unordered(v) for name, v in spec.options.items()):
        return None
    return found


def _unordered(option: Any) -> Any:
    """Return an option so that it can be compared: stop words are the same in any order."""
    return frozenset(option) if isinstance(option, list | tuple | set) else option


def options_kept(
    dataset: LanceDataset, storage_options: Mapping[str, str] | None, spec: IndexSpec, present: Any
) -> IndexSpec:
    """Return an index to extend or to build anew, with options of the existing one where none are given.

    The number of partitions isn't kept, which depends on the number of rows. See `text_options_before` for
    the arguments.
    """
    before: dict[str, Any] = {}
    if spec.is_vector:
        before = _vector_options(present)
    elif same_type(present.index_type, spec.index_type) and _is_plain_text(present):
        before = {name: present.details[name] for name in spec.allowed_options if name in present.details}
        with contextlib.suppress(*LANCE_ERRORS):  # files of the index may be lost
            before = _text_options(dataset, storage_options, spec, present) or before
    before = {name: value for name, value in before.items() if name in spec.allowed_options}
    return replace(spec, options={**before, **spec.options})


def _vector_options(present: Any) -> dict[str, Any]:
    """Return the options of a vector index that its description has."""
    details, found = present.details, {}
    if "metric_type" in details and (metric := metric_of(present)) in METRICS:
        found["metric"] = metric
    quantizer, graph = details.get("compression") or {}, details.get("hnsw") or {}
    if quantizer.get("type") == "pq" and quantizer.get("num_bits") in QUANTIZER_BITS:
        found |= {name: quantizer[name] for name in ("num_bits", "num_sub_vectors") if quantizer.get(name)}
    others = {"m": graph.get("max_connections"), "ef_construction": graph.get("construction_ef")}
    return {**found, **{name: value for name, value in others.items() if value}}


def _is_plain_text(present: Any) -> bool:
    is_text = "base_tokenizer" in present.details
    return is_text and all(present.details.get(name) in plain for name, plain in _ANALYZER.items())


def _text_options(
    dataset: LanceDataset, storage_options: Mapping[str, str] | None, spec: IndexSpec, present: Any
) -> dict[str, Any] | None:
    """Return the options of the first segment from its file, which has the stop words; None for a clone."""
    file = _file_of_first_segment(dataset, storage_options, present, "metadata.lance")
    params = None if file is None else (file.metadata().schema.metadata or {}).get(b"params")
    if params is None:
        return None
    found = json.loads(params)
    return {name: found[name] for name in (*spec.allowed_options, *_OPTIONS_OF_OTHERS) if name in found}


def _file_of_first_segment(
    dataset: LanceDataset, storage_options: Mapping[str, str] | None, present: Any, name: str
) -> LanceFileReader | None:
    """Open a file of an index's first segment; None if it is in another dataset, as after a clone."""
    from lance.file import LanceFileReader

    segment = present.segments[0]
    if segment.base_id is not None:
        return None
    path = f"{dataset.uri}/_indices/{segment.uuid}/{name}"
    return LanceFileReader(path, storage_options=snapshot(storage_options or {}))


def metric_of(index: Any) -> str:
    """Return the metric of a vector index, as Lance describes it."""
    return str(index.details["metric_type"]).lower()


def _read_quantizer(
    dataset: LanceDataset, storage_options: Mapping[str, str] | None, spec: IndexSpec, present: Any
) -> dict[str, Any] | None:
    """Return the codebook of the first segment from its file; None if it can't be read."""
    import numpy as np
    import pyarrow as pa

    file = _file_of_first_segment(dataset, storage_options, present, "auxiliary.idx")
    if file is None:
        return None
    vectors = dataset.schema.field(spec.column).type
    metadata = json.loads(json.loads(file.metadata().schema.metadata[b"storage_metadata"])[0])
    tensor = bytes(file.read_global_buffer(metadata["codebook_position"]))
    values = np.frombuffer(tensor, dtype=np.uint8)
    size = 2 ** metadata["nbits"] * metadata["dimension"] * (vectors.value_type.bit_width // 8)
    # The buffer begins with the type and the shape, in a few bytes.
    if metadata["dimension"] != vectors.list_size or not size < len(values) < size + _TENSOR_HEADER:
        return None
    codebook = pa.Array.from_buffers(
        vectors.value_type, size * 8 // vectors.value_type.bit_width, [None, pa.py_buffer(tensor[-size:])]
    )
    return {
        "num_sub_vectors": metadata["num_sub_vectors"],
        "num_bits": metadata["nbits"],
        "pq_codebook": pa.FixedSizeListArray.from_arrays(codebook, vectors.list_size),
    }


def _default_partitions(dataset: LanceDataset) -> int:
    return max(1, round(math.sqrt(dataset.count_rows())))


def _sample_rate(table: str, spec: IndexSpec, rows: int, centroids: int, option: str) -> int:
    least = centroids * _LEAST_RATE
    if rows < least:
        raise spec_errors.InvalidInputError(
            f"table {table}: {spec.index_type} requires at least {least} rows, but there are "
            f"{rows}; index it later, choose a smaller options[{option!r}], or another index_type, "
            "such as IVF_FLAT"
        )
    return min(_SAMPLE_RATE, rows // centroids)


_MOST_SEGMENTS = 2
"""Small segments are merged once an index has this many times the segments that it was built with."""


@dataclass(frozen=True, slots=True)
class Extension:
    """New segments of an index."""

    fragments: Sequence[LanceFragment]
    """What they cover: fragments without a segment, and fragments of small segments, which they replace."""
    shared: Mapping[str, Any] = field(repr=False)
    """Arguments that they share with the other segments."""


def plan_extension(
    dataset: LanceDataset,
    storage_options: Mapping[str, str] | None,
    spec: IndexSpec,
    present: Any,
    segments: int,
) -> Extension | None:
    """Return how an index is extended to all rows.

    Args:
        dataset: the dataset.
        storage_options: of its storage.
        spec: the index to build.
        present: the index, as Lance describes it.
        segments: with how many segments it would be built.

    Returns:
        An extension, which covers nothing if the index covers all rows; None if the index must be built
        anew: its segments miss rows or have old values of the column, or it has other options, or it is a
        vector index that is trained on too few rows, or has many rows that are deleted.
    """
    if misses_rows(dataset, present.segments) or has_old_values(dataset, present):
        return None
    if deleted_share(dataset, present) > DEFAULT_MAX_DELETED_SHARE:
        return None
    covered = {fragment for segment in present.segments for fragment in segment.fragment_ids}
    everything = dataset.get_fragments()
    missing = {fragment.fragment_id for fragment in everything} - covered
    if not missing:
        return Extension([], {})
    uncovered = [fragment for fragment in everything if fragment.fragment_id in missing]
    if may_have_old_values(dataset, spec, present.segments, uncovered):
        return None
    shared = _shared_before(dataset, storage_options, spec, present)
    if shared is None:
        return None
    if len(present.segments) >= _MOST_SEGMENTS * segments:
        missing |= _of_small_segments(everything, present.segments, segments)
    return Extension([fragment for fragment in everything if fragment.fragment_id in missing], shared)


def _shared_before(
    dataset: LanceDataset, storage_options: Mapping[str, str] | None, spec: IndexSpec, present: Any
) -> Mapping[str, Any] | None:
    """Return the arguments that further segments share with the existing ones; None if they can't."""
    if spec.is_vector:
        return trained_before(dataset, storage_options, spec, present)
    if spec.index_type == TEXT_TYPE:
        return text_options_before(dataset, storage_options, spec, present)
    return spec.options


def _of_small_segments(
    everything: Sequence[LanceFragment], present: Sequence[Any], segments: int
) -> set[int]:
    """Return the fragments of all segments that have less than half of an equal share of the rows."""
    rows = {fragment.fragment_id: fragment.metadata.physical_rows for fragment in everything}
    half_a_share = sum(rows.values()) / segments / 2
    small = [
        segment.fragment_ids
        for segment in present
        if sum(rows.get(fragment, 0) for fragment in segment.fragment_ids) < half_a_share
    ]
    return {fragment for fragments in small for fragment in fragments}


@observed("create_index")
def build_index(
    spark: Spark,
    namespace: NamespaceSpec | LanceNamespace,
    table: TableId | str,
    spec: IndexSpec,
    *,
    if_exists: IfIndexExists = "skip",
    keeps_options: bool = False,
    segments: int = DEFAULT_SEGMENTS,
    thresholds: Thresholds | None = None,
) -> IndexResult:
    """Build an index over all rows of a table, in one commit.

    Rows that others append meanwhile aren't in it, but queries find them: Lance also searches rows that an
    index doesn't cover. A driver that dies leaves unreferenced files.

    `spark` is the session, or a function that starts one, called only if there is work; `keeps_options` says
    whether a replaced index keeps the options that aren't given, as an extended index does. See
    `Table.create_index` for the other arguments and errors.
    """
    started = time.monotonic()
    reason = ""
    with resolved_table(namespace, table) as target:
        if thresholds is not None and thresholds.max_unindexed_share is not None:
            state = state_of(target)
            coverage, decision = state.decide_index(spec, thresholds)
            if not decision.is_due:
                return not_indexed(state, coverage, decision.reason)
            reason = decision.reason
        with maintained(target) as opened:
            present = described_index(opened.dataset, spec.name)
            if present is not None and (keeps_options or if_exists == "extend"):
                spec = options_kept(opened.dataset, target.dataset.storage_options, spec, present)
            check_column(str(opened.target.id), spec, opened.dataset.schema)
            opened = _without_index_of_no_column(opened, spec, if_exists)
            extension = _what_to_build(opened, spec, if_exists, segments)
            if extension.fragments:
                _build(spark, opened, spec, segments, extension)
            result = _result(opened, spec, started, created=bool(extension.fragments), reason=reason)
    _log.info("%s", _sentence(result))
    return result


def drop_index(namespace: NamespaceSpec | LanceNamespace, table: TableId | str, name: str) -> bool:
    """Drop an index of a table; its files go with a clean-up of the versions that have it.

    Args:
        namespace: the namespace of the table, or a `NamespaceSpec` to connect from.
        table: its identifier, such as ``db$table``.
        name: the name of the index.

    Returns:
        False if there was none.

    Raises:
        TableNotFoundError: (4) the table isn't declared.
        TableVersionNotFoundError: (11) nothing was written to it yet.
        ConcurrentModificationError: (14) others committed meanwhile.
        ServiceUnavailableError: (17) the storage or the metastore failed.
    """
    with resolved_table(namespace, table) as target, maintained(target) as opened:
        if described_index(opened.dataset, name) is None:
            return False
        with opened.committing("drop_index"):
            opened.dataset.drop_index(name)
    _log.info("table %s: dropped index %r", opened.target.id, name)
    return True


def not_indexed(state: TableState, coverage: Coverage, reason: str) -> IndexResult:
    """Return the result where building or extending an index isn't due."""
    spec = coverage.spec
    return IndexResult(
        table=state.table,
        location=state.target.dataset.location,
        operation=_CREATE_INDEX,
        outcome="unchanged",
        index=spec.name,
        column=spec.column,
        index_type=spec.index_type,
        version=state.version,
        previous_version=state.version,
        rows=coverage.indexed,
        segments=coverage.segments,
        bytes=coverage.bytes,
        seconds=0.0,
        reason=reason,
    )


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """Build the index over some fragments, on an executor. Picklable."""

    dataset: DatasetRef
    version: int
    spec: IndexSpec
    shared: Mapping[str, Any] = field(repr=False)
    """Arguments that all segments share."""
    fragment_ids: Sequence[int]

    def __call__(self) -> Index:
        """Write the segment, which isn't committed yet."""
        with storage_failures(self.dataset.location, self.dataset.storage_options):
            return self.dataset.open(self.version).create_index_uncommitted(
                self.spec.column,
                self.spec.index_type,
                name=self.spec.name,
                replace=True,
                fragment_ids=list(self.fragment_ids),
                **self.shared,
            )


def _without_index_of_no_column(
    opened: MaintainedTable, spec: IndexSpec, if_exists: IfIndexExists
) -> MaintainedTable:
    """Drop the index of that name if its column no longer exists, since Lance doesn't replace it.

    Returns:
        The table at the version without it, on which all that follows is based.

    Raises:
        TableColumnNotFoundError: (12) the specified column was dropped meanwhile.
        InvalidInputError: (13) it was converted to a type that can't have this index.
        ConcurrentModificationError: (14) others replaced or dropped the index meanwhile.
    """
    present = described_index(opened.dataset, spec.name)
    if present is None or if_exists in _KEEPING or not lacks_column(opened.dataset, present):
        return opened
    with opened.committing("drop_index"):
        opened.dataset.drop_index(spec.name)
    _log.warning("table %s: dropped index %r, whose column no longer exists", opened.target.id, spec.name)
    check_column(str(opened.target.id), spec, opened.dataset.schema)
    return replace(opened, version=opened.dataset.version)


def _what_to_build(
    opened: MaintainedTable, spec: IndexSpec, if_exists: IfIndexExists, segments: int
) -> Extension:
    """Return which segments to build; of no fragments to leave the index as it is."""
    present = described_index(opened.dataset, spec.name)
    if present is not None:
        _check_may_exist(opened, spec, present, if_exists)
        if if_exists == "skip":
            return Extension([], {})
        if if_exists == "extend" and (extension := _extension(opened, spec, present, segments)):
            return extension
    return _whole_index(opened, spec)


def _extension(opened: MaintainedTable, spec: IndexSpec, present: Any, segments: int) -> Extension | None:
    """Return how an index is extended to all rows; None if it must be built anew."""
    if lost := stored_segments(opened.target).incomplete(opened.dataset, present):
        _log.warning(
            "table %s: index %r is built anew, since files of it are lost: %s",
            opened.target.id,
            spec.name,
            format_examples(lost),
        )
        return None
    storage_options = opened.target.dataset.storage_options
    return plan_extension(opened.dataset, storage_options, spec, present, segments)


def _whole_index(opened: MaintainedTable, spec: IndexSpec) -> Extension:
    table, dataset = str(opened.target.id), opened.dataset
    fragments = dataset.get_fragments()
    if not fragments:
        raise spec_errors.InvalidInputError(f"table {table}: version {opened.version} has no rows to index")
    return Extension(fragments, train(table, dataset, spec) if spec.is_vector else spec.options)


def _check_may_exist(
    opened: MaintainedTable, spec: IndexSpec, present: Any, if_exists: IfIndexExists
) -> None:
    if lacks_column(opened.dataset, present):
        raise spec_errors.TableIndexAlreadyExistsError(
            f"table {opened.target.id}: index {spec.name!r} is on a column that no longer exists, "
            f"so reads with a filter fail; if_exists={if_exists!r} does not replace it: pass "
            "if_exists='replace', or drop it by drop_index"
        )
    same_column = present.field_names == [spec.column]
    fits = same_type(present.index_type, spec.index_type) or if_exists == "replace"
    if same_column and fits and if_exists != "fail":
        return
    raise spec_errors.TableIndexAlreadyExistsError(
        f"table {opened.target.id}: index {spec.name!r} already exists as {present.index_type} on "
        f"{', '.join(present.field_names)}; if_exists={if_exists!r} does not replace it by "
        f"{spec.index_type} on {spec.column}: choose another name"
        + (", or if_exists='replace'" if same_column else "")
    )


def _build(
    spark: Spark, opened: MaintainedTable, spec: IndexSpec, segments: int, extension: Extension
) -> None:
    table, dataset = str(opened.target.id), opened.dataset
    shares = shares_of(extension.fragments, dataset.get_fragments(), segments)
    _log.info("table %s: building %s on %s in %d tasks", table, spec.index_type, spec.column, len(shares))
    reference, version = opened.target.dataset, opened.version
    column = IndexedColumn.of(opened.target, dataset, spec.column)
    built = run_in_parallel(
        spark, [SegmentTask(reference, version, spec, extension.shared, share) for share in shares]
    )
    with opened.committing(_CREATE_INDEX, column.check_kept):
        dataset.commit_existing_index_segments(spec.name, spec.column, [*built])


def shares_of(
    fragments: Sequence[LanceFragment], everything: Sequence[LanceFragment], most: int
) -> list[list[int]]:
    """Divide fragments into neighbors with about as many rows as a segment of the whole table would have.

    A compaction doesn't merge fragments of different segments, so neighbors belong in the same one.
    """
    total = sum(fragment.metadata.physical_rows for fragment in everything) or 1
    shares: dict[int, list[int]] = {}
    before = 0
    for fragment in fragments:
        rows = fragment.metadata.physical_rows
        shares.setdefault((2 * before + rows) * most // (2 * total), []).append(fragment.fragment_id)
        before += rows
    return list(shares.values())


def _result(
    opened: MaintainedTable, spec: IndexSpec, started: float, *, created: bool, reason: str
) -> IndexResult:
    index = described_index(opened.dataset, spec.name)
    return IndexResult(
        table=str(opened.target.id),
        location=opened.target.dataset.location,
        operation=_CREATE_INDEX,
        outcome="done" if created else "unchanged",
        index=index.name,
        column=spec.column,
        index_type=spec.index_type,
        version=opened.dataset.version,
        previous_version=opened.previous_version,
        rows=index.num_rows_indexed,
        segments=len(index.segments),
        bytes=index.total_size_bytes or 0,
        seconds=elapsed(started),
        reason=reason,
    )


def _sentence(result: IndexResult) -> str:
    what = f"table {result.table}: index {result.index!r}, {result.index_type} on {result.column}"
    if not result.is_done:
        return f"{what} is left as it is, still at version {result.version}"
    return f"{what}: committed version {result.version} over {result.rows:,} rows in {result.seconds:.1f} s"
