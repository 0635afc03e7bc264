"""Links of tasks to pages of the AWS console, and their absence if there is no page."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseOperator
from airflow.sdk.execution_time.xcom import XCom
from airflow.utils.state import TaskInstanceState

from airflow_provider_lancens import links, provider_info
from airflow_provider_lancens.hooks.lance_hook import LanceHook
from airflow_provider_lancens.links import (
    LanceGlueDatabaseLink,
    LanceGlueTableLink,
    LancePageLink,
    LanceS3Link,
    table_page_url,
)
from airflow_provider_lancens.operators.tables import LanceDeclareTableOperator

Connect = Callable[..., str]
TABLE = {"table": "sales$orders", "location": "s3://bucket/lake/sales.db/orders.lance"}
GLUE = "https://eu-west-1.console.aws.amazon.com/glue/home?region=eu-west-1#/v2/data-catalog"


@pytest.fixture
def page(connect: Connect) -> Callable[..., str | None]:
    """The URL for a task's result and a connection with these extras."""

    def ask(link: Any, returned: dict[str, Any], conn_type: str = "lance_glue", **extra: str) -> str | None:
        host = "metastore" if conn_type != "lance_glue" else None
        found: str | None = link.page(
            LanceHook.for_connection(connect(conn_type=conn_type, host=host, extra=extra)), returned
        )
        return found

    return ask


def test_a_glue_table_has_a_console_link(page: Callable[..., Any]) -> None:
    shown = page(LanceGlueTableLink(), TABLE, region="eu-west-1")
    assert shown == f"{GLUE}/tables/view/orders?database=sales"


def test_the_catalog_of_another_account_is_part_of_the_link(page: Callable[..., Any]) -> None:
    shown = page(LanceGlueTableLink(), TABLE, region="eu-west-1", catalog_id="123456789012")
    assert shown == f"{GLUE}/tables/view/orders?database=sales&catalogId=123456789012"


def test_a_glue_database_has_a_console_link(page: Callable[..., Any]) -> None:
    shown = page(LanceGlueDatabaseLink(), {"namespace": "sales"}, region="eu-west-1")
    assert shown == f"{GLUE}/databases/view/sales"


@pytest.mark.parametrize(
    ("returned", "query"),
    [
        ({**TABLE, "version": 7}, "&table=sales%24orders&version=7"),
        ({**TABLE, "version": None}, "&table=sales%24orders"),
        ({"namespace": "sales"}, "&namespace=sales"),
    ],
)
def test_every_table_and_namespace_has_its_lance_page(
    page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, returned: dict[str, Any], query: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://host/airflow/")
    shown = page(LancePageLink(), returned, "lance_hive2")
    assert shown.startswith("https://host/airflow/lance/?conn=")
    assert shown.endswith(query)


def test_names_are_escaped_in_the_link(page: Callable[..., Any]) -> None:
    shown = page(LanceGlueTableLink(), {"table": "a b$c d"}, region="eu-west-1")
    assert shown == f"{GLUE}/tables/view/c%20d?database=a+b"


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("cn-north-1", "cn-north-1.console.amazonaws.cn"),
        ("us-gov-west-1", "us-gov-west-1.console.amazonaws-us-gov.com"),
    ],
)
def test_each_aws_partition_has_its_console(page: Callable[..., Any], region: str, host: str) -> None:
    assert page(LanceGlueTableLink(), TABLE, region=region).startswith(f"https://{host}/glue/home")


def test_data_on_s3_has_a_link_for_hive_tables_too(page: Callable[..., Any]) -> None:
    folder = "prefix=lake%2Fsales.db%2Forders.lance%2F"
    where = "/s3/buckets/bucket"
    assert page(LanceS3Link(), TABLE, "lance_hive2") == f"https://console.aws.amazon.com{where}?{folder}"
    assert (
        page(LanceS3Link(), TABLE, "lance_hive2", **{"storage.region": "eu-west-1"})
        == f"https://eu-west-1.console.aws.amazon.com{where}?region=eu-west-1&{folder}"
    )


@pytest.mark.parametrize(
    ("link", "returned", "conn_type", "extra"),
    [
        (LanceGlueTableLink(), TABLE, "lance_hive2", {}),
        (LanceGlueTableLink(), TABLE, "lance_glue", {}),
        (LanceGlueTableLink(), TABLE, "lance_glue", {"region": "r", "endpoint": "http://localhost:5000"}),
        (LanceGlueTableLink(), {"sales$orders": TABLE}, "lance_glue", {"region": "eu-west-1"}),
        (LanceGlueTableLink(), {"table": "orders"}, "lance", {"root": "/lake"}),
        (LanceGlueDatabaseLink(), {"namespace": "sales"}, "lance_hive3", {}),
        (LanceS3Link(), {**TABLE, "location": "/lake/orders"}, "lance_hive2", {}),
        (LanceS3Link(), {**TABLE, "location": None}, "lance_hive2", {}),
        (LanceS3Link(), TABLE, "lance_hive2", {"storage.endpoint": "http://minio:9000"}),
        (LanceS3Link(), TABLE, "lance_hive2", {"storage.aws_endpoint": "https://amazonaws.com.evil.org"}),
    ],
    ids=[
        "hive",
        "no region",
        "another server",
        "a list",
        "a table in no database",
        "hive database",
        "folder",
        "nowhere",
        "minio",
        "alike",
    ],
)
def test_there_is_no_link_if_nothing_can_be_opened(
    page: Callable[..., Any], link: Any, returned: dict[str, Any], conn_type: str, extra: dict[str, str]
) -> None:
    assert page(link, returned, conn_type, **extra) is None


