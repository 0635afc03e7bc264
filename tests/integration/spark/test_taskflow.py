"""`lance_spark` in a task: pinned reads, and writes that are made once, in an existing session."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from airflow.sdk import BaseOperator
from airflow.sdk.execution_time.context import OutletEventAccessors, set_current_context
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from pyspark.sql import SparkSession

from airflow_provider_lancens.assets.table import WRITES_XCOM, lance_table
from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException, LanceRetryableError
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.operators._spark.spark_operator import TaskKilled
from airflow_provider_lancens.operators.taskflow import lance_spark
from airflow_provider_lancens.sensors.version_bounds import commits_in_xcoms
from airflow_provider_lancens.spark import ColumnFunctionError
from airflow_provider_lancens.spark.lance_catalog import LanceCatalog
from airflow_provider_lancens.spark.options import WriteIdentity

Try = Callable[..., Any]
LEFT = "an earlier try or execution made more"


@pytest.fixture
def tables(
    spark: SparkSession,
    metastore: MetastoreServer,
    connect: Callable[..., str],
    database: str,
    tmp_path: Path,
) -> list[str]:
    """Two declared tables behind the connection `lake`."""
    namespace = LanceHook.for_connection(
        connect(host=metastore.uri, extra={"root": str(tmp_path)})
    ).get_conn()
    namespace.create_namespace(CreateNamespaceRequest(id=[database]))
    for name in ("readings", "means"):
        namespace.declare_table(DeclareTableRequest(id=[database, name]))
    return [f"{database}${name}" for name in ("readings", "means")]


@pytest.fixture
def outlets(tables: list[str]) -> list[Any]:
    return [lance_table(table, "lake") for table in tables]


@pytest.fixture
def events() -> OutletEventAccessors:
    return OutletEventAccessors()


@pytest.fixture
def pushed() -> dict[str, Any]:
    """The XComs that the task has pushed, by key."""
    return {}


@pytest.fixture
def tried(tables: list[str], outlets: list[Any], events: OutletEventAccessors, pushed: dict[str, Any]) -> Try:
    """An attempt of a task, as a block in which its context is the current one."""

    @contextmanager
    def begin(run_id: str = "manual__1", clears: int = 0) -> Iterator[BaseOperator]:
        task = BaseOperator(task_id="own", outlets=outlets)
        instance = SimpleNamespace(dag_id="dag", task_id="own", map_index=-1, max_tries=clears)
        instance.xcom_push = lambda key, value: pushed.update({key: value})
        context: Any = {"ti": instance, "task": task, "run_id": run_id, "outlet_events": events}
        with set_current_context(context):
            yield task

    return begin


@pytest.fixture
def own(tried: Try) -> Try:
    """Run an attempt of the task with its lake."""

    def run(function: Callable[[LanceCatalog], Any], run_id: str = "manual__1", clears: int = 0) -> Any:
        with tried(run_id, clears), lance_spark(lance_conn_id="lake") as lake:
            return function(lake)

    return run


def ids(lake: LanceCatalog, table: Any) -> list[int]:
    return sorted(row["id"] for row in lake.table(table).read().collect())


def told_versions(pushed: dict[str, Any]) -> dict[TableId, list[int]]:
    """The versions that sensors downstream take for the task's."""
    told = commits_in_xcoms(pushed[WRITES_XCOM])
    return {table: [made.version for made in commits] for table, commits in told.items()}


def test_what_a_function_wrote_is_told_to_sensors_whatever_it_returns(
    own: Try, tables: list[str], pushed: dict[str, Any]
) -> None:
    def write_both(lake: LanceCatalog) -> None:
        for table in tables:
            lake.table(table).append(lake.spark.range(2))

    own(write_both)

    assert told_versions(pushed) == {TableId.parse(table): [1] for table in tables}


def test_a_restore_is_made_once_by_all_tries_of_a_task(
    own: Try, tables: list[str], pushed: dict[str, Any]
) -> None:
    def append(lake: LanceCatalog) -> None:
        lake.table(tables[0]).append(lake.spark.range(2))

    def undo(lake: LanceCatalog) -> tuple[str, int | None, str | None]:
        result = lake.table(tables[0]).restore(1)
        return result.outcome, result.version, result.key

    for run_id in ("first", "wrong"):
        own(append, run_id)
    restored = own(undo, "undo")
    told = told_versions(pushed)
    own(append, "later")
    again = own(undo, "undo")

    assert (restored[:2], again[:2]) == (("done", 3), ("found", 3))
    assert restored[2] == again[2] == f"dag/own/undo/{tables[0]}"
    assert told == {TableId.parse(tables[0]): [3]}


