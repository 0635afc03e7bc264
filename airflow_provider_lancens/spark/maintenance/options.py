"""What maintenance is asked for, and what it answers. Plain data: imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from typing import Any, Literal, get_args

DEFAULT_AGE = timedelta(days=14)
"""Lance's own."""

IfIndexExists = Literal["skip", "replace", "fail"]
IF_INDEX_EXISTS: tuple[str, ...] = get_args(IfIndexExists)

SCALAR_TYPES = ("BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER")
TEXT_TYPE = "INVERTED"
VECTOR_TYPES = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
INDEX_TYPES = (*SCALAR_TYPES, TEXT_TYPE, *VECTOR_TYPES)
METRICS = ("l2", "cosine", "dot")
QUANTIZER_BITS = (8, 4)

DEFAULT_SEGMENTS = 8

_TEXT_OPTIONS = (
    *("with_position", "base_tokenizer", "language", "max_token_length", "lower_case"),
    *("stem", "remove_stop_words", "custom_stop_words", "ascii_folding"),
)
_VECTOR_OPTIONS = ("metric", "num_partitions", "max_iterations")
_QUANTIZER_OPTIONS = ("num_sub_vectors", "num_bits")
_GRAPH_OPTIONS = ("m", "ef_construction")


class Result:
    """What an XCom can hold of a dataclass."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which fragments a compaction rewrites, and into what.

    Raises:
        ValueError: an option is out of its range; the message names it.
    """

    target_rows_per_fragment: int | None = None
    """Rows of a fragment afterwards; neighbors with fewer are brought together. None is Lance's 1,048,576."""
    max_bytes_per_file: int | None = None
    """Bytes after which the next file is begun; None is Lance's default."""
    materialize_deletions_threshold: float = 0.1
    """Share of deleted rows, 0 to 1, above which a fragment is rewritten without them."""
    max_source_fragments: int | None = None
    """Most fragments that one compaction takes, oldest first; None is no limit."""
    max_source_bytes: int | None = None
    """Most bytes that one compaction takes, oldest first; None is no limit."""
    batch_size: int | None = None
    """Rows that a task holds at once; fewer for very wide rows. None is Lance's default."""
    num_threads: int | None = None
    """Threads of a task; None is as many as its machine has cores."""

    def __post_init__(self) -> None:
        for name in (option.name for option in fields(self)):
            value = getattr(self, name)
            if name == "materialize_deletions_threshold":
                _check_share(name, value)
            elif value is not None:
                check_positive(name, value)

    def as_lance(self) -> dict[str, Any]:
        """As `lance.optimize.Compaction` takes them."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class CompactionResult(Result):
    """What a compaction did to a table."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The version that it made; the newest one where it made none."""
    previous_version: int
    """The version whose fragments it brought together."""
    fragments_removed: int
    fragments_added: int
    files_removed: int
    """No longer part of the newest version; clean-up deletes them once no version needs them."""
    files_added: int
    tasks: int
    """Spark tasks that it took."""
    seconds: float
    """Wall-clock time of the call."""
    committed: bool
    """Whether there was anything to do."""


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index that is wanted.

    Raises:
        ValueError: there is no such type, or it takes no such option; the message names what is allowed.
    """

    column: str
    index_type: str
    """One of `INDEX_TYPES`, in any case."""
    name: str = ""
    """Empty becomes ``<column>_idx``."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.column:
            raise ValueError(f"column: expected a column's name, got {self.column!r}")
        object.__setattr__(self, "index_type", self.index_type.upper())
        object.__setattr__(self, "name", self.name or f"{self.column}_idx")
        if self.index_type not in INDEX_TYPES:
            raise ValueError(f"index_type={self.index_type!r}; allowed: {', '.join(INDEX_TYPES)}")
        self._check_options()

    @property
    def is_vector(self) -> bool:
        """Whether it finds nearest neighbors."""
        return self.index_type in VECTOR_TYPES

    @property
    def is_quantized(self) -> bool:
        """Whether it holds vectors by product quantization."""
        return self.index_type.endswith("PQ")

    @property
    def allowed_options(self) -> tuple[str, ...]:
        """What `options` may hold."""
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
                raise ValueError(f"options[{name!r}]: {self.index_type} doesn't take it; allowed: {choices}")
            if self.is_vector and name != "metric":
                check_positive(f"options[{name!r}]", value)
        for name, allowed in (("metric", METRICS), ("num_bits", QUANTIZER_BITS)):
            if self.options.get(name, allowed[0]) not in allowed:
                choices = ", ".join(map(str, allowed))
                raise ValueError(f"options[{name!r}]={self.options[name]!r}; allowed: {choices}")


@dataclass(frozen=True, slots=True)
class IndexResult(Result):
    """An index of a table."""

    table: str
    """Identifier, such as ``db$table``."""
    index: str
    """Its name."""
    column: str
    index_type: str
    version: int
    """The version that it made; the newest one where the index was there already."""
    previous_version: int
    """The version whose rows are in it; where the index was there already, the newest one."""
    rows: int
    """Rows that it covers; later ones are searched beside it."""
    segments: int
    """Parts that a query looks into, one after the other."""
    bytes: int
    seconds: float
    """Wall-clock time of the call."""
    created: bool
    """Whether this call built it."""


@dataclass(frozen=True, slots=True)
class CleanUpResult(Result):
    """What a clean-up removed from a table, or would."""

    table: str
    """Identifier, such as ``db$table``."""
    version: int
    """The newest version, which stays."""
    versions: int
    """How many versions went."""
    files: int
    """Data, deletion and index files that went with them."""
    bytes: int
    """What all of it took on the storage."""
    tagged: int
    """Older versions that a tag keeps."""
    seconds: float
    """Wall-clock time of the call."""
    dry_run: bool
    """Whether it only looked."""


def check_positive(name: str, value: object) -> None:
    """Return where it is a count.

    Raises:
        ValueError: it isn't; the message names it.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")


def check_age(name: str, value: object) -> None:
    """Return where it is a span of time.

    Raises:
        ValueError: it isn't, or goes backward; the message names it.
    """
    if not isinstance(value, timedelta) or value < timedelta(0):
        raise ValueError(f"{name}: expected a timedelta of at least 0, got {value!r}")


def _check_share(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{name}: expected a number from 0 to 1, got {value!r}")
