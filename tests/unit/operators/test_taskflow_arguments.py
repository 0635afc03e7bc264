"""Arguments of a table's methods in TaskFlow tasks."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.operators.taskflow import BlockExecution, lance_spark
from airflow_provider_lancens.spark.lance_catalog import LanceCatalog

NOTHING = cast("Any", None)
LAKE = LanceCatalog(NOTHING, execution=BlockExecution(NOTHING, NOTHING))
"""Without Spark and a connection: what is refused, is refused before anything is done."""
TABLE = LAKE.table("db.t")
ROWS: Any = None


@pytest.mark.parametrize("value", [None, "", "None"])
@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("version", TABLE.at),
        ("version", TABLE.restore),
        ("filter", lambda value: TABLE.read(filter=value)),
        ("filter", lambda value: TABLE.count_rows(filter=value)),
        ("where", lambda value: TABLE.overwrite(ROWS, where=value)),
        ("where", TABLE.delete),
        ("on", lambda value: TABLE.overwrite(ROWS, on=value)),
        ("delete_when", lambda value: TABLE.upsert(ROWS, ["id"], delete_when=value)),
        ("key", lambda value: TABLE.append(ROWS, key=value)),
    ],
)
def test_what_a_task_that_was_marked_as_success_has_returned_is_refused(
    argument: str, call: Callable[[Any], Any], value: Any
) -> None:
    with pytest.raises(AirflowFailException, match=rf"^{argument}={value!r}: it is passed, but empty"):
        call(value)


@pytest.mark.parametrize("value", ["True", "False", " True "])
@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("filter", lambda value: TABLE.read(filter=value)),
        ("where", lambda value: TABLE.overwrite(ROWS, where=value)),
        ("where", TABLE.delete),
        ("delete_when", lambda value: TABLE.upsert(ROWS, ["id"], delete_when=value)),
    ],
)
def test_a_check_that_a_template_has_rendered_as_text_is_no_condition(
    argument: str, call: Callable[[Any], Any], value: str
) -> None:
    refused = rf"^{argument}='{value.strip()}': is the text of a Python boolean"
    with pytest.raises(AirflowFailException, match=refused):
        call(value)


def test_a_flag_that_is_neither_true_nor_false_is_refused() -> None:
    refused = pytest.raises(AirflowFailException, match=r"^hive_tables: expected True or False, got 'false'")
    with refused, lance_spark(hive_tables=cast("Any", "false")):
        pass
