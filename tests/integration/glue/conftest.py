"""Namespaces on the strict double."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_provider_lancens.identifiers import NamespaceId
from airflow_provider_lancens.namespace import GlueNamespace
from airflow_provider_lancens.namespace.glue.metastore import GlueMetastore
from airflow_provider_lancens.namespace.glue.settings import GlueSettings, glue_properties
from airflow_provider_lancens.namespace.metastore_protocol import CatalogTable, Namespace
from tests.servers.glue_double import GlueDouble


@pytest.fixture
def connect_glue(glue: GlueDouble, tmp_path: Path) -> Callable[..., GlueNamespace]:
    """Create a namespace with additional or other properties."""

    def connect(**properties: str) -> GlueNamespace:
        return GlueNamespace(**{**glue.properties, "root": str(tmp_path), **properties})

    return connect


@pytest.fixture
def namespace(connect_glue: Callable[..., GlueNamespace]) -> Iterator[GlueNamespace]:
    with connect_glue() as connected:
        yield connected


@pytest.fixture
def catalog(glue: GlueDouble) -> Iterator[GlueMetastore]:
    """The `Metastore` that the operations use."""
    made = GlueMetastore(GlueSettings.parse(glue_properties(glue.properties)))
    yield made
    made.close()


@pytest.fixture
def db(catalog: GlueMetastore, database: str) -> NamespaceId:
    """An existing database."""
    made = NamespaceId.of([database])
    catalog.create_namespace(Namespace(made))
    return made


@pytest.fixture
def table(catalog: GlueMetastore, db: NamespaceId) -> CatalogTable:
    """A declared table without data."""
    made = CatalogTable(db.table("t"), "s3://bucket/t.lance", {"table_type": "lance", "version": "0"})
    catalog.create_table(made)
    return made
