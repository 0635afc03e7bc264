"""The stream reader for PySpark 4.2 and newer, which can limit a micro-batch and use `availableNow`."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from airflow_provider_lancens.spark.datasource.stream_source import LanceStreamReader
from airflow_provider_lancens.spark.streaming.appended_stream import StreamOffset


class LimitedStreamReader(LanceStreamReader, SupportsTriggerAvailableNow):
    """Stream reader that limits the rows of a micro-batch."""

    def initialOffset(self) -> dict[str, Any]:
        """Return where a query without a checkpoint starts: perhaps at a version that was made just now."""
        start = super().initialOffset()
        if self._last is not None:
            self._last = max(self._last, StreamOffset.parse(start).version)
        return start

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the micro-batch that starts here."""
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return self._advanced(StreamOffset.parse(start), max_rows).as_dict()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the option asks for."""
        return ReadAllAvailable() if self.config.max_rows is None else ReadMaxRows(self.config.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the last version that the query reads."""
        self._last = self._open().stream.target.latest_version() or 0
