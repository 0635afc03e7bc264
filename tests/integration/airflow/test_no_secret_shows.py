"""No failure shows a secret, with a connection that has one in every possible field."""

import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from airflow.providers.common.sql.operators.sql import SQLCheckOperator

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.hooks.sql import LanceSqlHook
from airflow_provider_lancens.identifiers import TableId
from airflow_provider_lancens.namespace.table_status import TableStatus
from airflow_provider_lancens.operators import LanceDeclareTableOperator, LanceRegisterTableOperator
from airflow_provider_lancens.spark import NamespaceSpec
from airflow_provider_lancens.spark.keys.key_lookup import find_write
from tests.servers.glue_double import GlueDouble

HUSH = "Hu5h+S3cret"
DEAD = "127.0.0.1:1"
STORAGE = {
    "storage.region": "us-east-1",
    "storage.access_key_id": f"ID-{HUSH}",
    "storage.secret_access_key": HUSH,
    "storage.session_token": f"token-{HUSH}",
    "storage.proxy_url": f"http://proxy:{HUSH}@{DEAD}",
    "storage.allow_http": "true",
}
FAULTS: dict[str, dict[str, Any]] = {
    "storage-unreachable": {"storage.endpoint": f"http://{DEAD}"},
    "endpoint-with-a-password": {"storage.endpoint": f"http://user:{HUSH}@{DEAD}"},
    "endpoint-is-a-password": {"storage.endpoint": HUSH},
    "option-is-a-password": {"storage.timeout": HUSH},
    "flag-is-a-password": {"vend_credentials": HUSH},
    "number-is-a-password": {"client.connect-timeout": HUSH},
    "root-with-a-password": {"root": f"s3://user:{HUSH}/{HUSH}@bucket/lake"},
    "root-is-a-password": {"root": HUSH},
    "unsupported-scheme": {"root": "oss://bucket/lake"},
}
ON_HIVE: dict[str, dict[str, Any]] = {
    **FAULTS,
    "metastore-unreachable": {"host": DEAD},
    "host-with-a-password": {"host": f"thrift://user:{HUSH}@{DEAD}"},
    "no-tls-there": {"client.tls": True},
    "no-sasl-there": {
        "client.auth": "plain",
        "client.plain.without-tls": True,
        "login": "user",
        "password": HUSH,
    },
    "password-without-tls": {"client.auth": "plain", "login": "user", "password": HUSH},
}
ON_GLUE: dict[str, dict[str, Any]] = {
    "storage-unreachable": FAULTS["storage-unreachable"],
    "service-unreachable": {"endpoint": f"http://{DEAD}", "client.max-attempts": 1},
    "service-with-a-password": {"endpoint": f"http://user:{HUSH}@{DEAD}"},
    "key-cut-short": {"login": "", "password": HUSH},
}
ON_A_SERVICE: dict[str, dict[str, Any]] = {
    "service-unreachable": {},
    "uri-with-a-password": {"host": f"http://user:{HUSH}@{DEAD}"},
    "uri-is-a-password": {"host": HUSH},
    "token-with-a-line-end": {"password": f"{HUSH}\n{HUSH}"},
    "properties-are-a-password": {"properties": HUSH},
    "a-property-is-a-list": {"secret_properties": {"headers.x-key": [HUSH]}},
    "a-header-has-a-line-end": {"properties": {"headers.x-key": f"{HUSH}\n"}},
    "class-is-a-password": {"impl": HUSH},
    "timeout-is-a-password": {"client.timeout": HUSH},
}
IN_A_FOLDER = {
    name: FAULTS[name] for name in ("storage-unreachable", "root-with-a-password", "root-is-a-password")
}
FIELDS = ("host", "login", "password")
KINDS: dict[str, dict[str, dict[str, Any]]] = {
    "lance_hive2": ON_HIVE,
    "lance_glue": ON_GLUE,
    "service": ON_A_SERVICE,
    "folder": IN_A_FOLDER,
}
CASES = [(kind, fault) for kind, faults in KINDS.items() for fault in faults]