def test_writes_in_several_blocks_of_a_task_are_numbered_like_those_in_one(
    tried: Try, tables: list[str], pushed: dict[str, Any]
) -> None:
    def run() -> list[str]:
        outcomes = []
        with tried():
            for span in ((0, 2), (2, 5)):
                with lance_spark(lance_conn_id="lake") as lake:
                    outcomes.append(lake.table(tables[0]).append(lake.spark.range(*span)).outcome)
            with lance_spark(lance_conn_id="lake") as lake:
                lake.table(tables[1]).append(lake.spark.range(1))
                assert ids(lake, tables[0]) == [0, 1, 2, 3, 4]
        return outcomes

    assert (run(), run()) == (["done", "done"], ["found", "found"])
    assert told_versions(pushed) == {
        TableId.parse(tables[0]): [2],
        TableId.parse(tables[1]): [1],
    }


def test_each_write_of_a_task_is_made_once_even_to_the_same_table(own: Try, tables: list[str]) -> None:
    def twice(lake: LanceCatalog) -> list[dict[str, Any]]:
        return [
            lake.table(tables[0]).append(lake.spark.range(*span)).as_dict() for span in ((0, 10), (10, 15))
        ]

    first, retried, in_another_run = own(twice), own(twice), own(twice, "manual__2")

    results = [
        [(one["version"], one["inserted"], one["outcome"] == "done") for one in answers]
        for answers in (first, retried)
    ]
    assert results == [[(1, 10, True), (2, 5, True)], [(1, 10, False), (2, 5, False)]]
    assert [one["version"] for one in in_another_run] == [3, 4]
    assert own(lambda lake: ids(lake, first[1])) == list(range(15))


Each = Callable[[LanceCatalog, str], Any]
"""The rows of an item."""
OF_ITEM: dict[str, Each] = {
    "literals": lambda lake, item: lake.spark.sql(f"SELECT '{item}' AS f"),
    "local rows": lambda lake, item: lake.spark.sql(f"SELECT * FROM VALUES ('{item}') AS t(f)"),
    "rows of Python": lambda lake, item: lake.spark.createDataFrame([(item,)], "f string"),
}


def loop(table: str, items: str, of_item: Each) -> Callable[[LanceCatalog], None]:
    """Write the rows of each item, whatever becomes of the others."""

    def run(lake: LanceCatalog) -> None:
        failures = []
        for item in items:
            try:
                lake.table(table).append(of_item(lake, item))
            except AirflowFailException as error:
                failures.append(error)
        if failures:
            raise failures[0]

    return run


def files_of(own: Try, table: str) -> list[str]:
    return sorted(own(lambda lake: [row["f"] for row in lake.table(table).read().collect()]))


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        *(("literals", changed) for changed in ("nab", "b", "ba")),
        ("local rows", "nab"),
        ("rows of Python", "nab"),
    ],
    ids=["grown in front", "shrunk", "reordered", "local rows", "rows of Python"],
)
def test_a_cleared_loop_over_other_items_is_refused_and_writes_nothing(
    own: Try, tables: list[str], kind: str, changed: str
) -> None:
    own(loop(tables[0], "ab", OF_ITEM[kind]))

    with pytest.raises(AirflowFailException, match="set the key of each"):
        own(loop(tables[0], changed, OF_ITEM[kind]), clears=1)

    assert files_of(own, tables[0]) == ["a", "b"]


@pytest.mark.parametrize("kind", ["local rows"])
def test_a_cleared_loop_writes_the_items_that_were_added_at_its_end(
    own: Try, tables: list[str], kind: str
) -> None:
    own(loop(tables[0], "a", OF_ITEM[kind]))
    own(loop(tables[0], "ab", OF_ITEM[kind]), clears=1)

    assert files_of(own, tables[0]) == ["a", "b"]


