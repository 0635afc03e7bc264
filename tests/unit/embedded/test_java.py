"""Choice of the Java installation, and the errors without one. Java is simulated by shell scripts."""

import os
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded.exceptions import JavaUnsuitableError
from airflow_provider_lancens.embedded.java import JavaVersions, clean_environment, find_java

MODERN = JavaVersions(oldest=17)


def make_java(home: Path, says: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.fixture
def in_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


@pytest.fixture
def in_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "path"
    monkeypatch.setenv("PATH", str(folder / "bin"))
    return folder


def test_java_home_takes_precedence_over_the_path(in_home: Path, in_path: Path) -> None:
    java = make_java(in_home, 'openjdk version "17.0.15" 2025-04-15')
    make_java(in_path, 'openjdk version "25" 2025-09-16')
    assert find_java(MODERN) == java


def test_without_java_home_the_path_is_searched(in_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java = make_java(in_path, 'openjdk version "25" 2025-09-16')
    assert find_java(MODERN) == java


@pytest.mark.parametrize(("says", "version"), [("11.0.2", 11), ("1.8.0_392", 8), ("16-ea", 16)])
def test_an_old_java_is_named_with_its_version(in_home: Path, says: str, version: int) -> None:
    java = make_java(in_home, f'java version "{says}"')
    with pytest.raises(JavaUnsuitableError) as refusal:
        find_java(MODERN)
    assert str(refusal.value) == (
        f"{java} (from JAVA_HOME) is Java {version}. "
        "Install Java 17 or newer (a JRE is sufficient), or set JAVA_HOME to one."
    )


def test_a_too_new_java_is_named_with_the_newest_supported_one(in_home: Path) -> None:
    make_java(in_home, 'openjdk version "25" 2025-09-16')
    with pytest.raises(JavaUnsuitableError, match=r"is Java 25. Install Java 8 or newer, up to 22"):
        find_java(JavaVersions(oldest=8, newest=22))


def test_a_java_home_without_java_is_named(in_home: Path) -> None:
    with pytest.raises(JavaUnsuitableError, match=f"JAVA_HOME is '{in_home}', but .* does not exist"):
        find_java(MODERN)


def test_a_missing_java_is_reported(in_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    with pytest.raises(JavaUnsuitableError, match="JAVA_HOME is not set, and PATH contains no java"):
        find_java(MODERN)


def test_an_unknown_version_output_of_java_is_quoted(in_home: Path) -> None:
    make_java(in_home, "Unable to locate a Java Runtime.")
    with pytest.raises(JavaUnsuitableError, match="Unable to locate a Java Runtime"):
        find_java(MODERN)


def test_a_java_that_does_not_run_is_named(in_home: Path) -> None:
    make_java(in_home, "").chmod(0o644)
    with pytest.raises(JavaUnsuitableError, match=r"cannot run .*Permission denied"):
        find_java(MODERN)


def test_the_servers_environment_has_no_variable_that_reconfigures_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "HIVE_CONF_DIR", "JDK_JAVA_OPTIONS"):
        monkeypatch.setenv(name, "odd")
    environment = clean_environment()
    assert environment.items() <= os.environ.items()
    assert "odd" not in environment.values()
    assert environment["PATH"] == os.environ["PATH"]
