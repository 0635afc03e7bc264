"""The authority of a connection's assets."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.hooks.airflow_errors import AirflowFailException
from airflow_provider_lancens.hooks.lance_hook import LanceHook

Connect = Callable[..., str]


@pytest.mark.parametrize("extra", [{}, {"asset_authority": ""}, {"asset_authority": None}])
def test_it_is_the_connections_id_by_default(connect: Connect, extra: dict[str, Any]) -> None:
    assert LanceHook(connect(host="metastore", extra=extra)).asset_authority == "lake"


@pytest.mark.parametrize(
    ("conn_type", "fields"),
    [("lance_hive2", {"host": "m"}), ("lance_hive3", {"host": "m"}), ("lance_glue", {})],
)
def test_a_connection_of_any_type_can_name_another_one(
    connect: Connect, conn_type: str, fields: dict[str, Any]
) -> None:
    lake = connect("lake_rw", conn_type=conn_type, extra={"asset_authority": "lake"}, **fields)
    hook = LanceHook(lake)

    assert hook.asset_authority == "lake"
    assert "asset_authority" not in hook.namespace_properties()


@pytest.mark.parametrize("value", ["a/b", "me@lake", "a b", "{{x}}", "a" * 251, 7])
def test_an_invalid_one_is_refused_by_the_name_of_its_field_before_anything_is_done(
    connect: Connect, value: object
) -> None:
    hook = LanceHook(connect(host="metastore", extra={"asset_authority": value}))
    refusal = (
        r"connection 'lake', field Asset authority \(extra 'asset_authority'\): is .*; expected 1 to 250 "
    )
    with pytest.raises(AirflowFailException, match=refusal):
        hook.get_conn()
    assert not hook.test_connection()[0]
