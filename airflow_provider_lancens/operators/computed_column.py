"""Operator that computes a column of a table on Spark's executors, without rewriting the other columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_lancens.hooks.template_args import parse_condition, parse_list, parse_table, parse_text
from airflow_provider_lancens.links import LanceGlueTableLink, LancePageLink
from airflow_provider_lancens.operators._spark.spark_operator import LanceSparkOperator
from airflow_provider_lancens.spark.options import DEFAULT_BATCH_ROWS, check_sizes

if TYPE_CHECKING:
    from airflow.sdk import Context


class LanceComputeColumnOperator(LanceSparkOperator):
    """Compute a column, such as an embedding, by a Python function on Spark executors; rewrite no other.

    By default only rows that have no value are computed: a repeated task computes rows that were added since,
    and doesn't start Spark if there are none. A killed task has committed the fragments that it had finished,
    and its retry computes the rest. Rows that are appended while it runs are computed by the next run.

    Its XCom is ``{"table": str, "operation": str, "outcome": str, "version": int, "previous_version": int,
    "column": str, "computed": int, "nulls": int, "files": int, "bytes": int, "commits": int, "seconds":
    float, "reason": str, "location": str | None}``: ``computed`` counts the computed values, ``nulls`` the
    rows of changed fragments that still have none. If it committed and an outlet is the table's asset or an
    asset alias, the extra of its event contains the table and both versions: of this try, without what an
    earlier one has committed.

    Args:
        table: table identifier, ``database$table``. Templated.
        column: the column to compute; it is added if it doesn't exist. Templated.
        function: ``function(batch)`` gets a ``pyarrow.RecordBatch`` with ``columns``, and returns a
            ``pyarrow.Array`` with a value for each row. Or its path, such as ``module.function``. It is sent
            to the executors with the code of its module, unless that is installed.
        columns: the columns that the function gets. Templated.
        dtype: the type of a column that is added, such as ``float[768]``; by default the type of the
            function's result for a batch without rows. Templated.
        setup: a function, or its path, that is called once in each Python worker, such as to load a model;
            its result is the second argument of ``function``.
        where: a condition, see docs/conditions.md: the rows that match it are computed, whether they have a
            value or not; ``TRUE`` computes all. A retry then skips fragments that an earlier try has
            committed. By default the rows that have no value are computed. Templated.
        batch_rows: maximum number of rows that the function gets at once.
        commit_every: number of finished fragments that are committed at once; by default a quarter of the
            number that is computed at the same time.
        max_tasks: maximum number of fragments that are computed at the same time; by default as many as
            Spark's executors can run.
        spark_conn_id: where Spark runs: a connection of type ``spark`` or ``spark_connect``; None runs it in
            the task's process. Templated.
        spark_conf: Spark configuration, which overrides the connection's; by default ``local[2]`` without a
            web UI, in UTC. Templated.
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = (
        "table",
        "column",
        "columns",
        "dtype",
        "where",
        *LanceSparkOperator.template_fields,
    )
    template_fields_renderers = {"where": "sql", **LanceSparkOperator.template_fields_renderers}
    operator_extra_links = (LancePageLink(), LanceGlueTableLink())

    def __init__(
        self,
        *,
        table: str,
        column: str,
        function: Callable[..., Any] | str,
        columns: Sequence[str],
        dtype: str | None = None,
        setup: Callable[..., Any] | str | None = None,
        where: str | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        commit_every: int | None = None,
        max_tasks: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, given in (("function", function), ("setup", setup)):
            if not (callable(given) or isinstance(given, str) or (given is None and name == "setup")):
                raise TypeError(f"{name}: is of type {type(given).__name__}; expected a function or its path")
        check_sizes(batch_rows, commit_every, max_tasks)
        self.table = table
        self.column = column
        self.function = function
        self.columns = columns
        self.dtype = dtype
        self.setup = setup
        self.where = where
        self.batch_rows = batch_rows
        self.commit_every = commit_every
        self.max_tasks = max_tasks

    def execute(self, context: Context) -> dict[str, Any]:
        """Compute the rows, and commit them in steps.

        Raises:
            AirflowFailException: there is no such table or column, an argument is invalid, or the function
                returned something invalid.
            ColumnFunctionError: the function raised an exception; finished fragments are committed.
            LanceRetryableError: the metastore or the storage is unavailable, the task was killed, or other
                commits kept rewriting the table.
        """
        from airflow_provider_lancens.lineage.task_lineage import DerivedColumn, TableRead, TableWrite

        table, column = parse_table(self.table), parse_text(self.column) or ""
        columns = parse_list("columns", self.columns, "names of columns")
        with self.opened_with_spark(context) as lake:
            result = lake.table(table).compute_column(
                column,
                self.function,
                columns,
                dtype=parse_text(self.dtype),
                setup=self.setup,
                where=parse_condition("where", self.where),
                batch_rows=self.batch_rows,
                commit_every=self.commit_every,
                max_tasks=self.max_tasks,
            )
            derived = {column: DerivedColumn(columns, is_copy=False)} if result.is_done else {}
            write = TableWrite.of(result, columns=[column], derived=derived)
            self.note_lineage(lake.namespace, write, [TableRead(table, result.previous_version or 0)])
        self.emit_asset_event(context, result)
        return result.as_dict()
