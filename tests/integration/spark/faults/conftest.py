"""A table of a kind, for tests with a parameter or a fixture `kind`."""

from pathlib import Path

import pytest

from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.table_kinds import declare, spec_of


@pytest.fixture
def spec(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> NamespaceSpec:
    return spec_of(kind, request, tmp_path)


@pytest.fixture
def table(spec: NamespaceSpec, database: str, kind: str) -> str:
    """The identifier of a declared table without data."""
    return declare(spec, database, kind)
