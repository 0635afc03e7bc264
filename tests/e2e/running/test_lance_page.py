"""The Lance page in a browser: inside Airflow's UI and alone, by pointer and keyboard."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import lance
import pyarrow as pa
import pytest

from airflow_provider_lancens.namespace import CatalogNamespace
from airflow_provider_lancens.spark.maintenance.clean_up import clean_up_versions
from tests.e2e.servers import RunningAirflow
from tests.integration.airflow.tables import Table
from tests.support.bookmarks import move_bookmark
from tests.support.running_lake import Lake, needs_chromium

INGESTION, WAIT = "ingested", "many"
ATTACK = '<img src=x onerror="attacked=1"><script>attacked=1</script>'

pytestmark = [pytest.mark.thorough, needs_chromium]


@pytest.fixture
def page(ui: str, browser: Any) -> Iterator[Any]:
    """A page of a new browser, whose errors fail the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{ui}/auth/token/login")
    yield page
    context.close()
    assert errors == []


@pytest.fixture(scope="module")
def ingested(airflow: RunningAirflow, lake: Lake) -> tuple[Table, str]:
    """A table with five versions, the first of which a DAG run made."""
    table = lake.table("shown")
    table.declare()
    run_id = airflow.trigger_run(INGESTION, table=str(table), lance_on_existing_key="skip")
    assert airflow.until(lambda: airflow.ended(INGESTION, run_id)) == "success"
    for _ in range(4):
        rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
        lance.write_dataset(rows, namespace_client=lake.namespace, table_id=table.id, mode="append")
    return table, run_id


def address(ui: str, **parameters: str) -> str:
    return f"{ui}/lance/?{urlencode(parameters)}"


def test_a_table_without_new_data_is_marked(ui: str, page: Any, lake: Lake) -> None:
    table = lake.table("late")
    table.declare(**{"lancens.expected_update_interval": "PT1S"})
    table.advance()
    page.goto(address(ui, conn="lake", table=str(table)))
    mark, facts = page.get_by_text("no new data"), page.locator("dl.facts")
    facts.wait_for()
    while not mark.count():  # within a second of the commit
        page.reload()
        facts.wait_for()

    assert "expected every 1 second" in mark.get_attribute("title")
    assert "NEW DATA" in facts.inner_text().upper()


def test_a_table_is_found_from_airflows_navigation(ui: str, page: Any, ingested: tuple[Table, str]) -> None:
    table = ingested[0]
    page.goto(f"{ui}/plugin/lance")
    frame = page.frame_locator("iframe")
    for name in ("lake", table.database, table.name):
        frame.get_by_role("link", name=name, exact=True).click()

    versions = frame.get_by_role("region", name="Versions, newest first")
    rows = versions.get_by_role("row")
    rows.nth(5).wait_for()
    assert "+3" in rows.nth(1).inner_text()
    assert "ingest" in rows.nth(5).inner_text()

    rows.nth(5).get_by_role("link").click()  # leaves the frame
    page.wait_for_url(f"{ui}/dags/{INGESTION}/runs/*/tasks/ingest**")


def test_a_folder_shows_its_databases_and_the_tables_outside_of_them(ui: str, page: Any, lake: Lake) -> None:
    with closing(CatalogNamespace(root=str(lake.folder))) as folder:
        folder.create_namespace({"id": ["sales"]})
        for table in (["loose"], ["sales", "orders"]):
            folder.declare_table({"id": table})
            rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
            lance.write_dataset(rows, namespace_client=folder, table_id=table, mode="append")

    page.goto(address(ui, conn="folder"))
    page.get_by_role("link", name="sales", exact=True).wait_for()
    page.get_by_role("link", name="loose", exact=True).click()
    rows = page.get_by_role("region", name="Versions, newest first").get_by_role("row")
    rows.nth(1).wait_for()
    assert "3" in rows.nth(1).inner_text()

    page.goto(address(ui, conn="folder", namespace="sales"))
    page.get_by_role("link", name="orders", exact=True).wait_for()


def test_a_run_and_its_task_have_a_tab_with_their_tables(
    ui: str, page: Any, airflow: RunningAirflow, ingested: tuple[Table, str]
) -> None:
    table, run_id = ingested

    def shown(of: str) -> str:
        tab = "lance-task" if of else "lance-run"
        page.goto(f"{ui}/dags/{INGESTION}/runs/{run_id}{of}/plugin/{tab}")
        row = page.frame_locator("iframe").get_by_role("row").filter(has_text=str(table))
        row.wait_for()
        return str(row.inner_text())

    for of in ("", "/tasks/ingest"):
        assert "1 made" in shown(of)

    airflow.clear(INGESTION, run_id, "ingest")
    assert airflow.until(lambda: airflow.ended(INGESTION, run_id)) == "success"
    for of in ("", "/tasks/ingest"):
        assert "1 nothing written" in shown(of)


def test_a_waiting_task_is_shown_with_what_it_waits_for(
    ui: str, page: Any, airflow: RunningAirflow, lake: Lake
) -> None:
    table = lake.table("awaited_on_page")
    table.declare()
    run_id = airflow.trigger_run(WAIT, tables=[str(table)])
    query = "select count(*) from task_instance where run_id = ? and state = 'deferred'"
    airflow.until(lambda: airflow.rows(query, run_id) == [(1,)])

    page.goto(address(ui, conn="counted", table=str(table)))
    page.get_by_role("tab", name="Waiting").click()
    row = page.get_by_role("row").filter(has_text=run_id)
    row.wait_for()
    assert "Any version" in row.inner_text()
    table.advance()
    assert airflow.until(lambda: airflow.ended(WAIT, run_id)) == "success"


