"""What tasks on Spark share: where it runs, and that it ends with its task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.errors import LanceRetryableError
from airflow_provider_lancens.hooks.spark import SparkPlace
from airflow_provider_lancens.operators.base import LanceOperator

if TYPE_CHECKING:
    from airflow_provider_lancens.spark.opened import OpenedSession


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

    _working = False
    _killed = False
    _opened: OpenedSession | None = None

    def __init__(
        self, *, spark_conn_id: str | None = None, spark_conf: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.spark_conn_id = spark_conn_id
        self.spark_conf = spark_conf or {}

    def spark_place(self) -> SparkPlace:
        """Where Spark runs.

        Raises:
            AirflowFailException: the connection describes no such place.
        """
        return SparkPlace.of_connection(self.spark_conn_id) if self.spark_conn_id else SparkPlace()

    @contextmanager
    def spark(self, place: SparkPlace) -> Iterator[Any]:
        """A session in the task's process, for the block.

        Raises:
            LanceRetryableError: the task was killed; Spark's work has ended.
        """
        from airflow_provider_lancens.spark.session import opened_session

        self._working = True
        try:
            with opened_session(f"{self.dag_id}.{self.task_id}", {**place.conf, **self.spark_conf}) as opened:
                self._opened = opened
                yield opened.spark
        except BaseException as error:
            if self._killed:
                raise LanceRetryableError("the task was killed, and with it its work on Spark") from error
            raise
        finally:
            self._working, self._opened = False, None

    def on_kill(self) -> None:
        """Stop Spark's work, and leave the block that waits for it; called by Airflow in a signal's handler.

        Airflow itself would go on with the task afterwards.
        """
        if not self._working:
            return
        self._killed = True
        self.log.warning("The task is killed: stopping its work on Spark")
        if self._opened is not None:
            self._opened.abort()
        raise Killed


class Killed(BaseException):
    """Leaves whatever the task is doing; no `except Exception` on the way holds it up."""
