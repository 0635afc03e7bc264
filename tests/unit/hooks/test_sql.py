"""Airflow's SQL operators on tables of a folder, by the hook of the connection's type."""

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.sql.hooks.sql import DbApiHook
from airflow.providers.common.sql.operators.sql import (
    BranchSQLOperator,
    SQLCheckOperator,
    SQLColumnCheckOperator,
    SQLExecuteQueryOperator,
    SQLIntervalCheckOperator,
    SQLTableCheckOperator,
    SQLThresholdCheckOperator,
    SQLValueCheckOperator,
)
from airflow.providers.common.sql.sensors.sql import SqlSensor
from airflow.sdk import DAG, BaseHook, BaseOperator, task

from airflow_provider_lancens.hooks import LanceCatalogHook, LanceHook
from airflow_provider_lancens.hooks.airflow_errors import (
    AirflowException,
    AirflowFailException,
    LanceRetryableError,
)
from airflow_provider_lancens.hooks.sql import LanceCatalogSqlHook, LanceGlueSqlHook, LanceSqlHook
from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
from airflow_provider_lancens.spark.results import WriteResult
from tests.support.sql_tables import DAY, folder_of_tables, orders

try:
    from airflow.sdk.serde import deserialize, serialize
except ImportError:  # Airflow 3.1
    from airflow.serialization.serde import deserialize, serialize

Connect = Callable[..., str]


@pytest.fixture
def lake(tmp_path: Path, connect: Connect) -> LanceCatalog:
    """Orders at version 1, through a connection named lake."""
    connect(conn_type="lance", extra={"root": str(tmp_path), "storage.region": "eu-central-1"})
    lake = folder_of_tables(tmp_path, "shop")
    lake.declare_table("shop.orders").append(orders(10, 20, 30))
    return lake


@pytest.fixture
def staged(lake: LanceCatalog) -> WriteResult:
    """Two more orders, staged: one has a negative amount, and the id of another."""
    return lake.table("shop.orders").append(orders(-1, None, first=2), stage=True)


def hook_of(**params: Any) -> LanceSqlHook:
    hook = BaseHook.get_connection("lake").get_hook(hook_params=params)
    assert isinstance(hook, LanceSqlHook)
    return hook


def run(operator: BaseOperator, **context: Any) -> Any:
    return operator.execute(context)  # type: ignore[arg-type] # these need no context


COLUMNS: dict[str, Any] = {
    "amount": {"min": {"greater_than": 0}, "null_check": {"equal_to": 0}},
    "id": {"unique_check": {"equal_to": 0}},
    "day": {"max": {"leq_to": DAY}},
    "customer": {"distinct_check": {"leq_to": 2}},
}


def columns_of(table: str, **params: Any) -> SQLColumnCheckOperator:
    mapping = {
        column: {name: dict(check) for name, check in checks.items()} for column, checks in COLUMNS.items()
    }
    return SQLColumnCheckOperator(
        task_id="columns", conn_id="lake", table=table, column_mapping=mapping, hook_params=params
    )


