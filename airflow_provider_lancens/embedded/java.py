"""Finds the Java to run the server on, before anything is started."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_lancens.embedded.exceptions import JavaUnsuitableError

# What changes a JVM's behavior behind its command line, or points Hadoop, Hive and Spark to other
# settings than ours. The server has to come up the same way on every machine.
_FOREIGN_SETTINGS = re.compile(
    r"(PYSPARK|SPARK|HADOOP|HIVE|HMS)_.*|CLASSPATH|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS"
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_VERSION_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class JavaVersions:
    """A range of supported Java versions.

    Args:
        oldest: The oldest major version, such as 17.
        newest: The newest one; None if none is known to be too new.
    """

    oldest: int
    newest: int | None = None

    def __contains__(self, version: int) -> bool:
        return self.oldest <= version and (self.newest is None or version <= self.newest)

    def __str__(self) -> str:
        return f"Java {self.oldest} or newer" + (f", up to {self.newest}" if self.newest else "")


def find_java(wanted: JavaVersions) -> Path:
    """Return the ``java`` of JAVA_HOME or, where that isn't set, of PATH.

    Args:
        wanted: The supported versions.

    Raises:
        JavaUnsuitableError: There is none, it doesn't run, or its version isn't supported.
    """
    try:
        return _find(wanted)
    except JavaUnsuitableError as error:
        advice = f"Install {wanted} (a JRE is sufficient), or set JAVA_HOME to one."
        raise JavaUnsuitableError(f"{error}. {advice}") from error.__cause__


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what would reconfigure the server."""
    return {name: value for name, value in os.environ.items() if not _FOREIGN_SETTINGS.fullmatch(name)}


def _find(wanted: JavaVersions) -> Path:
    java, origin = _locate()
    version = _major_version(java, origin)
    if version not in wanted:
        raise JavaUnsuitableError(f"{java} ({origin}) is Java {version}")
    return java


def _locate() -> tuple[Path, str]:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not java.is_file():
            raise JavaUnsuitableError(f"JAVA_HOME is {home!r}, but {java} does not exist")
        return java, "from JAVA_HOME"
    found = shutil.which("java")
    if not found:
        raise JavaUnsuitableError("Java not found: JAVA_HOME is not set, and PATH contains no java")
    return Path(found), "from PATH"


def _major_version(java: Path, origin: str) -> int:
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java, without a shell
            [java, "-version"],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaUnsuitableError(f"cannot run {java} ({origin}): {error}") from error
    version = _VERSION.search(answer.stderr)
    if not version:
        raise JavaUnsuitableError(
            f"{java} ({origin}) -version did not print a version, but: {answer.stderr.strip()!r}"
        )
    return int(version[1])
