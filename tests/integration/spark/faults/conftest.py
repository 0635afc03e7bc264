"""A table of a kind, by default in a directory, for tests without a parameter or a fixture `kind`."""

from pathlib import Path

import pytest

from airflow_provider_lancens.spark import NamespaceSpec
from tests.integration.spark.faults.table_kinds import declare, spec_of


@pytest.fixture
def kind() -> str:
    return "dir"


@pytest.fixture
def spec(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> NamespaceSpec:
    return spec_of(kind, request, tmp_path)


@pytest.fixture
def table(spec: NamespaceSpec, database: str, kind: str) -> str:
    """The identifier of a declared table without data."""
    return declare(spec, database, kind)