class TestChecks:
    def test_columns_of_the_newest_version_pass(self, lake: LanceCatalog) -> None:
        run(columns_of("shop.orders"))

    @pytest.mark.parametrize("named", [False, True])
    def test_a_failed_check_of_a_column_tells_check_table_and_version(
        self, staged: WriteResult, named: bool
    ) -> None:
        in_quotes = f'shop."orders@{staged.staged_version}"'
        operator = columns_of("new", tables={"new": staged.as_dict()}) if named else columns_of(in_quotes)

        with pytest.raises(AirflowException) as failed:
            run(operator)

        message = str(failed.value)
        assert f"(of shop$orders at version {staged.staged_version})" in message
        assert "Column: amount\n\tCheck: min," in message
        assert "Column: amount\n\tCheck: null_check," in message
        assert "Column: id\n\tCheck: unique_check," in message
        assert "Column: day" not in message
        assert not isinstance(failed.value, AirflowFailException)

    def test_a_check_that_failed_is_not_retried_where_airflow_is_told_so(self, staged: WriteResult) -> None:
        operator = columns_of("new", tables={"new": staged.as_dict()})
        operator.retry_on_failure = False
        with pytest.raises(AirflowFailException, match="unique_check"):
            run(operator)

    def test_conditions_on_the_rows_of_a_check(self, staged: WriteResult) -> None:
        mapping = {
            "amount": {
                "null_check": {"equal_to": 1, "partition_clause": "id > 2"},
                "max": {"equal_to": 30},
            }
        }
        operator = SQLColumnCheckOperator(
            task_id="columns",
            conn_id="lake",
            database="shop",
            table=f'"orders@{staged.staged_version}"',
            partition_clause="day = '2026-01-05'",
            column_mapping=mapping,
        )
        run(operator)

    def test_a_failed_table_check_names_the_check_and_the_version(self, staged: WriteResult) -> None:
        checks = {
            "some_rows": {"check_statement": "count(*) >= 3"},
            "positive": {"check_statement": "amount > 0", "partition_clause": "amount IS NOT NULL"},
        }
        run(SQLTableCheckOperator(task_id="rows", conn_id="lake", table="shop.orders", checks=checks))
        with pytest.raises(
            AirflowException, match=r"of shop\$orders at version staged-(?s:.*)Check: positive"
        ):
            run(
                SQLTableCheckOperator(
                    task_id="rows",
                    conn_id="lake",
                    table="new",
                    checks=checks,
                    hook_params={"tables": {"new": staged.as_dict()}},
                )
            )

    def test_queries_whose_values_must_be_true(self, staged: WriteResult) -> None:
        """A staged version may be compared with the newest one."""
        sql = "SELECT (SELECT count(*) FROM new) >= 0.9 * count(*), (SELECT min(amount) FROM new) > 0 FROM shop.orders"  # noqa: E501
        params = {"tables": {"new": staged.as_dict()}}
        with pytest.raises(AirflowException) as failed:
            run(SQLCheckOperator(task_id="check", conn_id="lake", sql=sql, hook_params=params))
        assert "(True, False) (of shop$orders at version" in str(failed.value)
        assert str(staged.staged_version) in str(failed.value)
        run(SQLCheckOperator(task_id="check", conn_id="lake", sql="SELECT count(*) FROM shop.orders"))

    def test_a_check_with_parameters_names_the_version(self, lake: LanceCatalog) -> None:
        sql = "SELECT count(*) FROM shop.orders WHERE amount > ?"
        run(SQLCheckOperator(task_id="check", conn_id="lake", sql=sql, parameters=[20]))
        with pytest.raises(AirflowException, match=r"\(0,\) \(of shop\$orders at version 1\)"):
            run(SQLCheckOperator(task_id="check", conn_id="lake", sql=sql, parameters=[30]))

    @pytest.mark.parametrize(("value", "tolerance"), [(60, None), ("60", None), (55, 0.1)])
    def test_a_value_is_compared_as_a_number_or_text_and_within_a_tolerance(
        self, lake: LanceCatalog, value: Any, tolerance: float | None
    ) -> None:
        sql = "SELECT sum(amount) FROM shop.orders"
        given: dict[str, Any] = {"task_id": "value", "conn_id": "lake", "sql": sql, "tolerance": tolerance}
        run(SQLValueCheckOperator(pass_value=value, **given))
        with pytest.raises(AirflowException, match=r"of shop\$orders at version 1"):
            run(SQLValueCheckOperator(pass_value=100, **given))

    def test_an_interval_check_compares_two_days_by_its_thresholds(self, lake: LanceCatalog) -> None:
        lake.table("shop.orders").append(orders(10, 20, first=9, day=DAY - timedelta(days=7)))
        operator = SQLIntervalCheckOperator(
            task_id="interval",
            conn_id="lake",
            table="shop.orders",
            date_filter_column="day",
            metrics_thresholds={"count(*)": 2, "sum(amount)": 2},
        )
        operator.sql1 = operator.sql1.replace("{{ ds }}", str(DAY))
        operator.sql2 = operator.sql2.replace("{{ macros.ds_add(ds, -7) }}", str(DAY - timedelta(days=7)))
        with pytest.raises(AirflowException, match=r"sum\(amount\)"):
            run(operator)
        operator.metrics_thresholds = {"count(*)": 2, "sum(amount)": 3}
        run(operator)

    def test_thresholds_may_be_queries(self, staged: WriteResult) -> None:
        given = {
            "task_id": "threshold",
            "conn_id": "lake",
            "sql": "SELECT count(*) FROM new",
            "min_threshold": "SELECT count(*) FROM shop.orders",
            "hook_params": {"tables": {"new": staged.as_dict()}},
        }
        run(SQLThresholdCheckOperator(max_threshold=5, **given))
        with pytest.raises(AirflowException, match="is not within thresholds 3 and 4"):
            run(SQLThresholdCheckOperator(max_threshold=4, **given))


