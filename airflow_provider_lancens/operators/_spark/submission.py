"""Ingestion in cluster deploy mode: spark-submit starts the driver, and the commit is found by its key."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, LanceRetryableError
from airflow_provider_lancens.operators._spark.candidate_writes import ignoring_unusable_key
from airflow_provider_lancens.operators._spark.ingest_sources import FunctionIngestSource
from airflow_provider_lancens.spark.function_inputs import WHOLE

if TYPE_CHECKING:
    from lance import LanceDataset

    from airflow_provider_lancens.hooks.lance_hook import LanceHook
    from airflow_provider_lancens.hooks.spark_connection import SparkDeployment
    from airflow_provider_lancens.identifiers import TableId
    from airflow_provider_lancens.operators._spark.ingest_sources import IngestSource
    from airflow_provider_lancens.spark.function_inputs import Reading
    from airflow_provider_lancens.spark.options import WriteRequest
    from airflow_provider_lancens.spark.results import WriteResult
    from airflow_provider_lancens.spark.submit import Job, Submission

_LAST_LINES = 20
_FRAME = "\tat "
"""Prefix of a frame in a Java stack trace: spark-submit's own is long, and says nothing about the job."""


def make_job(
    hook: LanceHook, source: IngestSource, table: TableId, requests: Mapping[Reading, WriteRequest]
) -> Job:
    """Create the job description of an ingestion.

    Args:
        hook: hook to the table's namespace.
        source: a function with its arguments; another process must be able to import it.
        table: the table to write to.
        requests: how to write what the function returns, by what it reads.

    Raises:
        AirflowFailException: another process can't import the function, or the source is not a function.
    """
    from airflow_provider_lancens.spark.submit import Job, name_of

    if not isinstance(source, FunctionIngestSource):
        raise AirflowFailException(
            "source: must be a function with deploy-mode cluster; for files use deploy-mode client"
        )
    try:
        name = name_of(source.function)
    except ValueError as error:
        raise AirflowFailException(str(error)) from error
    identities = {reading: request.identity for reading, request in requests.items()}
    return Job(
        impl=hook.namespace_impl,
        properties=hook.namespace_properties(),
        table=str(table),
        source=name,
        inputs=source.inputs.plain(),
        kwargs=source.op_kwargs,
        request=requests[WHOLE],
        readings=[
            (sorted(names), identity.key, identity.fingerprint)
            for names, identity in identities.items()
            if names
        ],
    )


def run_job(job: Job, hook: LanceHook, submission: Submission, log: Any) -> WriteResult:
    """Wait for a submitted job, and return the result of its commit.

    Raises:
        LanceRetryableError: spark-submit or the driver failed; the message contains the last lines of output,
            and where to find the driver's.
    """
    started = time.monotonic()
    last: deque[str] = deque(maxlen=_LAST_LINES)
    for line in submission.lines():
        log.info("%s", line)
        if not line.startswith(_FRAME):
            last.append(line)
    if code := submission.wait():
        more = f"\nTo see the driver's log, run: {submission.log_command}" if submission.log_command else ""
        raise LanceRetryableError(f"spark-submit ended with code {code}:\n" + "\n".join(last) + more)
    return result_of(job, hook, started)


def result_of(job: Job, hook: LanceHook, started: float) -> WriteResult:
    """Return the result of a job whose driver succeeded.

    Args:
        job: the job.
        hook: hook to the table's namespace.
        started: when the task began to wait for it, by the monotonic clock.

    Raises:
        LanceRetryableError: the table has no version.
    """
    result = _found(job, hook, started)
    if result is None:
        raise LanceRetryableError(f"table {job.table}: the job succeeded, but the table has no version")
    return result


def committed_by(job: Job, hook: LanceHook, started: float) -> WriteResult | None:
    """Return the result of the commit under a job's key, see `result_of`; None if there is none."""
    result = _found(job, hook, started)
    return None if result is None or result.outcome == "unchanged" else result


def _found(job: Job, hook: LanceHook, started: float) -> WriteResult | None:
    """Return the result of the commit, ``unchanged`` if there is none; None if the table has no version."""
    from airflow_provider_lancens.spark.keys import KeyedCommit, look_up
    from airflow_provider_lancens.spark.table.resolved_table import resolved_table
    from airflow_provider_lancens.spark.write.write_rows import staged_before

    requests, version = job.requests().values(), 0
    opened: LanceDataset | None = None
    with resolved_table(hook.get_conn(), job.table) as target:
        for request in requests:
            with ignoring_unusable_key(requests):
                stage = request.change.stage
                lookup = look_up(target, request.identity, may_be_staged=stage, opened=opened)
                version, opened = lookup.version, lookup.latest
                if lookup.earlier is not None:
                    key = lookup.identity.key
                    return lookup.earlier.result(target, started, "done", key=key)
                if stage and (staged := staged_before(lookup)) is not None:
                    return replace(staged, outcome="staged")
        return KeyedCommit(version).result(target, started, "unchanged") if version else None


@contextmanager
def submitting(
    job: Job, deployment: SparkDeployment, conf: Mapping[str, str], identity: str
) -> Iterator[Submission]:
    """Submit the job, and stop it at the end of the block.

    Raises:
        AirflowFailException: the job can't be submitted.
    """
    from airflow_provider_lancens.spark.submit import submitted

    where = {"deploy_mode": deployment.deploy_mode, "binary": deployment.binary}
    with ExitStack() as started:
        with submittable():
            submission = started.enter_context(submitted(job, conf, identity=identity, **where))
        yield submission


@contextmanager
def submittable() -> Iterator[None]:
    """Convert errors that say why nothing can be submitted.

    Raises:
        AirflowFailException: it can't be.
    """
    try:
        yield
    except (FileNotFoundError, TypeError, ValueError) as error:
        raise AirflowFailException(f"spark-submit: {error}") from error
