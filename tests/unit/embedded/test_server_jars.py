"""The metastore in an installed PySpark."""

import sys
from pathlib import Path

import pytest

from airflow_provider_lancens.embedded.exceptions import JarsMissingError
from airflow_provider_lancens.embedded.server import EmbeddedMetastore, pyspark_distribution


@pytest.fixture
def pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package of that name, found before the real one."""
    package = tmp_path / "pyspark"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return package


def add_jar(pyspark: Path, name: str) -> None:
    (pyspark / "jars").mkdir()
    (pyspark / "jars" / name).touch()


def test_the_installed_pyspark_is_accepted() -> None:
    distribution = pyspark_distribution()
    assert distribution.name == "Hive Metastore 2.3.10"
    assert 17 in distribution.java
    assert 16 not in distribution.java


def test_a_newer_hive_is_accepted(pyspark: Path) -> None:
    add_jar(pyspark, "hive-metastore-2.3.11.jar")
    assert pyspark_distribution().class_path == (f"{pyspark}/jars/*",)


def test_a_hive_without_compare_and_set_is_refused(pyspark: Path) -> None:
    add_jar(pyspark, "hive-metastore-2.3.9.jar")
    with pytest.raises(JarsMissingError, match=r"no Hive Metastore 2.3.10 or newer.*pyspark>=4.0"):
        pyspark_distribution()


def test_a_client_without_jars_is_refused(pyspark: Path, tmp_path: Path) -> None:
    with pytest.raises(JarsMissingError, match="PySpark is installed without its jars"):
        EmbeddedMetastore(tmp_path)


def test_a_missing_pyspark_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [])
    with pytest.raises(JarsMissingError, match="PySpark is not installed"):
        EmbeddedMetastore(tmp_path)
