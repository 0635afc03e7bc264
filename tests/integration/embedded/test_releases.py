"""Every release listens on loopback, and recovers from a crash."""

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded import Distribution, MetastoreServer
from tests.integration.embedded.calls import (
    compare_and_set,
    create_database,
    create_table,
    list_databases,
)
from tests.integration.embedded.processes import listening_addresses
from tests.servers.releases import hms_3, hms_4

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("release", [pytest.param(hms_3, marks=pytest.mark.long), hms_4])
def test_the_server_listens_only_on_loopback_and_keeps_its_data_after_a_crash(
    release: Callable[[], Distribution], tmp_path: Path, database: str
) -> None:
    with MetastoreServer(release(), tmp_path) as server:
        addresses = {address.removeprefix("::ffff:") for address in listening_addresses(server.pid)}
        assert addresses == {"127.0.0.1"}
        create_database(server.uri, database)
        uri = server.uri

        server.kill()
        server.start()

        assert server.uri == uri
        assert database in list_databases(uri)


@pytest.mark.parametrize(("release", "refuses"), [("metastore", True), ("hms3", False), ("hms4", True)])
def test_a_stale_compare_and_set_is_refused_by_releases_that_support_it(
    release: str, refuses: bool, request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    uri = request.getfixturevalue(release).uri
    create_database(uri, database)
    create_table(uri, database, "t", tmp_path / "t", version="1")

    assert compare_and_set(uri, database, "t", "version", expected="1", value="2")
    assert compare_and_set(uri, database, "t", "version", expected="1", value="3") is not refuses