def test_an_aws_connection_sets_the_region_of_the_links(page: Callable[..., Any], connect: Connect) -> None:
    connect("aws", "aws", login="A", password="hush-hush", extra={"region_name": "eu-west-1"})
    shown = [page(link(), TABLE, aws_conn_id="aws") for link in (LanceGlueTableLink, LanceS3Link)]
    assert shown[0] == f"{GLUE}/tables/view/orders?database=sales"
    assert shown[1].startswith("https://eu-west-1.console.aws.amazon.com/s3/buckets/bucket?")

    local = {"region_name": "eu-west-1", "endpoint_url": "http://localhost:5000"}
    connect("aws", "aws", login="A", password="hush-hush", extra=local)
    assert [page(link(), TABLE, aws_conn_id="aws") for link in (LanceGlueTableLink, LanceS3Link)] == [
        None
    ] * 2


def test_a_task_without_result_has_no_link_and_reads_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(XCom, "get_value", lambda **_: None)
    task = LanceDeclareTableOperator(task_id="task", table="sales$orders", lance_conn_id="nowhere")
    key: Any = None
    assert [link.get_link(task, ti_key=key) for link in task.operator_extra_links] == ["", "", ""]


@pytest.mark.parametrize("state", ["deferred", "failed", "up_for_retry", "up_for_reschedule", "skipped"])
def test_a_task_that_has_not_succeeded_is_not_asked_for_its_result(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(XCom, "get_value", lambda **given: asked.append(given))
    task = LanceDeclareTableOperator(task_id="task", table="sales$orders")
    instance: Any = SimpleNamespace(state=TaskInstanceState(state))

    assert [link.get_link(task, ti_key=instance) for link in task.operator_extra_links] == ["", "", ""]
    assert not asked
    instance.state = TaskInstanceState.SUCCESS
    task.operator_extra_links[0].get_link(task, ti_key=instance)
    assert asked


def test_a_task_whose_link_fails_has_none_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(XCom, "get_value", lambda **_: TABLE)
    task = LanceDeclareTableOperator(task_id="task", table="sales$orders", lance_conn_id="nowhere")
    instance: Any = SimpleNamespace(state=TaskInstanceState.SUCCESS)

    [_page, _glue, on_s3] = task.operator_extra_links
    assert on_s3.get_link(task, ti_key=instance) == ""
    assert "The task has no link 'Data in Amazon S3'" in caplog.text
    assert "nowhere" in caplog.text


def test_a_task_that_pushes_no_result_is_not_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(XCom, "get_value", lambda **_: pytest.fail("it was asked"))
    task = LanceDeclareTableOperator(task_id="task", table="sales$orders", do_xcom_push=False)
    instance: Any = SimpleNamespace(state=TaskInstanceState.SUCCESS)

    assert [link.get_link(task, ti_key=instance) for link in task.operator_extra_links] == ["", "", ""]


@pytest.mark.parametrize(
    ("base_url", "start"),
    [
        ("", ""),
        ("https://airflow.example/team", "https://airflow.example/team"),
        ("http://a:8080/", "http://a:8080"),
    ],
)
def test_a_table_has_a_page_in_airflow(monkeypatch: pytest.MonkeyPatch, base_url: str, start: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)

    page = f"{start}/lance/?conn=a%26b&table=sales%24orders%20of%202013"
    assert table_page_url("a&b", "sales$orders of 2013", 7) == f"{page}&version=7"
    assert table_page_url("a&b", "sales$orders of 2013") == page


def test_every_link_is_in_the_provider_metadata() -> None:
    made = [
        f"{links.__name__}.{name}"
        for name, value in vars(links).items()
        if name.startswith("Lance") and name.endswith("Link") and isinstance(value, type)
    ]
    assert sorted(provider_info.get_provider_info()["extra-links"]) == sorted(made)


def test_every_link_has_its_own_name_and_key() -> None:
    made = (LancePageLink(), LanceGlueTableLink(), LanceGlueDatabaseLink(), LanceS3Link())
    assert len({link.name for link in made}) == len({link.xcom_key for link in made}) == len(made)
    assert not BaseOperator(task_id="other").operator_extra_links
