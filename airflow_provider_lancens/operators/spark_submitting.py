"""An ingestion whose driver the cluster runs: spark-submit hands it over, the commit is found by its key."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.errors import LanceRetryableError
from airflow_provider_lancens.operators.sources import FunctionOfTask

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.base import LanceHook
    from airflow_provider_lancens.hooks.spark import SparkPlace
    from airflow_provider_lancens.operators.sources import IngestSource
    from airflow_provider_lancens.spark.job import Job
    from airflow_provider_lancens.spark.options import WriteResult
    from airflow_provider_lancens.spark.submit import Submission

_LAST_LINES = 20
_FRAME = "\tat "
"""How a line of a Java trace begins: spark-submit's own is long, and tells nothing of the job."""
_NAME = ("idempotency_key", "fingerprint", "on_changed")


def make_job(hook: LanceHook, source: IngestSource, **words: Any) -> Job:
    """Put an ingestion into words.

    Args:
        hook: to the table's namespace.
        source: a function with its arguments; another process has to be able to import it.
        words: further fields of `airflow_provider_lancens.spark.job.Job`.

    Raises:
        AirflowFailException: another process can't import the function, or there is none.
    """
    from airflow_provider_lancens.spark.job import Job, name_of

    if not isinstance(source, FunctionOfTask):
        raise AirflowFailException(
            "source: a driver of the cluster takes a function; for files use deploy-mode client"
        )
    try:
        name = name_of(source.function)
    except ValueError as error:
        raise AirflowFailException(str(error)) from error
    inputs = {argument: astuple(pinned) for argument, pinned in source.inputs.items()}
    properties = hook.namespace_properties()
    return Job(hook.namespace_impl, properties, source=name, inputs=inputs, kwargs=source.op_kwargs, **words)


def run_job(job: Job, hook: LanceHook, submission: Submission, log: Any) -> WriteResult:
    """Wait for a submitted job, and find what it committed.

    Raises:
        LanceRetryableError: spark-submit or the driver failed; the message has the last lines, and where to
            read on.
    """
    from airflow_provider_lancens.spark.once import find_write

    started = time.monotonic()
    last: deque[str] = deque(maxlen=_LAST_LINES)
    for line in submission.lines():
        log.info("%s", line)
        if not line.startswith(_FRAME):
            last.append(line)
    if code := submission.wait():
        more = f"\nWhat the driver said: {submission.told_by}" if submission.told_by else ""
        raise LanceRetryableError(f"spark-submit ended with code {code}:\n" + "\n".join(last) + more)
    name = {key: job.write[key] for key in _NAME if key in job.write}
    found = find_write(hook.get_conn(), job.table, **name)
    made = replace(found, committed=True) if found else _nothing_appended(job, hook)
    return replace(made, seconds=round(time.monotonic() - started, 3))


def _nothing_appended(job: Job, hook: LanceHook) -> WriteResult:
    from airflow_provider_lancens.spark.options import WriteResult

    stands = hook.table_version(job.table)
    if stands is None:
        raise LanceRetryableError(f"table {job.table}: the job ended well, but the table has no version")
    return WriteResult(job.table, stands.version, stands.version - 1 or None, 0, 0, 0, 0.0, committed=False)


@contextmanager
def submitting(job: Job, place: SparkPlace, conf: dict[str, str]) -> Iterator[Submission]:
    """Start it.

    Raises:
        AirflowFailException: it can't run there, or not so.
    """
    from airflow_provider_lancens.spark.submit import submitted

    with ExitStack() as started:
        try:
            handed_over = submitted(job, conf, deploy_mode=place.deploy_mode, binary=place.binary)
            submission = started.enter_context(handed_over)
        except (FileNotFoundError, TypeError, ValueError) as error:
            raise AirflowFailException(f"spark-submit: {error}") from error
        yield submission
