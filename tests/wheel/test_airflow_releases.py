"""The provider beside what each supported Airflow pins: versions that fit, and a DAG that runs."""

import json
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.servers.daemon import Daemon
from tests.support.installed_packages import TREE, Installed, install_with_uv, wheel_of_pyspark
from tests.wheel.airflow_releases import Release, resolve, supported_releases, table_of_pins
from tests.wheel.python_versions import RUNNING

RELEASES = supported_releases()
OLDEST, MIDDLE, NEWEST = RELEASES[0], RELEASES[len(RELEASES) // 2], RELEASES[-1]
NEWEST_OF_EACH_MINOR = {release.version.rpartition(".")[0]: release for release in RELEASES}
BY_TIER = [
    pytest.param(
        release,
        marks=[] if release in (OLDEST, *NEWEST_OF_EACH_MINOR.values()) else pytest.mark.long,
        id=release.version,
    )
    for release in RELEASES
]
REFUSED = {"3.1.6": "pandas"}
"""What an Airflow pins too old for the PySpark that it pins: the extra `sql` of 4.1.1 needs pandas 2.2."""
PROVIDERS = ("amazon", "apache-hive", "databricks", "google", "snowflake")
PARSED = """
import runpy, sys
from pathlib import Path
examples = Path(sys.argv[1])
sys.path.append(sys.argv[1])  # as Airflow's processes do
for example in sorted(examples.glob("*.py")):
    runpy.run_path(str(example))
    print(example.stem)
"""
WRITTEN = """
import json, sys
import pandas, polars, pyarrow
from airflow_provider_lancens import connect
rows = pyarrow.table({"id": [1, 2], "name": ["a", None]})
given = {"arrow": rows, "pandas": rows.to_pandas(), "polars": polars.from_arrow(rows)}
lake = connect("dir", {"root": sys.argv[1]})
lake.create_namespace("shop")
for name, one in given.items():
    lake.declare_table(f"shop.{name}").append(one)
print(json.dumps({name: lake.table(f"shop.{name}").to_arrow().to_pylist() for name in given}))
"""
READ = """
import json, sys
from airflow_provider_lancens.namespace import Hive2Namespace
import lance
namespace = Hive2Namespace(uri=sys.argv[1], root=sys.argv[2])
table = lance.dataset(namespace_client=namespace, table_id=["weather", "readings"])
print(json.dumps([table.version, table.count_rows()]))
"""


def as_pinned_by(release: Release, folder: Path) -> list[str | Path]:
    """Arguments of ``uv pip`` for the packages of an Airflow's day, with what its constraints pin."""
    constraints = folder / "pinned.txt"
    pins = {"apache-airflow": release.version, **_kept_pins(release)}
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
    return ["--constraints", constraints, *release.limits]


def _kept_pins(release: Release) -> dict[str, str]:
    refused = REFUSED.get(release.version)
    return {name: version for name, version in release.pins.items() if name != refused}


@pytest.mark.thorough
@pytest.mark.parametrize("release", BY_TIER)
def test_versions_are_found_beside_what_an_airflow_pins(release: Release, tmp_path: Path) -> None:
    found = resolve(
        TREE / "pyproject.toml",
        "--extra",
        "spark",
        "--extra",
        "sasl",
        "--extra",
        "sql",
        "--python-version",
        RUNNING,
        *as_pinned_by(release, tmp_path),
    )

    assert found["apache-airflow"] == release.version
    pins = _kept_pins(release)
    assert {name: found[name] for name in pins if name in found}.items() <= pins.items()
    assert set(pins) - set(found) <= {"grpcio", "pyspark-client", "sqlglot"}


@pytest.mark.thorough
def test_the_newest_providers_stay_the_newest_beside_this_one() -> None:
    providers = [f"apache-airflow-providers-{name}" for name in PROVIDERS]
    asked = "\n".join([f"apache-airflow=={NEWEST.version}", *providers])
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    ours = [*project["dependencies"], *project["optional-dependencies"]["sasl"]]

    alone = resolve("--python-version", RUNNING, requirements=asked)
    beside = resolve("--python-version", RUNNING, requirements="\n".join([asked, *ours]))

    assert {name: beside[name] for name in providers} == {name: alone[name] for name in providers}


def test_the_lowest_supported_airflow_is_the_lowest_of_the_releases() -> None:
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    [airflow] = (one for one in map(Requirement, project["dependencies"]) if one.name == "apache-airflow")

    assert [release.version in airflow.specifier for release in RELEASES] == [True] * len(RELEASES)
    assert str(airflow.specifier) == f">={OLDEST.version}"


def test_the_page_on_installation_shows_what_each_airflow_pins() -> None:
    assert table_of_pins() in (TREE / "docs/installation.md").read_text()


@pytest.mark.thorough
@pytest.mark.parametrize("release", [OLDEST, NEWEST_OF_EACH_MINOR["3.1"]], ids=lambda one: one.version)
def test_examples_are_parsed_and_rows_written_on_what_an_older_airflow_pins(
    release: Release, wheel: Path, tmp_path: Path
) -> None:
    installed, wanted = Installed(tmp_path), [str(wheel), f"apache-airflow=={release.version}"]
    pinned = as_pinned_by(release, tmp_path)
    install_with_uv(RUNNING, tmp_path / "venv", *pinned, *wanted, "pandas", "polars")

    parsed = installed.run("-c", PARSED, TREE / "example_dags")
    written = installed.run("-c", WRITTEN, tmp_path / "lake")

    assert {path.stem for path in (TREE / "example_dags").glob("*.py")} <= set(parsed.splitlines())
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert json.loads(written.splitlines()[-1]) == dict.fromkeys(("arrow", "pandas", "polars"), rows)


@pytest.fixture(scope="module", params=[OLDEST, MIDDLE, NEWEST], ids=lambda release: release.version)
def pinned(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """An environment with the wheel and its extra `spark` beside what an Airflow pins."""
    release: Release = request.param
    folder = tmp_path_factory.mktemp("pinned")
    wanted = [f"airflow-provider-lancens[spark] @ {wheel.as_uri()}", f"apache-airflow=={release.version}"]
    if "pyspark" in release.pins:
        wanted += ["--find-links", str(wheel_of_pyspark(release.pins["pyspark"]))]
    install_with_uv(RUNNING, folder / "venv", *as_pinned_by(release, folder), *wanted)
    yield Installed(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_dag_runs_on_what_an_airflow_pins(
    pinned: Installed, connection: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    command = [pinned.python, "-m", "airflow_provider_lancens.embedded", "--folder", tmp_path / "metastore"]
    with Daemon(command, pinned.environment()) as server:
        uri = server.read(r"ready at (thrift://\S+)")
        lake = connection(host=uri, extra={"root": str(tmp_path / "lake")})

        outcome, _ = pinned.run_dag(
            TREE / "example_dags/spark_pinned_read.py", LANCE_EXAMPLE_POLL="1", **lake
        )

        version = outcome["ingest"]["xcom"]["version"]
        assert outcome["wait"]["xcom"]["version"] == version
        read: list[Any] = json.loads(pinned.run("-c", READ, uri, str(tmp_path / "lake")).splitlines()[-1])
        assert read == [version, 24]
