"""Which indices there are, and what each takes. Plain data: imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from airflow_provider_lancens.spark.maintenance.options import Result, check_positive

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
