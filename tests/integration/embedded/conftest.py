"""A server of this process: the run's shared server may belong to another one."""

from collections.abc import Iterator

import pytest

from airflow_provider_lancens.embedded import EmbeddedMetastore


@pytest.fixture(scope="package")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedMetastore]:
    """A server for the tests of this folder that don't disturb it."""
    with EmbeddedMetastore(tmp_path_factory.mktemp("embedded")) as server:
        yield server