def test_threads_may_write_to_one_table_under_keys_of_their_own_alone(own: Try, tables: list[str]) -> None:
    both = threading.Barrier(2)

    def write(lake: LanceCatalog, span: tuple[int, int], key: str | None = None) -> str:
        rows = lake.spark.range(*span)
        both.wait()
        given = {} if key is None else {"key": key}
        try:
            return lake.table(tables[0]).append(rows, **given).outcome
        except AirflowFailException as error:
            return str(error)

    def at_once(keys: list[str | None]) -> Callable[[LanceCatalog], list[str]]:
        def run(lake: LanceCatalog) -> list[str]:
            with ThreadPoolExecutor(2) as pool:
                return sorted(pool.map(partial(write, lake), [(0, 10), (10, 15)], keys))

        return run

    for run_id, keys in {"none": [None, None], "one": ["k", "k"]}.items():
        done, refused = own(at_once(keys), run_id)
        assert done == "done"
        assert "another thread of this task is writing to it under the key" in refused
    rows = own(lambda lake: lake.table(tables[0]).count_rows())
    assert own(at_once(["a", "b"]), "two") == ["done", "done"]
    assert own(lambda lake: lake.table(tables[0]).count_rows()) == rows + 15


def test_threads_cannot_be_in_blocks_of_two_bookmarks_at_once(own: Try, tables: list[str]) -> None:
    def write(lake: LanceCatalog) -> None:
        def other() -> None:
            with source.changes(bookmark="b"):
                """Not begun."""

        source = lake.table(tables[0])
        with source.changes(bookmark="a"), ThreadPoolExecutor(1) as pool:
            with pytest.raises(AirflowFailException, match="another thread of this task is in a block"):
                pool.submit(other).result()
            with source.changes(bookmark="c"):
                lake.table(tables[1]).append(lake.spark.range(1))
        with ThreadPoolExecutor(1) as pool:
            pool.submit(other).result()

    own(lambda lake: lake.table(tables[0]).append(lake.spark.range(3)))
    own(write, "manual__2")


def test_a_loop_whose_writes_have_keys_may_have_any_items(own: Try, tables: list[str]) -> None:
    def keyed(items: str) -> Callable[[LanceCatalog], None]:
        def run(lake: LanceCatalog) -> None:
            for item in items:
                lake.table(tables[0]).append(OF_ITEM["rows of Python"](lake, item), key=item)

        return run

    own(keyed("ab"))
    own(keyed("nba"), clears=1)

    assert files_of(own, tables[0]) == ["a", "b", "n"]


@pytest.mark.parametrize("kind", ["literals", "rows of Python"])
def test_a_retry_of_a_loop_continues_after_the_writes_that_were_committed(
    own: Try, tables: list[str], kind: str
) -> None:
    own(loop(tables[0], "ab", OF_ITEM[kind]))
    own(loop(tables[0], "abc", OF_ITEM[kind]))

    assert files_of(own, tables[0]) == ["a", "b", "c"]


def test_a_retry_over_other_items_is_refused(own: Try, tables: list[str]) -> None:
    own(loop(tables[0], "ab", OF_ITEM["literals"]))

    with pytest.raises(AirflowFailException, match="write number 1 was committed before"):
        own(loop(tables[0], "nab", OF_ITEM["literals"]))
    assert files_of(own, tables[0]) == ["a", "b"]


def test_a_retry_finds_its_write_although_its_rows_contain_a_clock(own: Try, tables: list[str]) -> None:
    def now(lake: LanceCatalog) -> Any:
        return lake.table(tables[0]).append(lake.spark.sql(f"SELECT {time.time_ns()} AS at")).as_dict()

    assert [own(now)["version"], own(now)["version"]] == [1, 1]
    cleared = own(now, clears=1)
    assert (cleared["version"], cleared["inserted"]) == (2, 1)
    assert own(lambda lake: lake.table(tables[0]).count_rows()) == 1


