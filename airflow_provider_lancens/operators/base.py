"""What the operators on a Lance namespace share: the connection, found by its type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_lancens.assets.events import note_version
from airflow_provider_lancens.assets.table import LanceTable
from airflow_provider_lancens.hooks.base import LanceHook
from airflow_provider_lancens.hooks.errors import airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_lancens.namespace.base import MetastoreNamespace

IfExists = Literal["skip", "fail"]
IfMissing = Literal["skip", "fail"]
SKIP = "skip"
SKIP_OR_FAIL = ("skip", "fail")

DEFAULT_CONNECTION = "lance_hive2_default"


class LanceOperator(BaseOperator):
    """A task on a Lance namespace, whose XCom is a small dictionary of plain values.

    Each of its keys is pushed as an XCom of its own too: ``declare.output["location"]``.

    Args:
        lance_conn_id: a connection of any of this provider's types. Templated.
    """

    template_fields: Sequence[str] = ("lance_conn_id",)

    def __init__(self, *, lance_conn_id: str = DEFAULT_CONNECTION, **kwargs: Any) -> None:
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(**kwargs)
        self.lance_conn_id = lance_conn_id

    @cached_property
    def hook(self) -> LanceHook:
        """The hook that the connection's type asks for."""
        return LanceHook.for_connection(self.lance_conn_id)

    @contextmanager
    def connected(self, attempt: str) -> Iterator[MetastoreNamespace]:
        """The namespace for one attempt; its errors become Airflow's, and what it opened is closed.

        Args:
            attempt: what is tried on what, as an error's message begins: ``creating namespace 'sales'``.
        """
        attempt = f"{attempt} through connection {self.lance_conn_id!r}"
        with airflow_errors(attempt), closing(self.hook) as hook:
            yield hook.get_conn()

    def note_version(self, context: Context, table: str, version: int, previous_version: int | None) -> None:
        """Let the updates of the task's outlets carry the version that a table is at now.

        Args:
            context: the task's.
            table: which table was changed, by its identifier.
            version: the version that it is at.
            previous_version: the one before, None where there was none.
        """
        changed = LanceTable.of(self.lance_conn_id, table)
        note_version(context, self.outlets, changed, version, previous_version)
