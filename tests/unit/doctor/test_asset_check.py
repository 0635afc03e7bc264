"""What the doctor says about the authority of a connection's assets."""

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_lancens.doctor.asset_check import check_assets
from airflow_provider_lancens.hooks.lance_hook import LanceHook

Connect = Callable[..., str]


def found(connect: Connect, **named: Any) -> list[tuple[str, str]]:
    """Return the findings for a connection whose assets have the authority ``lake``."""
    if named:
        connect("lake", **named)
    writer = connect("lake_rw", host="m1,m2", extra={"asset_authority": "lake"})
    return [(finding.level, finding.text) for finding in check_assets(LanceHook(writer))]


def test_a_connection_with_its_own_assets_is_not_mentioned(connect: Connect) -> None:
    assert list(check_assets(LanceHook(connect(host="m1")))) == []


def test_an_authority_may_name_no_connection(connect: Connect) -> None:
    assert found(connect) == [("ok", "they have the authority 'lake', the id of no Lance connection")]


def test_a_connection_to_the_same_metastore_is_fine_by_whichever_server(connect: Connect) -> None:
    assert found(connect, host="m2,m3") == [("ok", "they are those of connection 'lake'")]


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ({"host": "m9"}, "is to another metastore"),
        ({"host": "m1", "conn_type": "lance_hive3"}, "is to another metastore"),
        ({"host": "m1", "extra": {"asset_authority": "prod"}}, "has 'prod': a table has one asset through"),
    ],
)
def test_a_connection_with_other_assets_is_a_warning(
    connect: Connect, named: dict[str, Any], text: str
) -> None:
    [(level, said)] = found(connect, **named)
    assert level == "warning"
    assert text in said
