"""CSV and JSON: text files, read sequentially in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from airflow_provider_lancens import spec_errors
from airflow_provider_lancens.spark.write.files.formats import WHOLE, InspectedFile, ScanRequest

_BLOCK = 8 * 1024 * 1024
"""Bytes that are parsed together; a row must fit in."""


@dataclass(frozen=True, slots=True)
class Csv:
    """A file is one piece. An empty value is null; in quotes it is the empty string."""

    delimiter: str
    header: bool
    schema: pa.Schema | None

    def inspect(self, file: pa.NativeFile) -> InspectedFile:
        """See `formats.FileFormat.inspect`: types that weren't given are inferred from the first block."""
        found = self._open(file, self.schema, None).schema
        missing = [name for name in (self.schema or found).names if name not in found.names]
        if missing:
            raise ValueError(f"columns {', '.join(missing)} are missing")
        return InspectedFile(self.schema or found, [WHOLE])

    def read(
        self, file: pa.NativeFile, numbers: Sequence[int], wanted: ScanRequest
    ) -> Iterator[pa.RecordBatch]:
        """See `formats.FileFormat.read`."""
        for _ in numbers:
            yield from self._open(file, wanted.schema, wanted.columns)

    def _open(
        self, file: pa.NativeFile, schema: pa.Schema | None, columns: Sequence[str] | None
    ) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            file,
            pa.csv.ReadOptions(
                block_size=_BLOCK, column_names=None if self.header or schema is None else schema.names
            ),
            pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(
                column_types=schema,
                include_columns=columns,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


@dataclass(frozen=True, slots=True)
class Json:
    """A file is one piece. A field that a row lacks is null.

    Fields that aren't in the schema are refused, or ignored if the schema was given.
    """

    schema: pa.Schema | None

    def inspect(self, file: pa.NativeFile) -> InspectedFile:
        """See `formats.FileFormat.inspect`."""
        return InspectedFile(self.schema or self._open(file, None).schema, [WHOLE])

    def read(
        self, file: pa.NativeFile, numbers: Sequence[int], wanted: ScanRequest
    ) -> Iterator[pa.RecordBatch]:
        """See `formats.FileFormat.read`."""
        for _ in numbers:
            for batch in self._open(file, wanted.schema):
                yield batch.select(list(wanted.columns))

    def _open(self, file: pa.NativeFile, schema: pa.Schema | None) -> pa.RecordBatchReader:
        if not hasattr(pa.json, "open_json"):
            raise spec_errors.InvalidInputError(
                f"format: json requires a newer pyarrow than {pa.__version__}"
            )
        unexpected = "infer" if schema is None else "error" if self.schema is None else "ignore"
        return pa.json.open_json(
            file,
            pa.json.ReadOptions(block_size=_BLOCK),
            pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
        )
