"""A server's filter of tables that fails or doesn't answer is not asked at each list."""

from collections.abc import Callable
from typing import Any

import pytest
from lance_namespace.errors import InternalError, LanceNamespaceError

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace.hive.metastore import HiveMetastore
from airflow_provider_lancens.namespace.hive.pool import LostReplyError
from airflow_provider_lancens.namespace.hive.settings import ClientSettings, hive_properties

DATABASE = NamespaceId.of(["db"])


@pytest.fixture
def metastore(monkeypatch: pytest.MonkeyPatch) -> HiveMetastore:
    monkeypatch.setattr(HiveMetastore, "_list_lance_by_reading", lambda *_: ["t"])
    return HiveMetastore(ClientSettings.parse(hive_properties({"uri": "thrift://localhost:1"})))


def failing(error: LanceNamespaceError, calls: list[str]) -> Callable[..., Any]:
    def call(*_: Any) -> Any:
        calls.append("filter")
        raise error

    return call


@pytest.mark.parametrize("error", [InternalError("slow"), LostReplyError("timed out", timed_out=True)])
def test_a_filter_that_fails_is_left_out_and_the_property_named(
    metastore: HiveMetastore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: LanceNamespaceError,
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(HiveMetastore, "_list_by_filter", failing(error, calls))

    assert [metastore.list_lance_tables(DATABASE) for _ in range(3)] == [["t"]] * 3
    assert calls == ["filter"]
    assert caplog.text.count("client.table-filter=false") == 1


def test_a_broken_connection_is_not_taken_for_a_failing_filter(
    metastore: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(HiveMetastore, "_list_by_filter", failing(LostReplyError("broken"), calls))

    for _ in range(2):
        with pytest.raises(LostReplyError):
            metastore.list_lance_tables(DATABASE)
    assert len(calls) == 2
