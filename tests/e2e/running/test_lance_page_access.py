"""Who may read what on the Lance page: a second API server, whose users have passwords and fewer rights."""

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from tests.e2e.running.auth_manager import USERS, VIEWER, WITHOUT_ASSETS, WITHOUT_DAGS
from tests.e2e.servers import RunningAirflow
from tests.integration.airflow.tables import Table
from tests.support.running_lake import TREE, Lake

PASSWORD = "hush-hush"
DAG, WAIT = "ingested", "many"
ROUTES = ("connections", "namespaces", "tables", "table", "versions", "waits", "check", "sample", "run")

pytestmark = pytest.mark.thorough
_open = build_opener(ProxyHandler({})).open


class Server:
    """An API server and its users."""

    def __init__(self, url: str) -> None:
        self.url = url

    def answer(self, path: str, token: str = "", **parameters: str) -> tuple[int, dict[str, Any]]:
        """The status and the JSON of a response."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = Request(f"{self.url}/lance/api/{path}?{urlencode(parameters)}", headers=headers)
        try:
            with _open(request, timeout=60) as response:
                return response.status, json.load(response)
        except HTTPError as error:
            return error.code, json.load(error)

    def token(self, user: str) -> str:
        """A user's token."""
        body = json.dumps({"username": user, "password": PASSWORD}).encode()
        asked = Request(f"{self.url}/auth/token", body, {"Content-Type": "application/json"}, method="POST")
        with _open(asked, timeout=30) as response:
            return str(json.load(response)["access_token"])


@pytest.fixture(scope="module")
def server(airflow: RunningAirflow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    passwords = tmp_path_factory.mktemp("users") / "passwords.json"
    passwords.write_text(json.dumps(dict.fromkeys(USERS, PASSWORD)))
    settings = {
        "AIRFLOW__CORE__AUTH_MANAGER": "tests.e2e.running.auth_manager.RestrictingAuthManager",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(map(":".join, USERS.items())),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__LANCENS__SHOW_SAMPLE_ROWS": "False",
        "PYTHONPATH": os.pathsep.join([str(TREE), os.environ.get("PYTHONPATH", "")]),
    }
    with airflow.another_api_server(**settings) as url:
        yield Server(url)


@pytest.fixture(scope="module")
def ingested(airflow: RunningAirflow, lake: Lake) -> tuple[Table, str]:
    """A table with one version, which a DAG run made."""
    table = lake.table("restricted")
    table.declare()
    run_id = airflow.trigger_run(DAG, table=str(table))
    assert airflow.until(lambda: airflow.ended(DAG, run_id)) == "success"
    return table, run_id


@pytest.mark.parametrize("route", ROUTES)
def test_nobody_reads_anything_without_a_login(server: Server, route: str) -> None:
    status, answer = server.answer(route, conn="lake", namespace="x", table="x$y", dag_id="x", run_id="x")
    assert (status, list(answer)) == (401, ["detail"])


@pytest.mark.parametrize("route", ROUTES)
def test_who_may_not_read_assets_reads_nothing(server: Server, route: str) -> None:
    token = server.token(WITHOUT_ASSETS)
    given = {"conn": "lake", "namespace": "x", "table": "x$y", "dag_id": "x", "run_id": "x"}
    status, answer = server.answer(route, token, **given)
    assert status == 403
    assert "permission to read assets" in answer["detail"]


def test_a_viewer_sees_which_run_made_a_version(server: Server, ingested: tuple[Table, str]) -> None:
    table, run_id = ingested
    token = server.token(VIEWER)

    _, answer = server.answer("versions", token, conn="lake", table=str(table))
    _, run = server.answer("run", token, dag_id=DAG, run_id=run_id)

    (entry,) = answer["versions"]
    assert entry["task"] == {"dag_id": DAG, "run_id": run_id, "task_id": "ingest", "map_index": -1}
    assert entry["key"].startswith(f"{DAG}/ingest/")
    assert run["tables"] == [
        {"conn": "lake", "table": str(table), "task_id": "ingest", "version": 1, "what": "made"}
    ]


def test_who_may_not_read_the_dag_sees_the_version_alone(server: Server, ingested: tuple[Table, str]) -> None:
    table, run_id = ingested
    token = server.token(WITHOUT_DAGS)

    _, answer = server.answer("versions", token, conn="lake", table=str(table))
    _, tables = server.answer("tables", token, conn="lake", namespace=table.database)
    status, _ = server.answer("run", token, dag_id=DAG, run_id=run_id)

    (entry,) = answer["versions"]
    assert (entry["version"], entry["rows"], entry["task"], entry["key"]) == (1, 10, None, "")
    assert run_id not in json.dumps([answer, tables])
    assert status == 403


def test_waits_of_a_dag_that_one_may_not_read_are_only_counted(
    airflow: RunningAirflow, server: Server, lake: Lake
) -> None:
    table = lake.table("awaited_by_a_hidden_dag")
    table.declare()
    run_id = airflow.trigger_run(WAIT, tables=[str(table)])
    query = "select count(*) from task_instance where run_id = ? and state = 'deferred'"
    airflow.until(lambda: airflow.rows(query, run_id) == [(1,)])

    _, seen = server.answer("waits", server.token(VIEWER), conn="counted", table=str(table))
    _, hidden = server.answer("waits", server.token(WITHOUT_DAGS), conn="counted", table=str(table))

    assert [(wait["run_id"], wait["for"]) for wait in seen["waits"]] == [(run_id, "any version")]
    assert (hidden["waits"], hidden["hidden"]) == ([], 1)
    table.advance()
    assert airflow.until(lambda: airflow.ended(WAIT, run_id)) == "success"


def test_rows_are_shown_only_if_an_administrator_allows_it(
    server: Server, ingested: tuple[Table, str]
) -> None:
    status, answer = server.answer("sample", server.token(VIEWER), conn="lake", table=str(ingested[0]))
    assert status == 403
    assert "show_sample_rows" in answer["detail"]


def test_a_connection_of_another_type_is_like_one_that_does_not_exist(server: Server) -> None:
    status, answer = server.answer("namespaces", server.token(VIEWER), conn="secret")
    assert (status, answer) == (404, {"detail": "There is no Lance connection with the id 'secret'."})


def test_nothing_can_be_written(server: Server) -> None:
    token = server.token(VIEWER)
    for route in ROUTES:
        request = Request(
            f"{server.url}/lance/api/{route}", b"{}", {"Authorization": f"Bearer {token}"}, method="POST"
        )
        with pytest.raises(HTTPError) as refused:
            _open(request, timeout=30)
        assert refused.value.code == 405
