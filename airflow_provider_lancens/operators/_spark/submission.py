"""Ingestion in cluster deploy mode: spark-submit starts the driver, and the commit is found by its key."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_lancens.hooks.airflow_errors import LanceRetryableError
from airflow_provider_lancens.operators._spark.ingest_sources import FunctionOfTask

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.hooks.spark_connection import SparkDeployment
    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.operators._spark.ingest_sources import IngestSource
    from airflow_provider_lancens.spark.options import WriteRequest, WriteResult
    from airflow_provider_lancens.spark.submit.job_script import Job
    from airflow_provider_lancens.spark.submit.spark_submit import Submission

_LAST_LINES = 20
_FRAME = "\tat "
"""Prefix of a frame in a Java stack trace: spark-submit's own is long, and says nothing about the job."""


def make_job(hook: LanceHook, source: IngestSource, table: TableId, request: WriteRequest) -> Job:
    """Create the job description of an ingestion.

    Args:
        hook: hook to the table's namespace.
        source: a function with its arguments; another process must be able to import it.
        table: the table to write to.
        request: how to write what the function returns.

    Raises:
        AirflowFailException: another process can't import the function, or the source is not a function.
    """
    from airflow_provider_lancens.spark.submit.job_script import Job, name_of

    if not isinstance(source, FunctionOfTask):
        raise AirflowFailException(
            "source: must be a function with deploy-mode cluster; for files use deploy-mode client"
        )
    try:
        name = name_of(source.function)
    except ValueError as error:
        raise AirflowFailException(str(error)) from error
    inputs = {argument: one.identity for argument, one in source.inputs.items()}
    properties = hook.namespace_properties()
    return Job(hook.namespace_impl, properties, str(table), name, inputs, source.op_kwargs, request)


def run_job(job: Job, hook: LanceHook, submission: Submission, log: Any) -> WriteResult:
    """Wait for a submitted job, and return what it committed.

    Raises:
        LanceRetryableError: spark-submit or the driver failed; the message contains the last lines of output,
            and where to find the driver's.
    """
    from airflow_provider_lancens.spark.keys import KeyedCommit, look_up
    from airflow_provider_lancens.spark.table.resolved_table import resolved_table

    started = time.monotonic()
    last: deque[str] = deque(maxlen=_LAST_LINES)
    for line in submission.lines():
        log.info("%s", line)
        if not line.startswith(_FRAME):
            last.append(line)
    if code := submission.wait():
        more = f"\nTo see the driver's log, run: {submission.log_command}" if submission.log_command else ""
        raise LanceRetryableError(f"spark-submit ended with code {code}:\n" + "\n".join(last) + more)
    with resolved_table(hook.get_conn(), job.table) as target:
        lookup = look_up(target, job.request)
    if lookup.earlier is not None:
        return lookup.earlier.result(target.id, started, committed=True)
    if not lookup.version:
        raise LanceRetryableError(f"table {job.table}: the job succeeded, but the table has no version")
    return KeyedCommit(lookup.version).result(target.id, started, committed=False)


@contextmanager
def submitting(job: Job, deployment: SparkDeployment, conf: dict[str, str]) -> Iterator[Submission]:
    """Submit the job, and stop it at the end of the block.

    Raises:
        AirflowFailException: the job can't be submitted.
    """
    from airflow_provider_lancens.spark.submit.spark_submit import submitted

    with ExitStack() as started:
        try:
            in_progress = submitted(job, conf, deploy_mode=deployment.deploy_mode, binary=deployment.binary)
            submission = started.enter_context(in_progress)
        except (FileNotFoundError, TypeError, ValueError) as error:
            raise AirflowFailException(f"spark-submit: {error}") from error
        yield submission
