"""Tasks that return the default keys of their writes, mapped in each way that Airflow has."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, get_current_context, task, task_group

from airflow_provider_lancens.operators._spark.idempotency import default_key, execution_id_of


def name() -> dict[str, str]:
    context = get_current_context()
    return {"key": default_key(context), "execution_id": execution_id_of(context)}


with DAG("mapped_keys", schedule=None, params={"items": ["a"]}) as dag:

    @task
    def plain() -> dict[str, str]:
        return name()

    @task
    def items(params: Any = None) -> list[str]:
        return list(params["items"])

    @task
    def keyword_items(params: Any = None) -> list[dict[str, str]]:
        return [{"item": item} for item in params["items"]]

    @task
    def each(item: str) -> str:
        return item

    def of_item(task_id: str) -> Any:
        @task(task_id=task_id)
        def of(item: Any, other: Any = None) -> dict[str, str]:
            return name()

        return of

    @task_group
    def group(item: Any) -> None:
        @task
        def in_group(item: Any) -> dict[str, str]:
            return name()

        in_group(item)

    plain()
    listed = items()
    of_item("expand").expand(item=listed)
    of_item("expand_kwargs").expand_kwargs(keyword_items())
    of_item("product").expand(item=listed, other=[1, 2])
    of_item("chained").expand(item=each.expand(item=listed))
    of_item("changed").expand(item=listed.map(lambda item: {"item": item}))
    of_item("literal").expand(item=["{{ ts }}", "x"])
    group.expand(item=listed)
