"""Fingerprints of files, which change with the written data."""

import os
from pathlib import Path
from typing import Any

import pytest
from lance_namespace import DeclareTableRequest

from airflow_provider_lancens.spark import FileSource, NamespaceSpec, fingerprint_files


@pytest.fixture
def spec(tmp_path: Path) -> NamespaceSpec:
    spec = NamespaceSpec("dir", {"root": str(tmp_path / "lake")})
    spec.connect().declare_table(DeclareTableRequest(id=["orders"]))
    return spec


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "a.csv"
    file.write_text("id\n1\n")
    return file


def test_the_fingerprint_depends_only_on_the_files(spec: NamespaceSpec, file: Path) -> None:
    def fingerprint() -> str | None:
        return fingerprint_files(FileSource("csv", f"{file.parent}/*.csv"), spec, "orders")

    before = fingerprint()
    assert before is not None
    assert fingerprint() == before
    os.utime(file, (1, 1))
    touched = fingerprint()
    (file.parent / "b.csv").write_text("id\n2\n")
    assert len({before, touched, fingerprint()}) == 3


@pytest.mark.parametrize("asked", [{"filter": "id = 1"}, {"renames": {"id": "n"}}, {"columns": ["id"]}])
def test_the_fingerprint_depends_on_the_file_source(
    spec: NamespaceSpec, file: Path, asked: dict[str, Any]
) -> None:
    plain = fingerprint_files(FileSource("csv", str(file)), spec, "orders")

    assert fingerprint_files(FileSource("csv", str(file), **asked), spec, "orders") != plain
    assert fingerprint_files(FileSource("csv", str(file), tasks=3), spec, "orders") == plain


def test_missing_files_have_no_fingerprint(spec: NamespaceSpec, tmp_path: Path) -> None:
    assert fingerprint_files(FileSource("csv", f"{tmp_path}/gone.csv"), spec, "orders") is None
