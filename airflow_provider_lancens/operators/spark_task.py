"""What tasks on Spark share: where it runs, and that it ends with its task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.operators.base import LanceOperator
from airflow_provider_lancens.operators.spark_work import SparkWork, killable

if TYPE_CHECKING:
    from airflow_provider_lancens.hooks.spark import SparkPlace
    from airflow_provider_lancens.spark.job import Job
    from airflow_provider_lancens.spark.options import WriteResult


class LanceSparkOperator(LanceOperator):
    """A task that works with Spark: it runs where the connection says, and stops when the task is killed.

    Args:
        spark_conn_id: a connection of type ``spark`` or ``spark_connect``, as the Spark provider has them
            (it need not be installed); None runs Spark in the task's process. Templated.
        spark_conf: Spark's configuration, over the connection's; by default ``local[*]`` without a web UI,
            in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("spark_conn_id", "spark_conf", *LanceOperator.template_fields)
    template_fields_renderers = {"spark_conf": "json"}

    _work: SparkWork | None = None

    def __init__(
        self, *, spark_conn_id: str | None = None, spark_conf: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.spark_conn_id = spark_conn_id
        self.spark_conf = spark_conf or {}

    def spark_place(self) -> SparkPlace:
        """Where Spark runs, and with which configuration.

        Raises:
            AirflowFailException: the connection describes no such place, or `spark_conf` is no mapping.
        """
        from airflow_provider_lancens.hooks.spark import SparkPlace

        return SparkPlace.of(self.spark_conn_id, self.spark_conf)

    @contextmanager
    def spark(self, place: SparkPlace) -> Iterator[Any]:
        """A session in the task's process, for the block.

        Raises:
            AirflowFailException: the place gives the driver to the cluster.
            LanceRetryableError: the task was killed; Spark's work has ended.
        """
        place.check_driver_here()
        with self._killable() as work:
            name = f"{self.dag_id}.{self.task_id}"
            with work.session(name, place.conf) as spark:
                yield spark

    def submit(self, place: SparkPlace, job: Job) -> WriteResult:
        """Give a job to spark-submit, and wait for what it commits.

        Raises:
            AirflowFailException: it can't run so.
            LanceRetryableError: it failed, or the task was killed, and spark-submit and the driver with it.
        """
        from airflow_provider_lancens.operators.spark_submitting import run_job, submitting
        from airflow_provider_lancens.spark.alarm import before_alarm

        conf = {**place.conf, "spark.app.name": f"{self.dag_id}.{self.task_id}"}
        with self._killable() as work, submitting(job, place, conf) as submission:
            work.abort = submission.kill
            with before_alarm(submission.kill):
                return run_job(job, self.hook, submission, self.log)

    @contextmanager
    def _killable(self) -> Iterator[SparkWork]:
        try:
            with killable() as self._work:
                yield self._work
        finally:
            self._work = None

    def on_kill(self) -> None:
        """Stop Spark's work, and end the task."""
        if self._work is not None:
            self._work.kill()
