"""The machine on which the command runs: its Java, its packages, and Airflow's triggerer."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from airflow_provider_lancens.doctor.findings import Finding

_SHOWN = ("apache-airflow", "airflow-provider-lancens", "pylance", "pyarrow", "pyspark", "pandas")
_OLDEST_PYSPARK = (3, 5, 2)
_NEWEST_PANDAS = 2
"""PySpark doesn't fully support later major versions."""
_JAVA = 17


def check_packages() -> Iterator[Finding]:
    """Check the installed versions, as far as they matter for ingestion."""
    found = {name: _version_of(name) for name in (*_SHOWN, "pyspark-client")}
    yield Finding("ok", "packages", ", ".join(f"{name} {found[name]}" for name in _SHOWN if found[name]))
    pyspark, pandas = found["pyspark"], found["pandas"]
    if pyspark is None:
        yield Finding(
            "warning",
            "PySpark",
            "it is not installed, so tasks on this machine cannot ingest or maintain tables",
            "Install the extra where such tasks run: pip install 'airflow-provider-lancens[spark]'.",
        )
        return
    if found["pyspark-client"]:
        yield Finding(
            "problem",
            "PySpark",
            f"pyspark {pyspark} and pyspark-client {found['pyspark-client']} overwrite each other's files",
            "Uninstall both, and install pyspark again.",
        )
    if _parts(pyspark) < _OLDEST_PYSPARK:
        yield Finding("problem", "PySpark", f"{pyspark} is not supported", "Install pyspark 3.5.2 or newer.")
    if pandas is None:
        yield Finding("problem", "pandas", "is not installed", "Install the extra spark, which contains it.")
    elif _parts(pandas)[0] > _NEWEST_PANDAS:
        text = f"{pandas} is not fully supported by PySpark, which matters only to functions that use pandas"
        yield Finding("warning", "pandas", text, "Install 'pandas<3' if yours do.")


def check_java() -> Iterator[Finding]:
    """Check that Spark can be started on this machine."""
    from airflow_provider_lancens.embedded.exceptions import JavaUnsuitableError
    from airflow_provider_lancens.embedded.java import JavaVersions, find_java

    if _version_of("pyspark") is None:
        return
    try:
        yield Finding("ok", "Java", str(find_java(JavaVersions(_JAVA))))
    except JavaUnsuitableError as error:
        yield Finding("warning", "Java", f"Spark cannot be started here: {error}")


def check_triggerer() -> Iterator[Finding]:
    """Check that deferred sensors and watched tables are served."""
    from airflow.jobs.job import most_recent_job
    from airflow.utils.session import create_session
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with create_session() as session:
            job = most_recent_job("TriggererJob", session=session)
            alive = job is not None and job.is_alive()
    except SQLAlchemyError as error:
        text = f"Airflow's database cannot be read here ({type(error).__name__}), so its state is unknown"
        yield Finding("warning", "triggerer", text, "Run this command where the scheduler runs.")
        return
    if alive:
        yield Finding("ok", "triggerer", "it is running")
    else:
        state = "has never run" if job is None else "sends no heartbeat"
        yield Finding(
            "problem",
            "triggerer",
            f"it {state}, so deferred sensors never resume, and watched tables are not polled",
            "Start `airflow triggerer`, or set deferrable=False on sensors.",
        )


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _parts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())
