"""Whether sensors are deferrable, by Airflow's configuration and by default."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import json
from airflow_provider_lancens.sensors.default_deferrable import default_deferrable
print(json.dumps(default_deferrable()))
"""


def ask(home: Path, **environment: str) -> bool:
    """Get the setting in a fresh Python, since Airflow reads its configuration once."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW__")}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**inherited, "AIRFLOW_HOME": str(home), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return bool(json.loads(done.stdout.splitlines()[-1]))


def written_by_airflow(home: Path) -> Path:
    """The configuration file that Airflow's command line creates in a new home."""
    command = [sys.executable, "-m", "airflow", "config", "get-value", "core", "executor"]
    subprocess.run(command, env={**os.environ, "AIRFLOW_HOME": str(home)}, check=True, capture_output=True)
    return home / "airflow.cfg"


def test_sensors_are_deferrable_by_default(tmp_path: Path) -> None:
    assert ask(tmp_path)


@pytest.mark.parametrize("value", ["true", "false"])
def test_the_environment_variable_decides(tmp_path: Path, value: str) -> None:
    assert ask(tmp_path, AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE=value) is (value == "true")


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_configuration_file_decides(tmp_path: Path, value: str) -> None:
    (tmp_path / "airflow.cfg").write_text(f"[operators]\ndefault_deferrable = {value}\n")
    assert ask(tmp_path) is (value == "true")


def test_airflows_generated_configuration_file_does_not_count(tmp_path: Path) -> None:
    assert "default_deferrable = false" in written_by_airflow(tmp_path).read_text().lower()
    assert ask(tmp_path)
