"""Options and plan of maintenance. Plain data: loads quickly, since DAGs load it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from airflow_provider_lancens.spark.options import check_positive, not_a_choice

DEFAULT_AGE = timedelta(days=14)
"""Lance's default."""
DEFAULT_ORPHAN_AGE = timedelta(days=7)
SHORTEST_ORPHAN_AGE = timedelta(minutes=10)
"""`write_leases.SILENCE`, which would load more than DAGs may."""

IfIndexExists = Literal["skip", "extend", "replace", "fail"]
IF_INDEX_EXISTS: tuple[str, ...] = get_args(IfIndexExists)

SCALAR_TYPES = ("BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER")
TEXT_TYPE = "INVERTED"
VECTOR_TYPES = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
INDEX_TYPES = (*SCALAR_TYPES, TEXT_TYPE, *VECTOR_TYPES)
METRICS = ("l2", "cosine", "dot")
QUANTIZER_BITS = (8, 4)

DEFAULT_SEGMENTS = 8

DEFAULT_MIN_SMALL_FRAGMENTS = 10
"""Starting Spark costs more than reading a few small fragments."""
DEFAULT_MAX_DELETED_SHARE = 0.1
"""Lance rewrites a fragment from a tenth of deleted rows."""
DEFAULT_MAX_UNINDEXED_SHARE = 0.1
"""A query searches a tenth of the rows quickly without an index."""
DEFAULT_MIN_REMOVABLE_VERSIONS = 20
DEFAULT_MAX_REMOVAL_DELAY = timedelta(days=7)

_TEXT_OPTIONS = (
    "with_position",
    "base_tokenizer",
    "language",
    "max_token_length",
    "lower_case",
    "stem",
    "remove_stop_words",
    "custom_stop_words",
    "ascii_folding",
)
_VECTOR_OPTIONS = ("metric", "num_partitions", "max_iterations")
_QUANTIZER_OPTIONS = ("num_sub_vectors", "num_bits")
_GRAPH_OPTIONS = ("m", "ef_construction")


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which fragments a compaction rewrites, and how.

    Raises:
        ValueError: an option is out of its range; the message names it.
    """

    target_rows_per_fragment: int | None = None
    """Rows of a rewritten fragment; neighbors with fewer are merged. None is Lance's 1,048,576."""
    max_bytes_per_file: int | None = None
    """Bytes after which the next file is started; None is Lance's default."""
    materialize_deletions_threshold: float = 0.1
    """Share of deleted rows, 0 to 1, above which a fragment is rewritten without them."""
    max_source_fragments: int | None = None
    """Maximum number of fragments that one compaction rewrites, oldest first; None means no limit."""
    max_source_bytes: int | None = None
    """Maximum number of bytes that one compaction rewrites, oldest first; None means no limit."""
    batch_size: int | None = None
    """Rows that a task holds in memory at once; use fewer for very wide rows. None is Lance's default."""
    num_threads: int | None = None
    """Threads of a task; None is as many as its machine has cores."""

    def __post_init__(self) -> None:
        for name in (option.name for option in fields(self)):
            value = getattr(self, name)
            if name == "materialize_deletions_threshold":
                check_share(name, value)
            elif value is not None:
                check_positive(name, value)

    def as_lance(self) -> dict[str, Any]:
        """Return the options for `lance.optimize.Compaction`."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """Specification of an index.

    Raises:
        TypeError, ValueError: there is no such type, or it takes no such option; the message names what is
            allowed.
    """

    column: str
    index_type: str
    """One of `INDEX_TYPES`, in any case."""
    name: str = ""
    """Defaults to ``<column>_idx`` if empty."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise ValueError(f"column: expected a column's name, got {self.column!r}")
        if not isinstance(self.name, str):
            raise TypeError(f"name: expected text, got {self.name!r}")
        if not isinstance(self.options, Mapping):
            raise TypeError(f"options: expected a mapping, got {self.options!r}")
        kind = self.index_type.upper() if isinstance(self.index_type, str) else self.index_type
        if kind not in INDEX_TYPES:
            raise ValueError(not_a_choice("index_type", kind, INDEX_TYPES))
        object.__setattr__(self, "index_type", kind)
        object.__setattr__(self, "name", self.name or f"{self.column}_idx")
        self._check_options()

    @property
    def is_vector(self) -> bool:
        """Whether it finds nearest neighbors."""
        return self.index_type in VECTOR_TYPES

    @property
    def is_quantized(self) -> bool:
        """Whether it uses product quantization."""
        return self.index_type.endswith("PQ")

    @property
    def allowed_options(self) -> tuple[str, ...]:
        """The allowed keys of `options`."""
        if self.index_type == TEXT_TYPE:
            return _TEXT_OPTIONS
        if not self.is_vector:
            return ()
        quantizer = _QUANTIZER_OPTIONS if self.is_quantized else ()
        return (*_VECTOR_OPTIONS, *quantizer, *(_GRAPH_OPTIONS if "HNSW" in self.index_type else ()))

    def _check_options(self) -> None:
        allowed: Sequence[Any]
        for name, value in self.options.items():
            if name not in self.allowed_options:
                choices = ", ".join(self.allowed_options) or "none"
                raise ValueError(f"options[{name!r}]: not an option of {self.index_type}; expected {choices}")
            if self.is_vector and name != "metric":
                check_positive(f"options[{name!r}]", value)
        for name, allowed in (("metric", METRICS), ("num_bits", QUANTIZER_BITS)):
            if self.options.get(name, allowed[0]) not in allowed:
                choices = ", ".join(map(str, allowed))
                raise ValueError(f"options[{name!r}]: expected one of {choices}, got {self.options[name]!r}")


