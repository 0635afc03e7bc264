"""The wheel without an extra: Airflow finds the provider, parses DAGs, and waits for versions."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_lancens.embedded import MetastoreServer
from airflow_provider_lancens.namespace import Hive2Namespace
from tests.integration.airflow.tables import Table
from tests.support.installed_packages import TREE, Installed, on_each_python

pytestmark = pytest.mark.thorough

NAME = "airflow-provider-lancens"
SHOWN = """
import sys
from airflow.api_fastapi.core_api.services.public.providers import _provider_mapper
from airflow.providers_manager import ProvidersManager
print(_provider_mapper(ProvidersManager().providers[sys.argv[1]]).model_dump_json())
"""
PARSED = """
import json, sys
from airflow import settings
from airflow.dag_processing.dagbag import DagBag
sys.path.append(settings.DAGS_FOLDER)  # as Airflow's processes do
bag = DagBag()
print(json.dumps({"errors": bag.import_errors, "dags": sorted(bag.dags)}))
"""


@pytest.fixture
def table(metastore: MetastoreServer, database: str, tmp_path: Path) -> Iterator[Table]:
    """A table at version 1, written by another environment."""
    with closing(Hive2Namespace(uri=metastore.uri, root=str(tmp_path))) as namespace:
        written = Table(namespace, database, "orders")
        written.declare()
        written.advance()
        yield written


@pytest.fixture
def metadata(installed: Installed) -> Distribution:
    """The wheel's metadata."""
    [found] = installed.folder.glob("venv/lib/python*/site-packages/airflow_provider_lancens-*.dist-info")
    return PathDistribution(found)


def ask(installed: Installed, script: str, *arguments: str) -> dict[str, Any]:
    """The JSON in the last line that a script prints."""
    answer: dict[str, Any] = json.loads(installed.run("-c", script, *arguments).splitlines()[-1])
    return answer


@on_each_python()
class TestTheWheelAlone:
    def test_the_wheels_metadata_links_to_documentation_source_and_changelog(
        self, metadata: Distribution
    ) -> None:
        urls = dict(url.split(", ") for url in metadata.metadata.get_all("Project-URL", []))

        assert set(urls) == {"Documentation", "Source", "Changelog"}
        assert all(url.startswith("https://") for url in urls.values())

    def test_airflow_lists_the_provider_with_a_link_to_its_documentation(self, installed: Installed) -> None:
        assert ask(installed, SHOWN, NAME)["documentation_url"].startswith("https://")

    def test_every_example_is_parsed(self, installed: Installed) -> None:
        shutil.copytree(TREE / "example_dags", installed.dags, dirs_exist_ok=True)

        found = ask(installed, PARSED)

        examples = {f"lance_{path.stem}" for path in (TREE / "example_dags").glob("*.py")}
        second = {"lance_totals_of_changed_days"}  # of an example with two DAGs
        assert (found["errors"], set(found["dags"])) == ({}, examples | second)

    def test_a_sensor_waits_for_a_version(
        self,
        installed: Installed,
        metastore: MetastoreServer,
        connection: Callable[..., dict[str, str]],
        table: Table,
    ) -> None:
        lake = connection(host=metastore.uri)

        waited, _ = installed.run_dag(TREE / "tests/wheel/dags/wait.py", WAIT_FOR=str(table), **lake)

        assert waited["wait"]["xcom"]["version"] == 1
