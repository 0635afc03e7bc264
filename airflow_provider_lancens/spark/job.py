"""One write as words, for a driver that runs elsewhere.

They travel as a script, which only its owner may read: the namespace's properties may hold secrets. Executors
don't get it, as they would get a file beside it.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.spark.options import WriteOptions, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOT_IMPORTABLE = ("__main__", "<run_path>", "unusual_prefix_")
"""How the modules are called that another process can't import: a script's, and a DAG file's in Airflow."""

_SCRIPT = """\
from airflow_provider_lancens.spark.job import main

WORDS = {words!r}

main(WORDS)
"""
"""The words have a line of their own, which no traceback shows."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to write, where, and what makes it."""

    impl: str
    """The namespace's, as `target.NamespaceSpec` has it."""
    properties: Mapping[str, str] = field(repr=False)
    table: str
    source: str
    """``package.module:function``; called as ``function(spark, **inputs, **kwargs)``."""
    inputs: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Table and version by the name of `source`'s argument."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    write: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `writer.write_table`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `WriteOptions`."""

    def save(self, script: Path) -> None:
        """Write a script that runs it into a new file, which only its owner can read.

        Raises:
            TypeError: an argument of `source` is nothing that JSON can hold.
        """
        text = _SCRIPT.format(words=json.dumps(asdict(self)))
        with os.fdopen(os.open(script, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(text)

    def run(self, spark: SparkSession) -> WriteResult:
        """Read the inputs at their versions, call the source, write what it returns.

        Raises:
            LanceNamespaceError: as `writer.write_table` has it.
        """
        from airflow_provider_lancens.spark.reader import read_table
        from airflow_provider_lancens.spark.target import NamespaceSpec
        from airflow_provider_lancens.spark.writer import write_table

        namespace = NamespaceSpec(self.impl, self.properties)
        frames = {
            name: read_table(spark, namespace, table, version=version)
            for name, (table, version) in self.inputs.items()
        }
        frame = imported(self.source)(spark, **frames, **self.kwargs)
        options = WriteOptions(**self.options)
        return write_table(frame, namespace, self.table, options=options, **self.write)


def name_of(source: Callable[..., Any]) -> str:
    """The name by which another process imports a function: ``package.module:function``.

    Raises:
        ValueError: it has none.
    """
    module, name = getattr(source, "__module__", None), getattr(source, "__qualname__", "<unnamed>")
    if not module or module.startswith(_NOT_IMPORTABLE) or "<" in name:
        raise ValueError(
            f"source={name}: a driver in another process can't import it from {module}; "
            "it has to be a function of a module that the driver has too, no lambda and none of a DAG file"
        )
    return f"{module}:{name}"


def imported(name: str) -> Callable[..., Any]:
    """The function of that name."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


def main(words: str) -> None:
    """Run the job of these words, in the session that spark-submit made."""
    from airflow_provider_lancens.spark.jvm import hush
    from airflow_provider_lancens.spark.session import spark_session

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    hush()
    job = Job(**json.loads(words))
    with spark_session(job.table) as spark:
        job.run(spark)