def check_age(name: str, value: object) -> None:
    """Check that a value is a non-negative time span.

    Raises:
        ValueError: it isn't, or goes backward; the message names it.
    """
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise ValueError(f"{name}: expected a timedelta of at least 0, got {value!r}")


def time_before(now: datetime, age: timedelta) -> datetime:
    """Return the time at which what has a certain age now began; the earliest time for an age beyond it."""
    return now - min(age, now - datetime.min.replace(tzinfo=UTC))


def check_share(name: str, value: object) -> None:
    """Check that a value is a share, a number from 0 to 1.

    Raises:
        ValueError: it isn't; the message names it.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{name}: expected a number from 0 to 1, got {value!r}")


_THRESHOLD_CHECKS: Mapping[str, Callable[[str, object], None]] = {
    "min_small_fragments": check_positive,
    "max_deleted_share": check_share,
    "max_unindexed_share": check_share,
    "min_removable_versions": check_positive,
    "max_removal_delay": check_age,
}


def check_thresholds(given: Mapping[str, Any]) -> None:
    """Check thresholds by name; None means no threshold.

    Raises:
        ValueError: one is out of its range; the message names it.
    """
    for name, value in given.items():
        if value is not None:
            _THRESHOLD_CHECKS[name](name, value)


def check_retention(
    older_than: object, keep_versions: object, *, orphans_older_than: object = None, **ages: object
) -> None:
    """Check the retention arguments of a clean-up; None for one of the further ages means no limit.

    Raises:
        ValueError: a value is invalid; the message names it.
    """
    check_age("older_than", older_than)
    check_positive("keep_versions", keep_versions)
    for name, age in {**ages, "orphans_older_than": orphans_older_than}.items():
        if age is not None:
            check_age(name, age)
    # Checked here, too: otherwise only runs that clean up would fail, after their other steps.
    if isinstance(orphans_older_than, timedelta) and orphans_older_than < SHORTEST_ORPHAN_AGE:
        raise ValueError(
            f"orphans_older_than: expected at least {SHORTEST_ORPHAN_AGE}, got {orphans_older_than}"
        )


def check_index_names(indices: Iterable[IndexSpec]) -> None:
    """Check that no two indices of a table have the same name.

    Raises:
        ValueError: two have; the message says which.
    """
    names = [index.name for index in indices]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"indices: {name!r} is the name of more than one; set their name")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When maintenance is due. None sets no threshold; a step without any is done if there is work for it.

    Raises:
        ValueError: a threshold is out of its range; the message names it.
    """

    min_small_fragments: int | None = None
    """Compact when it would merge at least as many fragments that are below the target rows."""
    max_deleted_share: float | None = None
    """Compact when a greater share of the table's rows is marked as deleted, 0 to 1."""
    max_unindexed_share: float | None = None
    """Index when a greater share of the rows isn't in the index, 0 to 1; a missing index is always built."""
    min_removable_versions: int | None = None
    """Clean up when at least as many versions can be removed."""
    max_removal_delay: timedelta | None = None
    """Clean up when a version could have been removed for that long, also if there are few."""

    def __post_init__(self) -> None:
        check_thresholds({item.name: getattr(self, item.name) for item in fields(self)})

    @property
    def limit_compaction(self) -> bool:
        """Whether there is a threshold for compaction."""
        return self.min_small_fragments is not None or self.max_deleted_share is not None

    @property
    def limit_clean_up(self) -> bool:
        """Whether there is a threshold for the clean-up of versions."""
        return self.min_removable_versions is not None or self.max_removal_delay is not None


DEFAULT_THRESHOLDS = Thresholds(
    min_small_fragments=DEFAULT_MIN_SMALL_FRAGMENTS,
    max_deleted_share=DEFAULT_MAX_DELETED_SHARE,
    max_unindexed_share=DEFAULT_MAX_UNINDEXED_SHARE,
    min_removable_versions=DEFAULT_MIN_REMOVABLE_VERSIONS,
    max_removal_delay=DEFAULT_MAX_REMOVAL_DELAY,
)
"""The thresholds of a maintenance, by default."""


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The steps of a table's maintenance, and when they pay.

    Raises:
        ValueError: a value is invalid; the message names it.
    """

    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    """Which fragments to rewrite, and how."""
    indices: tuple[IndexSpec, ...] = ()
    """The indices to build and extend; others are left alone."""
    segments: int = DEFAULT_SEGMENTS
    """Maximum number of segments that an index is built with."""
    older_than: timedelta = DEFAULT_AGE
    """Minimum age of versions to remove."""
    keep_versions: int = 1
    """Number of newest versions to keep regardless of age."""
    keys_older_than: timedelta | None = None
    """Age at which an idempotency key expires, see `clean_up_versions`; None keeps all."""
    orphans_older_than: timedelta | None = None
    """Minimum age of files of failed writes to remove, see `remove_orphans`; None leaves them. Done where
    a clean-up is due, since it lists all files of the table."""
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    """When each step is due."""

    def __post_init__(self) -> None:
        check_positive("segments", self.segments)
        check_retention(
            self.older_than,
            self.keep_versions,
            keys_older_than=self.keys_older_than,
            orphans_older_than=self.orphans_older_than,
        )
        check_index_names(self.indices)