def test_each_of_several_computations_of_a_column_is_made_once_by_all_tries(
    own: Try, tables: list[str]
) -> None:
    def doubled(batch: pa.RecordBatch) -> pa.Array:
        return pc.multiply(batch["id"], 2)

    def raised(batch: pa.RecordBatch) -> pa.Array:
        return pc.add(batch["n"], 100)

    def failing_later(batch: pa.RecordBatch) -> pa.Array:
        if batch.num_rows and pc.max(batch["id"]).as_py() >= 10:
            raise ValueError("a test")
        return pc.add(batch["n"], 100)

    def computed(lake: LanceCatalog, function: Any = raised) -> list[bool]:
        table = lake.table(tables[0])
        one = {"batch_rows": 5, "commit_every": 1, "max_tasks": 1}
        first = table.compute_column("n", doubled, ["id"], where="id < 15", **one)
        return [
            first.is_done,
            table.compute_column("n", function, ["id", "n"], where="id >= 5", **one).is_done,
        ]

    own(lambda lake: lake.table(tables[0]).append(lake.spark.range(0, 20, 1, 2)), "fill")
    with pytest.raises(ColumnFunctionError, match="a test"):
        own(partial(computed, function=failing_later))
    retried = own(computed)
    once_more = own(computed)

    values = own(lambda lake: lake.table(tables[0]).to_arrow()).to_pylist()
    doubles = {number: 2 * number if number < 15 else None for number in range(20)}
    assert (retried, once_more) == ([False, True], [False, False])
    assert {row["id"]: row["n"] for row in values} == {
        number: double + 100 if number >= 5 and double is not None else double
        for number, double in doubles.items()
    }


def test_a_failed_computation_repeated_in_the_task_is_the_same_computation(
    own: Try, tables: list[str]
) -> None:
    def raised(batch: pa.RecordBatch) -> pa.Array:
        return pc.add(batch["n"], 100)

    def failing_later(batch: pa.RecordBatch) -> pa.Array:
        if batch.num_rows and pc.max(batch["id"]).as_py() >= 10:
            raise ValueError("a test")
        return raised(batch)

    def compute(lake: LanceCatalog) -> None:
        table = lake.table(tables[0])
        table.compute_column("n", lambda batch: batch["id"], ["id"])
        one = {"where": "TRUE", "commit_every": 1, "max_tasks": 1}
        for _ in range(2):
            with pytest.raises(ColumnFunctionError, match="a test"):
                table.compute_column("n", failing_later, ["id", "n"], **one)
        assert pc.sum(table.to_arrow()["n"]).as_py() == sum(range(20)) + 10 * 100
        table.compute_column("n", raised, ["id", "n"], **one)  # another one
        table.compute_column("n", raised, ["id", "n"], **one)

    own(lambda lake: lake.table(tables[0]).append(lake.spark.range(0, 20, 1, 2)), "fill")
    own(compute)

    values = own(lambda lake: lake.table(tables[0]).to_arrow()).to_pylist()
    assert {row["id"]: row["n"] for row in values} == {
        number: number + (300 if number < 10 else 200) for number in range(20)
    }


def test_a_second_replacement_under_one_key_in_a_task_is_made(own: Try, tables: list[str]) -> None:
    def twice(lake: LanceCatalog) -> list[int]:
        key, table = WriteIdentity("k", on_existing_key="redo"), lake.table(tables[0])
        return [table.append(lake.spark.range(rows), key=key).written for rows in (2, 3)]

    assert [own(twice), own(twice)] == [[2, 3], [2, 3]]
    assert own(lambda lake: ids(lake, tables[0])) == [0, 1, 2]


def test_columns_of_the_rows_are_merged_on_request(own: Try, tables: list[str]) -> None:
    def write(lake: LanceCatalog, column: str, **how: Any) -> dict[str, Any]:
        rows = lake.spark.range(1).selectExpr("id", f"1 AS {column}")
        return lake.table(tables[0]).append(rows, **how).as_dict()

    own(lambda lake: write(lake, "a"))
    with pytest.raises(AirflowFailException, match=r"b is not in the table.*schema_mode='merge'"):
        own(lambda lake: write(lake, "b"), "manual__2")
    merged = own(lambda lake: write(lake, "b", schema_mode="merge"), "manual__2")

    assert merged["version"] == 3
    assert own(lambda lake: lake.table(merged).read().columns) == ["id", "a", "b"]


