"""Each release with PostgreSQL as its database."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded import Distribution, MetastoreServer
from tests.integration.embedded.calls import create_database, list_databases
from tests.servers.postgresql import metastore_settings, postgresql
from tests.servers.releases import hms_2_with_postgresql, hms_3, hms_4

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with postgresql() as port:
        yield port


@pytest.mark.parametrize("release", [hms_2_with_postgresql, hms_3, hms_4])
def test_catalog_tables_are_stored_in_postgresql(
    release: Callable[[], Distribution], port: int, tmp_path: Path, database: str
) -> None:
    settings = metastore_settings(port, database)
    with MetastoreServer(release(), tmp_path / "first", settings=settings) as first:
        create_database(first.uri, database)
    with MetastoreServer(release(), tmp_path / "second", settings=settings) as second:
        assert database in list_databases(second.uri)
    assert not (tmp_path / "first" / "metastore_db").exists()
