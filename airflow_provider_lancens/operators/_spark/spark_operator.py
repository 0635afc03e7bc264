"""Base class of operators that use Spark: where it runs, and how it ends with its task."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.airflow_errors import LanceRetryableError, airflow_errors
from airflow_provider_lancens.hooks.template_args import check_flag
from airflow_provider_lancens.operators.lance_operator import LanceOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.hooks.spark_connection import SparkDeployment
    from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
    from airflow_provider_lancens.spark.results import WriteResult
    from airflow_provider_lancens.spark.submit import Job

_log = logging.getLogger(__name__)


class LanceSparkOperator(LanceOperator):
    """Base class of operators that run Spark as a connection describes, and stop it when the task is killed.

    Args:
        spark_conn_id: a connection of type ``spark`` or ``spark_connect``, as defined by the Spark provider
            (which need not be installed); None runs Spark in the task's process. Templated.
        spark_conf: Spark configuration, which overrides the connection's; by default ``local[2]`` without a
            web UI, in UTC. Templated.
        hive_tables: True lets Spark read the Hive tables of the connection's metastore,
            ``spark.table("sales.orders")``; only for connections of type ``lance_hive2`` and ``lance_hive3``.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("spark_conn_id", "spark_conf", *LanceOperator.template_fields)
    template_fields_renderers = {"spark_conf": "json"}

    _work: CancellableSparkWork | None = None

    def __init__(
        self,
        *,
        spark_conn_id: str | None = None,
        spark_conf: Mapping[str, str] | None = None,
        hive_tables: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.spark_conn_id = spark_conn_id
        self._hive_tables = check_flag("hive_tables", hive_tables)
        self.spark_conf = spark_conf or {}

    def spark_deployment(self) -> SparkDeployment:
        """Return where Spark runs, and with which configuration.

        Raises:
            AirflowFailException: a connection is invalid, `spark_conf` is not a mapping, or `hive_tables` is
                not possible with the connection.
        """
        from airflow_provider_lancens.hooks.spark_connection import SparkDeployment

        deployment = SparkDeployment.of(self.spark_conn_id, self.spark_conf)
        return deployment.with_hive_tables(self.hook) if self._hive_tables else deployment

    @contextmanager
    def spark(self, deployment: SparkDeployment) -> Iterator[Any]:
        """Open a session in the task's process for the block.

        Raises:
            AirflowFailException: the deployment runs the driver on the cluster.
            LanceRetryableError: the task was killed; Spark's work has ended.
        """
        deployment.check_driver_here()
        with self._killable() as work:
            name = f"{self.dag_id}.{self.task_id}"
            with work.session(name, deployment.conf) as spark:
                yield spark

    @contextmanager
    def opened_with_spark(self, context: Context) -> Iterator[LanceCatalog]:
        """Open the catalog for the block; what needs Spark opens one session where the connection says.

        Args:
            context: the task's context.

        Raises:
            AirflowFailException: the connection is invalid, or `spark_conf` is not a mapping.
        """
        deployment = self.spark_deployment()
        with ExitStack() as used:
            session = cache(lambda: used.enter_context(self.spark(deployment)))
            yield used.enter_context(self.opened(context, session))

    def submit(self, deployment: SparkDeployment, job: Job, context: Context) -> WriteResult:
        """Run a job by spark-submit, or wait for the driver of an earlier try; return the commit's result.

        Raises:
            AirflowFailException: the job can't be submitted.
            LanceRetryableError: it failed, or the task was killed, and spark-submit and the driver with it.
        """
        from airflow_provider_lancens.spark.observed import Ended, notify

        result = self._submitted(deployment, job, context)
        notify(self.hook.get_conn(), Ended(result))  # the namespace in the driver's process has no observer
        return result

    def _submitted(self, deployment: SparkDeployment, job: Job, context: Context) -> WriteResult:
        from airflow_provider_lancens.operators._spark.reattachment import driver_identity
        from airflow_provider_lancens.operators._spark.submission import run_job, submitting

        conf = {**deployment.conf, "spark.app.name": f"{self.dag_id}.{self.task_id}"}
        identity = driver_identity(job, context)
        with self._killable() as work:
            if context["ti"].try_number > 1:
                earlier = self._result_of_earlier_try(work, deployment, job, conf, identity)
                if earlier is not None:
                    return earlier
            with submitting(job, deployment, conf, identity) as submission, work.aborted_by(submission.kill):
                return run_job(job, self.hook, submission, self.log)

    def _result_of_earlier_try(
        self,
        work: CancellableSparkWork,
        deployment: SparkDeployment,
        job: Job,
        conf: Mapping[str, str],
        identity: str,
    ) -> WriteResult | None:
        from airflow_provider_lancens.operators._spark.reattachment import searching, wait_for_earlier
        from airflow_provider_lancens.operators._spark.submission import committed_by, result_of

        started = time.monotonic()
        with searching(deployment, conf, identity) as earlier, work.aborted_by(earlier.kill):
            succeeded = wait_for_earlier(earlier, self.log)
        # Even if no driver was found, one may have succeeded since the key was looked up.
        return (result_of if succeeded else committed_by)(job, self.hook, started)

    @contextmanager
    def _killable(self) -> Iterator[CancellableSparkWork]:
        try:
            with killable() as self._work:
                yield self._work
        finally:
            self._work = None

    def on_kill(self) -> None:
        """Stop the task's work on Spark, and end the task."""
        if self._work is not None:
            self._work.kill()


class TaskKilled(BaseException):
    """Raised to leave the task's work; a BaseException, so that no `except Exception` catches it."""


class CancellableSparkWork:
    """Work on Spark that can be canceled when its task is killed."""

    def __init__(self) -> None:
        self.abort: Callable[[], None] | None = None
        """Stops the work; None until it has started."""
        self.killed = False

    def kill(self) -> None:
        """Stop the work, and leave the block that waits for it; called by Airflow in a signal handler.

        Airflow itself would continue the task afterwards.

        Raises:
            TaskKilled: always.
        """
        self.killed = True
        _log.warning("The task is being killed: canceling its Spark jobs")
        if self.abort is not None:
            self.abort()
        raise TaskKilled

    @contextmanager
    def aborted_by(self, abort: Callable[[], None]) -> Iterator[None]:
        """Stop the work by a function if the task is killed, or exceeds its time, within the block."""
        from airflow_provider_lancens.spark.session import before_sigalrm

        self.abort = abort
        try:
            with before_sigalrm(abort):
                yield
        finally:
            self.abort = None

    @contextmanager
    def session(self, app_name: str, conf: Mapping[str, str]) -> Iterator[Any]:
        """Open a session in the task's process, and log its progress.

        Raises:
            LanceRetryableError: a Spark Connect server doesn't answer, or has ended within the block.
        """
        from airflow_provider_lancens.spark.session import opened_session, progress_logged, quiet_py4j

        quiet_py4j()
        _log.info("Opening a Spark session: a new one may take a minute to start")
        with ExitStack() as stack:
            with airflow_errors("opening a Spark session"):
                opened = stack.enter_context(opened_session(app_name, conf))
            self.abort = opened.abort
            with progress_logged(opened.spark), _server_errors(opened.spark):
                yield opened.spark


@contextmanager
def _server_errors(spark: Any) -> Iterator[None]:
    """Tell if a Spark Connect server has ended within the block.

    Raises:
        LanceRetryableError: it has.
    """
    from airflow_provider_lancens.redaction import redact
    from airflow_provider_lancens.spark.session import is_remote, server_is_gone

    try:
        yield
    except Exception as error:
        if is_remote(spark) and server_is_gone(error):
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise LanceRetryableError(
                f"the Spark Connect server doesn't answer any more, or has lost the session: {redact(first)}"
            ) from None
        raise


@contextmanager
def killable() -> Iterator[CancellableSparkWork]:
    """Make Spark work cancellable within the block.

    Raises:
        LanceRetryableError: the task was killed.
    """
    work = CancellableSparkWork()
    try:
        yield work
    except BaseException:
        if work.killed:
            # Without the cause: tracebacks from wherever in Spark the signal arrived don't help.
            raise LanceRetryableError("the task was killed, and its Spark jobs were canceled") from None
        raise