@pytest.fixture(autouse=True)
def _allowed_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__LANCENS__ALLOWED_STORAGE_OPTIONS", "proxy_url")


@pytest.fixture
def shown(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """All output: messages with all their causes, reprs, and the log at level DEBUG."""
    texts: list[str] = []
    with caplog.at_level(logging.DEBUG, "airflow_provider_lancens"):
        yield texts
    records = [record for record in caplog.records if record.name.startswith("airflow_provider_lancens")]
    texts += [record.getMessage() for record in records]
    assert [text for text in texts if HUSH in text] == []


@pytest.fixture
def lake(
    request: pytest.FixtureRequest, connect: Callable[..., str], metastore: MetastoreServer, glue: GlueDouble
) -> str:
    """The connection of a test case."""
    kind, fault = request.param
    given = KINDS[kind][fault]
    if kind in ("service", "folder"):
        return connect(conn_type="lance", **_of_a_catalog(kind, given))
    if kind == "lance_hive2":
        fields = {"host": metastore.uri}
        extra: dict[str, Any] = {"client.connect-timeout": 2}
    else:
        keys = {"access_key_id": "login", "secret_access_key": "password"}
        fields = {keys[key]: value for key, value in glue.properties.items() if key in keys}
        extra = {key: value for key, value in glue.properties.items() if key not in keys}
    extra |= {"root": "s3://bucket/lake", **STORAGE}
    extra |= {key: value for key, value in given.items() if key not in FIELDS}
    fields |= {key: value for key, value in given.items() if key in FIELDS}
    return connect(conn_type=kind, **fields, extra=extra)


def _of_a_catalog(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {"root": "s3://bucket/lake", "client.timeout": 5, **STORAGE}
    if kind == "service":
        fields = {"host": f"http://{DEAD}", "password": HUSH}
        extra |= {"impl": "rest", "secret_properties": {"headers.x-secret": HUSH}}
    fields |= {key: value for key, value in given.items() if key in FIELDS}
    extra |= {key: value for key, value in given.items() if key not in FIELDS}
    return {**fields, "extra": extra}


def stored_at(location: str) -> TableStatus:
    return TableStatus(TableId.parse("db$t"), location, needs_listing=True)


@pytest.mark.parametrize("lake", CASES, indirect=True, ids="-".join)
def test_no_failure_shows_a_secret(lake: str, shown: list[str]) -> None:
    hook = LanceHook.for_connection(lake)
    for attempt in (
        hook.test_connection,
        lambda: hook.description,
        lambda: hook.table_status("db$t"),
        lambda: LanceDeclareTableOperator(task_id="t", lance_conn_id=lake, table="db$t").execute({}),
        lambda: LanceRegisterTableOperator(
            task_id="t", lance_conn_id=lake, table="db$t", location=f"s3://user:{HUSH}@bucket/t.lance"
        ).execute({}),
        lambda: repr(hook.get_conn()),
        lambda: LanceSqlHook(lake).get_records('SELECT * FROM "db$t"'),
        lambda: SQLCheckOperator(task_id="t", conn_id=lake, sql='SELECT 1 FROM "db$t"').execute({}),
        lambda: hook.read_storage_version(stored_at("s3://bucket/t.lance")),
        lambda: hook.read_storage_version(stored_at(f"s3://user:{HUSH}@bucket/t.lance")),
        lambda: find_write(NamespaceSpec(hook.namespace_impl, hook.namespace_properties()), "db$t", "key"),
    ):
        try:
            answer: Any = attempt()
        except Exception as error:  # noqa: BLE001 whatever it is, a task's log would show it
            shown.append("".join(traceback.format_exception(error)))
        else:
            shown.append(f"{answer!r} {answer}")
    hook.close()
