"""Links to the pages of a table: buttons of tasks that open the AWS console, and its page in Airflow's UI.

The worker creates a task's links when the task has succeeded, from its return value and the connection
already read, without network access. If there is no such page, such as for a Hive Metastore, there is no
button.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from airflow.sdk import BaseOperatorLink

from airflow_provider_lancens.identifiers import TableId

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

    from airflow_provider_lancens.hooks.lance_hook import LanceHook

_log = logging.getLogger(__name__)
_GLUE = "lance_glue"
_RETURNED = "return_value"
_SUCCESS = "success"
_NO_PAGE = ""
_DOMAINS = {"cn-": "amazonaws.cn", "us-gov-": "amazonaws-us-gov.com"}
_DOMAIN = "aws.amazon.com"


def table_page_url(conn_id: str, table: str, version: int | None = None) -> str:
    """Return the URL of a table's page in Airflow's UI; only its path if ``api.base_url`` isn't set.

    Args:
        conn_id: the connection through which the page reads the table.
        table: its identifier, ``database$table``.
        version: the version to show; None is the newest one.
    """
    return _page_url({"conn": conn_id, "table": table, "version": version})


def _page_url(params: Mapping[str, str | int | None]) -> str:
    from airflow.configuration import conf

    given = {name: str(value) for name, value in params.items() if value is not None}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())
    return f"{(conf.get('api', 'base_url', fallback='') or '').rstrip('/')}/lance/?{query}"


@dataclass(frozen=True, slots=True)
class Console:
    """The AWS console of a region; by default the region that its user opened last."""

    region: str | None

    @classmethod
    def of(cls, service: Mapping[str, str]) -> Console | None:
        """Return the console of a service; None if the service isn't AWS's own.

        Args:
            service: the connection's ``region`` and ``endpoint`` of the service, if specified.
        """
        host = urlsplit(service.get("endpoint", "")).hostname or ""
        if service.get("endpoint") and not f"{host}.".endswith((".amazonaws.com.", ".amazonaws.com.cn.")):
            return None
        return cls(service.get("region"))

    def page(self, path: str, fragment: str = "", **query: str | None) -> str:
        """Return the URL of one of its pages."""
        domain = next(
            (_DOMAINS[start] for start in _DOMAINS if (self.region or "").startswith(start)), _DOMAIN
        )
        host = f"{self.region}.console.{domain}" if self.region else f"console.{domain}"
        given = urlencode({key: value for key, value in {"region": self.region, **query}.items() if value})
        return f"https://{host}{path}" + (f"?{given}" if given else "") + fragment


class _LanceLink(BaseOperatorLink):
    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the page's URL, empty if there is none. Called only by a worker, at the end of a task."""
        # Airflow logs an error for an XCom that doesn't exist, and also asks when a task is deferred or has
        # failed; a worker passes the task instance itself, with its state.
        if not operator.do_xcom_push or getattr(ti_key, "state", _SUCCESS) != _SUCCESS:
            return _NO_PAGE
        try:
            return self._page_of(operator, ti_key) or _NO_PAGE
        except Exception:  # noqa: BLE001 - Airflow 3.1.0 to 3.1.3 would fail the task, whose work is done
            _log.warning("The task has no link %r:", self.name, exc_info=True)
            return _NO_PAGE

    def _page_of(self, operator: BaseOperator, ti_key: TaskInstanceKey) -> str | None:
        from airflow.sdk.execution_time.xcom import XCom

        returned = XCom.get_value(ti_key=ti_key, key=_RETURNED)
        if not isinstance(returned, Mapping):
            return None
        hook: LanceHook = getattr(operator, "hook")  # noqa: B009 - Airflow's type has none
        return self.page(hook, returned)

    @abstractmethod
    def page(self, hook: LanceHook, returned: Mapping[str, Any]) -> str | None:
        """Return the URL of the page for a task's return value, or None."""


class LancePageLink(_LanceLink):
    """The page of the table, or of the namespace, in Airflow's UI."""

    name = "Lance page"

    def page(self, hook: LanceHook, returned: Mapping[str, Any]) -> str | None:
        """Return the page of the returned ``table`` at its ``version``, or of the ``namespace``."""
        table, version = returned.get("table"), returned.get("version")
        if isinstance(table, str):
            return table_page_url(hook.lance_conn_id, table, version if isinstance(version, int) else None)
        if isinstance(returned.get("namespace"), str):
            return _page_url({"conn": hook.lance_conn_id, "namespace": returned["namespace"]})
        return None


class LanceGlueTableLink(_LanceLink):
    """The table's page in AWS Glue, for a connection of type ``lance_glue`` whose region is known."""

    name = "Table in AWS Glue"

    def page(self, hook: LanceHook, returned: Mapping[str, Any]) -> str | None:
        """Return the page of the returned ``table``; None for a list of tables."""
        if not isinstance(returned.get("table"), str):
            return None
        table = TableId.parse(returned["table"])
        return _in_glue(hook, f"tables/view/{quote(table.name, safe='')}", database=str(table.namespace))


class LanceGlueDatabaseLink(_LanceLink):
    """The database's page in AWS Glue, for a connection of type ``lance_glue`` whose region is known."""

    name = "Database in AWS Glue"

    def page(self, hook: LanceHook, returned: Mapping[str, Any]) -> str | None:
        """Return the page of the returned ``namespace``."""
        return _in_glue(hook, f"databases/view/{quote(returned['namespace'], safe='')}")


class LanceS3Link(_LanceLink):
    """The folder of a table's data, if it is on Amazon S3."""

    name = "Data in Amazon S3"

    def page(self, hook: LanceHook, returned: Mapping[str, Any]) -> str | None:
        """Return the page of the returned ``location``; None for a list of tables or another storage."""
        from airflow_provider_lancens.redaction import has_credentials  # imported only by workers

        # A location written by another client may contain credentials, which a link would show.
        address = returned.get("location") or ""
        location = urlsplit("" if has_credentials(address) else address)
        console = Console.of(hook.s3_properties())
        if location.scheme not in ("s3", "s3a") or console is None:
            return None
        return console.page(f"/s3/buckets/{location.netloc}", prefix=location.path.strip("/") + "/")


def _in_glue(hook: LanceHook, page: str, **query: str) -> str | None:
    if hook.conn_type != _GLUE:
        return None
    glue = hook.endpoint_properties()
    console = Console.of(glue)
    if console is None or console.region is None:  # a Glue catalog belongs to a region
        return None
    catalog = {"catalogId": glue["catalog_id"]} if "catalog_id" in glue else {}
    encoded = urlencode({**query, **catalog})
    return console.page("/glue/home", f"#/v2/data-catalog/{page}" + (f"?{encoded}" if encoded else ""))
