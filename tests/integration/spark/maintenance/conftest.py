"""Tables to maintain: a storage-managed one, and a managed one on each kind of metastore."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.execution_time.context import OutletEventAccessors

from tests.support.maintained_tables import Maintained, Meanwhile, Run, hive, on_glue, stored, table

__all__ = ["hive", "on_glue", "stored", "table"]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Call a function after a module's executors have finished, and before its driver commits."""

    def arrange(module: ModuleType, action: Callable[[], object]) -> None:
        genuine = module.run_in_parallel

        def with_interruption(*arguments: Any) -> list[Any]:
            answers: list[Any] = genuine(*arguments)
            monkeypatch.undo()
            action()
            return answers

        monkeypatch.setattr(module, "run_in_parallel", with_interruption)

    return arrange


@pytest.fixture
def run(hive: Maintained, connect: Callable[..., str]) -> Run:
    """Run an operator on the table as a worker does; return its XCom and its asset event's extra."""
    lake = connect(host=hive.spec.properties["uri"], extra={"root": hive.spec.properties["root"]})
    asset = Asset(uri=f"lance://{lake}/{hive.id.replace('$', '/')}")

    def run(operator: type[Any], **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        events = OutletEventAccessors()
        task = operator(
            **{
                "task_id": "maintain",
                "table": hive.id,
                "lance_conn_id": lake,
                "outlets": [asset],
                **arguments,
            }
        )
        return task.execute({"outlet_events": events}), dict(events[asset].extra)

    return run