class TestQueries:
    def test_rows_are_returned(self, lake: LanceCatalog) -> None:
        sql = "SELECT id, amount FROM shop.orders ORDER BY id"
        found = run(SQLExecuteQueryOperator(task_id="query", conn_id="lake", sql=sql))
        assert [tuple(map(float, row)) for row in found] == [(0, 10), (1, 20), (2, 30)]

    def test_several_queries_see_one_version(self, lake: LanceCatalog) -> None:
        sql = ["SELECT count(*) FROM shop.orders", "SELECT max(id) FROM shop.orders"]
        operator = SQLExecuteQueryOperator(task_id="query", conn_id="lake", sql=sql, return_last=False)
        assert run(operator) == [[(3,)], [(2,)]]

    def test_a_branch_follows_the_result_of_a_query(
        self, lake: LanceCatalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        operator = BranchSQLOperator(
            task_id="branch",
            conn_id="lake",
            sql="SELECT count(*) > 2 FROM shop.orders",
            follow_task_ids_if_true=["yes"],
            follow_task_ids_if_false=["no"],
        )
        followed: list[Any] = []
        monkeypatch.setattr(operator, "skip_all_except", lambda ti, branch: followed.append(branch))
        run(operator, ti=None)
        assert followed == [["yes"]]

    def test_a_sensor_waits_until_a_query_is_true(self, lake: LanceCatalog) -> None:
        waits = [
            SqlSensor(task_id="wait", conn_id="lake", sql=f"SELECT count(*) > {count} FROM shop.orders")
            for count in (2, 3)
        ]
        assert [sensor.poke({}) for sensor in waits] == [True, False]  # type: ignore[arg-type] # as above

    def test_a_change_is_refused(self, lake: LanceCatalog) -> None:
        operator = SQLExecuteQueryOperator(task_id="query", conn_id="lake", sql="DELETE FROM shop.orders")
        with pytest.raises(AirflowFailException, match=r"connection 'lake': sql: a query is one SELECT"):
            run(operator)
        assert lake.table("shop.orders").count_rows() == 3

    def test_the_task_decorator_where_airflow_has_it(self, lake: LanceCatalog) -> None:
        decorators = pytest.importorskip("airflow.providers.common.sql.decorators.sql")

        @decorators.sql_task(conn_id="lake")  # type: ignore[untyped-decorator] # as @task.sql
        def largest() -> str:
            return "SELECT max(amount) FROM shop.orders"

        with DAG(dag_id="largest", schedule=None):
            operator = largest().operator
        operator.render_template_fields = lambda context: None
        assert [float(value) for [value] in run(operator)] == [30]


class TestTheHook:
    def test_it_is_that_of_the_connection_for_airflow_alone(self, lake: LanceCatalog) -> None:
        hook = hook_of()
        assert type(hook) is LanceCatalogSqlHook
        assert isinstance(hook, DbApiHook)
        assert type(hook.lance) is type(LanceHook("lake")) is LanceCatalogHook

    def test_a_task_may_use_it_too(self, lake: LanceCatalog, staged: WriteResult) -> None:
        hook = LanceSqlHook("lake", tables={"new": staged.as_dict()}, schema="shop")
        assert hook.get_first("SELECT (SELECT count(*) FROM new), count(*) FROM orders") == (5, 3)

    def test_making_it_reads_no_connection(self) -> None:
        assert LanceGlueSqlHook("there_is_no_such_connection").get_conn_id() == "there_is_no_such_connection"
        assert LanceGlueSqlHook().get_conn_id() == "lance_default"

    def test_the_connection_test_is_that_of_the_catalog(self, lake: LanceCatalog) -> None:
        reached, message = hook_of().test_connection()
        assert reached
        assert "Namespaces: shop" in message

    def test_rows_and_a_row_tell_where_they_are_from(self, lake: LanceCatalog) -> None:
        hook = hook_of()
        rows, row = hook.get_records("SELECT 1 FROM shop.orders"), hook.get_first("SELECT 1 AS a, 2 AS b")
        assert (rows, str(rows)) == ([(1,)] * 3, "[(1,), (1,), (1,)] (of shop$orders at version 1)")
        assert (row, repr(row), str(row)) == ((1, 2), "(1, 2)", "(1, 2) (of no table)")
        assert hook.get_first("SELECT 1 FROM shop.orders WHERE id < 0") is None
        assert hook.get_records(["SELECT 1", "SELECT 2"]) == [[(1,)], [(2,)]]

    def test_they_are_xcoms(self, lake: LanceCatalog) -> None:
        hook = hook_of()
        for value, plain in (
            (hook.get_records("SELECT 1, 'a'"), [(1, "a")]),
            (hook.get_first("SELECT 1 AS a, 'a' AS b"), (1, "a")),
        ):
            stored = json.loads(json.dumps(serialize(value)))
            assert deserialize(stored) == plain

    @pytest.mark.filterwarnings("ignore:pandas only supports")
    def test_frames(self, lake: LanceCatalog) -> None:
        hook = hook_of()
        frame = hook.get_df("SELECT id, customer FROM shop.orders ORDER BY id", df_type="pandas")
        assert frame.to_dict("list") == {"id": [0, 1, 2], "customer": ["c0", "c1", "c0"]}
        parts = hook.get_df_by_chunks("SELECT id FROM shop.orders", chunksize=2, df_type="pandas")
        assert [len(part) for part in parts] == [2, 1]

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"table": "shop.orders"}, "'table' is unknown; expected tables, memory_limit"),
            ({"tables": "shop.orders"}, "tables is not a mapping of names to tables.* got a str"),
            ({"tables": {1: "shop.orders"}}, "tables is not a mapping of names to tables"),
            ({"tables": {"New": "a.b", "new": "a.c"}}, r"differ only in case, .* \['New', 'new'\]"),
            ({"memory_limit": "lots"}, "memory_limit='lots'"),
        ],
    )
    def test_parameters_are_checked(self, lake: LanceCatalog, params: dict[str, Any], message: str) -> None:
        with pytest.raises(AirflowFailException, match=message):
            hook_of(**params).get_records("SELECT 1 FROM shop.orders")

    @pytest.mark.parametrize(
        ("sql", "code"),
        [
            ("SELECT 1 FROM shop.nope", "code 4, TABLE_NOT_FOUND"),
            ('SELECT 1 FROM "shop.orders@99"', "code 11, TABLE_VERSION_NOT_FOUND"),
            ("SELECT nope FROM shop.orders", "code 12, TABLE_COLUMN_NOT_FOUND"),
            ("SELECT FROM FROM", "code 13, INVALID_INPUT"),
        ],
    )
    def test_what_is_not_there_fails_without_retries(self, lake: LanceCatalog, sql: str, code: str) -> None:
        with pytest.raises(AirflowFailException, match=code):
            hook_of().get_records(sql)

    def test_an_unavailable_metastore_is_retried(self, connect: Connect) -> None:
        connect(conn_type="lance_hive2", host="127.0.0.1:1", extra={"root": "/lake"})
        with pytest.raises(LanceRetryableError, match="SERVICE_UNAVAILABLE"):
            hook_of().get_records("SELECT 1 FROM shop.orders")

    def test_the_version_is_logged(self, lake: LanceCatalog, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.INFO):
            hook_of().get_records("SELECT 1 FROM shop.orders")
        assert "SQL reads table shop$orders at version 1" in caplog.text


def test_the_output_of_a_task_is_a_table_and_makes_its_task_an_upstream_one() -> None:
    @task
    def stage() -> dict[str, Any]:
        return {}

    with DAG(dag_id="checked", schedule=None):
        output = stage()
        check = SQLColumnCheckOperator(
            task_id="check",
            conn_id="lake",
            table="new",
            column_mapping={"a": {"min": {"geq_to": 0}}},
            hook_params={"tables": {"new": output}},
        )

    assert check.upstream_task_ids == {"stage"}