def test_the_last_line_of_a_write_links_to_its_version(
    own: Try, tables: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        own(lambda lake: lake.table(tables[0]).append(lake.spark.range(10)))

    *_, last = (one for one in caplog.messages if tables[0] in one)
    assert last.startswith(f"Done: table {tables[0]}: committed version 1 with 10 rows")
    assert last.endswith(f"; see /lance/?conn=lake&table={quote(tables[0], safe='')}&version=1")


def test_a_failed_write_repeated_in_the_task_is_the_same_write(own: Try, tables: list[str]) -> None:
    def stubborn(lake: LanceCatalog) -> dict[str, Any]:
        with pytest.raises(AirflowFailException, match="Lance has no type"):
            lake.table(tables[0]).append(lake.spark.sql("SELECT make_ym_interval(1, 2) AS id"))
        return lake.table(tables[0]).append(lake.spark.range(10)).as_dict()

    assert own(stubborn)["outcome"] == "done"
    assert not own(lambda lake: lake.table(tables[0]).append(lake.spark.range(10))).is_done


def test_a_cleared_task_makes_its_write_again_although_its_first_attempt_fails_again(
    own: Try, tables: list[str]
) -> None:
    def stubborn(lake: LanceCatalog) -> int:
        with pytest.raises(AirflowFailException, match="Lance has no type"):
            lake.table(tables[0]).append(lake.spark.sql("SELECT make_ym_interval(1, 2) AS id"))
        rows = lake.spark.sql(f"SELECT {time.time_ns()} AS id")
        return lake.table(tables[0]).append(rows).version

    assert [own(stubborn), own(stubborn, clears=1)] == [1, 2]
    assert own(lambda lake: lake.table(tables[0]).count_rows()) == 1


@pytest.mark.parametrize(("clears", "fails"), [(1, False), (0, False), (1, True)])
def test_writes_of_an_earlier_execution_that_are_not_made_again_are_told(
    own: Try, tables: list[str], caplog: pytest.LogCaptureFixture, clears: int, fails: bool
) -> None:
    own(loop(tables[0], "abc", OF_ITEM["literals"]))
    assert LEFT not in caplog.text

    def shrunk(lake: LanceCatalog) -> None:
        loop(tables[0], "ab", OF_ITEM["literals"])(lake)
        if fails:
            raise AirflowFailException("another reason")

    if fails:
        with pytest.raises(AirflowFailException, match="another reason"):
            own(shrunk, clears=clears)
    else:
        own(shrunk, clears=clears)

    assert files_of(own, tables[0]) == ["a", "b", "c"]
    said = [one for one in caplog.messages if LEFT in one]
    assert len(said) == (0 if fails else 1)
    assert all(f"table {tables[0]}: this task has made 2 writes" in one for one in said)


def test_writes_that_are_all_made_again_are_not_told(
    own: Try, tables: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for clears in (0, 1):
        own(loop(tables[0], "abc", OF_ITEM["literals"]), clears=clears)
    assert LEFT not in caplog.text


def test_tables_read_by_the_task_are_part_of_its_fingerprint(own: Try, tables: list[str]) -> None:
    readings, means = tables
    versions = [
        own(lambda lake: lake.table(readings).append(lake.spark.range(5)).as_dict(), run)
        for run in ("a", "b", "c")
    ]

    def difference(*of: dict[str, Any]) -> Callable[[LanceCatalog], Any]:
        def made(lake: LanceCatalog) -> Any:
            newer, older = (lake.table(one).read() for one in of)
            if_changed = WriteIdentity(on_existing_key="redo_if_changed")
            return lake.table(means).overwrite(newer.exceptAll(older), key=if_changed).as_dict()

        return made

    written = own(difference(versions[1], versions[0]))
    again = own(difference(versions[1], versions[0]), clears=1)
    of_others = ((versions[2], versions[0]), (versions[1], versions[1]))
    others = [own(difference(*of), clears=clears) for clears, of in enumerate(of_others, 2)]

    assert (written["inserted"], written["version"], again["outcome"]) == (5, 1, "skipped")
    assert [(one["inserted"], one["version"]) for one in others] == [(10, 2), (0, 3)]


def test_a_table_that_was_created_again_is_written_again_although_it_has_the_same_version(
    own: Try, tables: list[str]
) -> None:
    readings, means = tables
    if_changed = WriteIdentity(on_existing_key="redo_if_changed")

    def summarized(lake: LanceCatalog) -> Any:
        return lake.table(means).overwrite(lake.table(readings).read(), key=if_changed).as_dict()

    def created_again(lake: LanceCatalog) -> Any:
        lake.drop_table(readings)
        return lake.declare_table(readings).append(lake.spark.range(5, 8)).version

    own(lambda lake: lake.table(readings).append(lake.spark.range(5)), "load")
    assert own(summarized)["inserted"] == 5
    assert own(summarized, clears=1)["outcome"] == "skipped"
    assert own(created_again, "load again") == 1

    assert own(summarized, clears=2)["outcome"] == "done"
    assert own(lambda lake: ids(lake, means)) == [5, 6, 7]


def test_the_asset_of_each_written_table_gets_its_version(
    own: Try, tables: list[str], outlets: list[Any], events: OutletEventAccessors
) -> None:
    def both(lake: LanceCatalog) -> None:
        readings = lake.table(tables[0]).append(lake.spark.range(10))
        lake.table(tables[0]).append(lake.spark.range(3))
        lake.table(tables[1]).append(lake.table(readings).read())

    own(both)

    found = [events[outlet].extra for outlet in outlets]
    assert [(one["table"], one["previous_version"], one["version"], one["inserted"]) for one in found] == [
        (tables[0], None, 2, 13),
        (tables[1], None, 1, 10),
    ]


def test_a_write_after_a_skipped_one_has_an_event(
    spark: SparkSession, tried: Try, tables: list[str], outlets: list[Any], events: OutletEventAccessors
) -> None:
    def load(lake: LanceCatalog, files: str) -> None:
        for file in files:
            key = WriteIdentity(file, on_existing_key="skip")
            lake.table(tables[0]).append(spark.range(2), key=key)

    load(LanceHook.for_connection("lake").catalog(spark=spark), "ab")  # another task
    with tried() as task:
        for files in ("a", "ac", "a"):
            with lance_spark(lance_conn_id="lake") as lake:
                load(lake, files)
            if files == "a" and not events[outlets[0]].extra:
                assert task.outlets == outlets[1:]

    assert task.outlets == outlets
    assert [events[outlets[0]].extra[name] for name in ("previous_version", "version")] == [2, 3]


def test_an_existing_session_is_used_and_not_stopped(own: Try, spark: SparkSession) -> None:
    assert own(lambda lake: lake.spark) is spark
    assert spark.range(3).count() == 3


def test_a_killed_task_ends_its_block_but_not_an_existing_session(
    tried: Try, tables: list[str], spark: SparkSession
) -> None:
    killed = pytest.raises(LanceRetryableError, match="the task was killed")
    with tried() as task, killed, lance_spark(lance_conn_id="lake"):
        task.on_kill()

    assert "on_kill" not in vars(task)
    assert spark.range(3).count() == 3


def test_lakes_of_two_connections_can_be_open_at_once(tried: Try, tables: list[str]) -> None:
    with tried() as task, lance_spark(lance_conn_id="lake") as one:
        outer = task.on_kill
        with lance_spark(lance_conn_id="lake") as other:
            written = other.table(tables[0]).append(one.spark.range(10)).as_dict()
            assert task.on_kill != outer
        assert ids(one, written) == list(range(10))
        assert task.on_kill == outer
        with pytest.raises(TaskKilled):
            task.on_kill()
    assert "on_kill" not in vars(task)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda lake, table: lake.table({"table": table}), "a mapping with 'table' and 'version'"),
        (
            lambda lake, table: lake.table({"table": table, "version": "newest"}),
            "version: expected a whole number of at least 0, got 'newest'",
        ),
        (lambda lake, table: lake.table(table).at(7), "a version of table .* through connection 'lake'"),
        (lambda lake, table: lake.table("nowhere$"), "table='nowhere\\$'"),
        (lambda lake, table: lake.table(table).append([1]), "rows: expected a Spark DataFrame"),
    ],
)
def test_invalid_arguments_fail_the_task_without_retry(
    own: Try, tables: list[str], use: Callable[[LanceCatalog, str], Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        own(lambda lake: use(lake, tables[0]))


def test_a_retry_loses_no_changes_that_were_committed_after_the_failed_try(
    own: Try, tables: list[str]
) -> None:
    source, target = tables
    own(lambda lake: lake.table(source).append(lake.spark.range(2)), "monday")

    def copy(lake: LanceCatalog, fails: bool = False) -> None:
        with lake.table(source).changes(bookmark="copy") as changes:
            lake.table(target).append(changes.read(columns=["id"]).select("id"))
            if fails:
                raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        own(lambda lake: copy(lake, fails=True), "copy 1")
    own(lambda lake: lake.table(source).append(lake.spark.range(2, 5)), "tuesday")
    own(copy, "copy 1")  # the retry
    own(copy, "copy 2")

    assert own(lambda lake: ids(lake, target)) == [0, 1, 2, 3, 4]


def test_a_retry_after_the_bookmark_moved_writes_what_was_committed_since(
    own: Try, tables: list[str]
) -> None:
    source, target = tables
    own(lambda lake: lake.table(source).append(lake.spark.range(2)), "monday")

    def copy(lake: LanceCatalog, fails: bool = False) -> None:
        with lake.table(source).changes(bookmark="copy") as changes:
            lake.table(target).append(changes.read(columns=["id"]).select("id"))
        if fails:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        own(lambda lake: copy(lake, fails=True), "copy 1")
    own(lambda lake: lake.table(source).append(lake.spark.range(2, 5)), "tuesday")
    own(copy, "copy 1")
    own(lambda lake: lake.table(source).append(lake.spark.range(5, 6)), "wednesday")
    own(copy, "copy 1", clears=1)  # a cleared run reads from where the bookmark is now

    assert own(lambda lake: ids(lake, target)) == [0, 1, 2, 3, 4, 5]


def test_a_cleared_task_replaces_what_was_written_before_its_bookmark_moved(
    own: Try, tables: list[str]
) -> None:
    source, target = tables
    own(lambda lake: lake.table(source).append(lake.spark.range(2)), "monday")

    def copy(lake: LanceCatalog, fails: bool = False) -> None:
        with lake.table(source).changes(bookmark="copy") as changes:
            lake.table(target).append(changes.read(columns=["id"]).select("id"))
            if fails:
                raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        own(lambda lake: copy(lake, fails=True), "copy 1")
    own(lambda lake: lake.table(source).append(lake.spark.range(2, 5)), "tuesday")
    own(copy, "copy 1", clears=1)

    assert own(lambda lake: ids(lake, target)) == [0, 1, 2, 3, 4]


def test_days_are_computed_again_since_a_bookmark(own: Try, tables: list[str]) -> None:
    source, target = tables

    def bill(lake: LanceCatalog) -> None:
        # [START bookmark_in_a_task]
        with lake.table(source).changes(bookmark="billing") as changes:
            days = changes.read(columns=["day"]).select("day").distinct()
            orders = changes.table.read().join(days, "day")
            bills = orders.groupBy("day").sum("amount").toDF("day", "total")
            lake.table(target).overwrite(bills, on=["day"])
        # [END bookmark_in_a_task]

    def orders_of(*days: int) -> Callable[[LanceCatalog], Any]:
        return lambda lake: lake.table(source).append(
            lake.spark.createDataFrame([(day, 2.0) for day in days], "day int, amount double")
        )

    own(orders_of(1, 2), "monday")
    own(bill, "bill 1")
    own(bill, "bill 2")  # nothing to do
    own(orders_of(2, 3), "tuesday")
    own(bill, "bill 3")

    totals = own(lambda lake: lake.table(target).to_arrow().to_pylist())
    assert {row["day"]: row["total"] for row in totals} == {1: 2.0, 2: 4.0, 3: 2.0}


def test_a_retry_writes_what_was_committed_after_a_try_that_found_no_changes(
    own: Try, tables: list[str], tmp_path: Path
) -> None:
    source, target = tables
    own(lambda lake: lake.table(source).append(lake.spark.range(2)), "monday")

    def count(lake: LanceCatalog, fails: bool = False) -> None:
        with lake.table(source).changes(bookmark="count") as changes:
            rows = changes.table.count_rows()
            lake.table(target).overwrite(lake.spark.sql(f"SELECT {rows} AS id"))
        if fails:
            raise RuntimeError("killed")

    own(count, "count 1")
    with pytest.raises(RuntimeError, match="killed"):
        own(lambda lake: count(lake, fails=True), "count 2")
    own(lambda lake: lake.table(source).append(lake.spark.range(2, 5)), "tuesday")
    own(count, "count 2")

    assert own(lambda lake: ids(lake, target)) == [5]
    assert not [*tmp_path.rglob("bookmark-ranges/*")]