def test_a_table_that_does_not_exist_is_shown_with_the_task_that_waits_for_it(
    ui: str, page: Any, airflow: RunningAirflow, lake: Lake
) -> None:
    table = lake.table("misspelt_on_page")
    run_id = airflow.trigger_run(WAIT, tables=[str(table)])
    query = "select count(*) from task_instance where run_id = ? and state = 'deferred'"
    airflow.until(lambda: airflow.rows(query, run_id) == [(1,)])

    page.goto(address(ui, conn="counted"))
    page.get_by_role("row").filter(has_text=run_id).get_by_role("link", name=str(table)).click()
    page.get_by_role("alert").filter(has_text="misspelt_on_page").wait_for()
    page.get_by_role("row").filter(has_text=run_id).wait_for()

    table.declare()
    table.advance()
    assert airflow.until(lambda: airflow.ended(WAIT, run_id)) == "success"


@pytest.mark.long
def test_the_chart_and_the_tabs_are_used_by_keyboard(ui: str, page: Any, ingested: tuple[Table, str]) -> None:
    page.goto(address(ui, conn="lake", table=str(ingested[0])))
    chart = page.get_by_role("slider", name="Versions")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    assert chart.get_attribute("aria-valuenow") == "4"
    assert chart.get_attribute("aria-valuetext").startswith("Version 4: 19 rows (+3), Append")
    page.keyboard.press("Enter")
    assert page.locator("tr.selected").inner_text().split()[0] == "4"

    page.get_by_role("tab", name="Versions").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Waiting").get_attribute("aria-selected") == "true"
    page.get_by_text("No task waits for this table.").wait_for()


def test_bookmarks_are_shown_with_their_expiry_also_those_that_have_expired(
    ui: str, page: Any, lake: Lake
) -> None:
    table = lake.table("bookmarked")
    table.declare()
    for _ in range(3):
        table.advance()
    move_bookmark(lake.namespace, str(table), "gone", 1, expires_after=timedelta(milliseconds=1))
    until = time.monotonic() + 30
    while not clean_up_versions(lake.namespace, str(table), older_than=timedelta(0)).expired_bookmarks:
        assert time.monotonic() < until
    table.advance()
    move_bookmark(lake.namespace, str(table), "late", 3, expires_after=timedelta(milliseconds=1))
    table.advance()
    move_bookmark(lake.namespace, str(table), "timely", 4, expires_after=timedelta(days=9))
    time.sleep(0.1)

    page.goto(address(ui, conn="lake", table=str(table)))

    expired = page.locator("p.expired .chip")
    expired.wait_for()
    assert expired.inner_text() == "gone (was at version 1)"
    assert (
        page.get_by_text("late (overdue)").get_attribute("title").startswith("This bookmark was to be moved")
    )
    assert "unless it is moved, it expires at" in page.get_by_text("timely").get_attribute("title")


@pytest.mark.parametrize(
    ("width", "theme"), [(380, "light"), pytest.param(1600, "dark", marks=pytest.mark.long)]
)
def test_the_page_follows_the_color_mode_and_fits_the_window(
    ui: str, page: Any, ingested: tuple[Table, str], theme: str, width: int
) -> None:
    page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(address(ui, conn="lake", table=str(ingested[0])))
    page.get_by_role("slider", name="Versions").wait_for()

    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (theme == "light")


def test_markup_in_a_tables_names_and_values_is_shown_as_text(ui: str, page: Any, lake: Lake) -> None:
    table = lake.table("hostile")
    table.declare()
    rows = pa.table({ATTACK: [ATTACK], "id": [1]})
    lance.write_dataset(rows, namespace_client=lake.namespace, table_id=table.id, mode="append")
    data = lance.dataset(namespace_client=lake.namespace, table_id=table.id)
    data.tags.create("release", 1)

    page.goto(address(ui, conn="lake", table=str(table)))
    for tab in ("Schema", "Rows", "Health"):
        page.get_by_role("tab", name=tab).click()
        shown = "consistent" if tab == "Health" else "<img src=x"
        page.get_by_role("tabpanel").filter(has_text=shown).wait_for()
    page.goto(address(ui, conn=ATTACK, table=ATTACK))
    page.get_by_role("alert").wait_for()

    assert page.evaluate("window.attacked") is None
    assert page.locator("main img, main script").count() == 0


# Each change asks the routes without a login, in test_lance_page_access.
@pytest.mark.long
def test_a_page_outside_a_login_says_so_and_links_to_it(
    ui: str, browser: Any, airflow: RunningAirflow
) -> None:
    with airflow.another_api_server(AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS="False") as url:
        page = browser.new_page()
        page.goto(f"{url}/lance/")
        page.get_by_role("alert").wait_for()
        assert "not logged in" in page.get_by_role("alert").inner_text()
        page.get_by_role("link", name="Log in").click()
        page.wait_for_url(f"{url}/auth/login**")
        page.close()
