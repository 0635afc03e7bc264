"""One write as a script, for a driver that runs elsewhere.

Only its owner may read the script: the namespace's properties may hold secrets. Executors don't get it, as
they would get an additional file.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_lancens.spark.options import WriteOptions, WriteRequest
from airflow_provider_lancens.spark.results import WriteResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec

_log = logging.getLogger(__name__)

_NOT_IMPORTABLE = ("__main__", "<run_path>", "unusual_prefix_")
"""Names of modules that another process can't import: a script's, and a DAG file's in Airflow."""

_SCRIPT = """\
from airflow_provider_lancens.spark.submit.job_script import main

JOB = {job!r}

main(JOB)
"""
"""The serialized job has a separate line, which no traceback shows."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to write, where, and the function that computes it."""

    impl: str
    """The namespace's implementation, see `NamespaceSpec.impl`."""
    properties: Mapping[str, str] = field(repr=False)
    table: str
    source: str
    """``package.module:function``; called as ``function(spark, **inputs, **kwargs)``."""
    inputs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """By argument: a table and a version, and for changes the version that they follow."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    request: WriteRequest = field(default_factory=WriteRequest)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a job as `save` serialized it."""
        fields = json.loads(text)
        request = fields.pop("request")
        options = WriteOptions(**request.pop("options"))
        return cls(**fields, request=WriteRequest(**request, options=options))

    def save(self, script: Path) -> None:
        """Write a script that runs it into a new file, which only its owner can read.

        Raises:
            TypeError: an argument of `source` is nothing that JSON can hold.
        """
        text = _SCRIPT.format(job=json.dumps(asdict(self)))
        with os.fdopen(os.open(script, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(text)

    def run(self, spark: SparkSession) -> WriteResult:
        """Read the inputs at their versions, call the source, write what it returns.

        Raises:
            LanceNamespaceError: see `write_table`.
        """
        from airflow_provider_lancens.spark.keys import look_up
        from airflow_provider_lancens.spark.table.resolved_table import NamespaceSpec, resolved_table
        from airflow_provider_lancens.spark.write.pipeline import write_rows
        from airflow_provider_lancens.spark.write.row_sources import FrameRows

        namespace = NamespaceSpec(self.impl, self.properties)
        frames = {name: _frame(spark, namespace, *one) for name, one in self.inputs.items()}
        frame = imported(self.source)(spark, **frames, **self.kwargs)
        with resolved_table(namespace, self.table) as target:
            return write_rows(FrameRows(frame), look_up(target, self.request))


def _frame(
    spark: SparkSession, namespace: NamespaceSpec, table: str, version: int, *after: int | None
) -> DataFrame:
    from airflow_provider_lancens.spark.changes.read_changes import read_changes
    from airflow_provider_lancens.spark.read.table_reader import read_table

    if not after:
        return read_table(spark, namespace, table, version=version)
    return read_changes(spark, namespace, table, after_version=after[0], version=version)


def name_of(source: Callable[..., Any]) -> str:
    """Return the name by which another process imports a function: ``package.module:function``.

    Raises:
        ValueError: it has none.
    """
    module, name = getattr(source, "__module__", None), getattr(source, "__qualname__", "<unnamed>")
    if not module or module.startswith(_NOT_IMPORTABLE) or "<" in name:
        raise ValueError(
            f"source={name}: a driver in another process cannot import it from {module}; it must be "
            "a function of a module that is installed there too, not a lambda or a function of a "
            "DAG file"
        )
    return f"{module}:{name}"


def imported(name: str) -> Callable[..., Any]:
    """Import the function of that name."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


def main(serialized: str) -> None:
    """Run the serialized job, in the session that spark-submit created."""
    from airflow_provider_lancens.spark.session.local_jvm import quiet_py4j
    from airflow_provider_lancens.spark.session.spark_session import spark_session

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    quiet_py4j()
    job = Job.parse(serialized)
    with spark_session(job.table) as spark:
        result = job.run(spark)
    if not result.skipped:  # which has been logged
        _log.info("%s", result)
