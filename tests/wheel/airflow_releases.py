"""The releases of Airflow that the provider supports, and what their constraints pin of what it uses.

Each release of Airflow is installed with a file of constraints: the versions of all its providers and of
their dependencies on that day. `airflow_releases.toml` has the pins of what the provider needs too. After a
release, ``python -m tests.wheel.airflow_releases 3.3.3`` prints its entry, which takes minutes; without a
version, the table of ``docs/installation.md``.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

_FILE = Path(__file__).with_suffix(".toml")
_USED = frozenset(
    [
        "apache-airflow-providers-amazon",
        "apache-airflow-providers-common-compat",
        "grpcio",
        "numpy",
        "pandas",
        "pendulum",
        "protobuf",
        "pyarrow",
        "pydantic",
        "pyspark",
        "pyspark-client",
        "sqlglot",
        "thrift",
        "urllib3",
    ]
)
"""What the provider and its extras need, directly or through Lance and PySpark, and Airflow pins."""
_OF_ANY_AGE = (
    "duckdb",
    "hmsclient",
    "lance-namespace",
    "lance-namespace-urllib3-client",
    "obstore",
    "pure-sasl",
    "pylance",
    "pymetastore",
    "pyspark",
    "sqlglot",
)
"""What no Airflow pins, or only some of them."""


@dataclass(frozen=True)
class Release:
    """A release of Airflow.

    Attributes:
        version: its version.
        uploaded: when it was uploaded; its constraints are as of that day.
        pins: the versions that its constraints require, by package.
    """

    version: str
    uploaded: datetime
    pins: dict[str, str]

    @property
    def day_after(self) -> str:
        """The day after, for ``--exclude-newer``: packages of the same day are in."""
        return f"{self.uploaded + timedelta(days=1):%Y-%m-%d}"

    @property
    def limits(self) -> list[str]:
        """Arguments of ``uv pip`` for packages of its day, as its constraints have them for each Python."""
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        of_any_age = [part for name in _OF_ANY_AGE for part in ("--exclude-newer-package", f"{name}={now}")]
        return ["--exclude-newer", self.day_after, *of_any_age]


def supported_releases() -> list[Release]:
    """The releases from the oldest to the newest."""
    entries = tomllib.loads(_FILE.read_text())
    return [Release(version, entry["uploaded"], entry["pins"]) for version, entry in entries.items()]


_SHOWN = {
    "amazon provider": "apache-airflow-providers-amazon",
    "common-compat": "apache-airflow-providers-common-compat",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "PySpark": "pyspark",
    "thrift": "thrift",
}
"""The columns of the table of pins in ``docs/installation.md``."""


def table_of_pins() -> str:
    """The table of what each release pins, in Markdown."""
    head = ["Airflow", "released", *_SHOWN]
    rows = [
        [
            release.version,
            f"{release.uploaded:%Y-%m-%d}",
            *(release.pins.get(name, "-") for name in _SHOWN.values()),
        ]
        for release in supported_releases()
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def resolve(*arguments: str | Path, requirements: str = "") -> dict[str, str]:
    """The versions that uv chooses, with a cache of its own: each call unpacks the source of PySpark, 0.5 GB.

    Args:
        arguments: further arguments of ``uv pip compile``.
        requirements: one a line; empty to take them from a file among the arguments.

    Raises:
        AssertionError: no versions fit together, with uv's explanation.
    """
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    given = ["-"] if requirements else []
    with tempfile.TemporaryDirectory() as cache:
        command += ["--cache-dir", cache]
        done = subprocess.run(
            [*command, *arguments, *given], input=requirements, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", done.stdout, re.MULTILINE))


def pinned_by_airflow(version: str, day: str) -> dict[str, str]:
    """What Airflow's constraints pin: the versions of all providers and their dependencies on a day."""
    limits = ["--python-version", "3.11", "--exclude-newer", day]
    later: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        overrides = Path(folder, "overrides.txt")
        while True:
            # A provider that is named by Airflow, and was released later, isn't in its constraints.
            overrides.write_text("".join(f"{name} ; python_version < '3'\n" for name in later))
            try:
                found = resolve(
                    *limits, "--overrides", overrides, requirements=f"apache-airflow[all]=={version}\n"
                )
            except AssertionError as error:
                filtered = set(re.findall(r"`([\w-]+)` was filtered by `exclude-newer`", str(error)))
                if filtered <= later:
                    raise
                later |= filtered
            else:
                return {name: found[name] for name in sorted(_USED & found.keys())}


def _uploaded(version: str) -> datetime:
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--no-deps",
        "--format",
        "pylock.toml",
        "-",
    ]
    wanted = f"apache-airflow=={version}\n"
    printed = subprocess.run(command, input=wanted, capture_output=True, text=True, check=True).stdout
    [package] = tomllib.loads(printed)["packages"]
    uploaded: datetime = package["sdist"]["upload-time"]
    return uploaded


def _entry(version: str) -> str:
    uploaded = _uploaded(version)
    pins = pinned_by_airflow(version, Release(version, uploaded, {}).day_after)
    lines = [f'"{name}" = "{pinned}"' for name, pinned in pins.items()]
    return "\n".join(
        [f'["{version}"]', f"uploaded = {uploaded:%Y-%m-%dT%H:%M:%SZ}", f'["{version}".pins]', *lines]
    )


if __name__ == "__main__":
    sys.stdout.write("\n".join(map(_entry, sys.argv[1:])) or f"{table_of_pins()}\n")
