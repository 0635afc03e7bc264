"""Functions that `@task.lance_spark` refuses when the DAG is parsed."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from airflow_provider_lancens.operators.decorator import lance_spark_task


async def asynchronous(lake: Any) -> None:
    lake.table("orders").delete("TRUE")


async def asynchronous_steps(lake: Any) -> AsyncIterator[int]:
    yield lake.table("orders").version


def steps(lake: Any) -> Iterator[int]:
    yield lake.table("orders").version


@pytest.mark.parametrize("function", [asynchronous, asynchronous_steps, steps])
def test_a_function_that_a_call_does_not_run_is_refused(function: Any) -> None:
    task: Any = lance_spark_task(function)
    with pytest.raises(ValueError, match=f"{function.__name__} is asynchronous or yields"):
        task()
