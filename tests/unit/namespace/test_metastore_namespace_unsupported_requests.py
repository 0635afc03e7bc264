"""Unsupported operations say what to do instead."""

import inspect
import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import LanceNamespace
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens import operators
from airflow_provider_lancens.namespace import Hive2Namespace
from airflow_provider_lancens.namespace.metastore_namespace import (
    ALTERNATIVES,
    MetastoreNamespace,
    unsupported,
)
from tests.conformance.codes import refused_with
from tests.conformance.table import PAGE, alternatives


def implementation(operation: str) -> Any:
    return next(kind for kind in MetastoreNamespace.__mro__ if operation in vars(kind))


def test_every_operation_of_lance_namespace_is_implemented_or_refused() -> None:
    declared = {name for name, _ in inspect.getmembers(LanceNamespace, inspect.isfunction) if name[0] != "_"}
    assert [name for name in sorted(declared) if implementation(name) is LanceNamespace] == []
    refused = {
        name for name in declared if getattr(MetastoreNamespace, name).__module__ == unsupported.__module__
    }
    assert refused == set(ALTERNATIVES)


@pytest.mark.parametrize("operation", ALTERNATIVES)
def test_an_operation_that_is_not_supported_says_what_to_do_instead(operation: str) -> None:
    namespace = Hive2Namespace(uri="thrift://unreachable:1")
    arguments = inspect.signature(getattr(LanceNamespace, operation)).parameters
    with refused_with(ErrorCode.UNSUPPORTED, operation, f"instead: {ALTERNATIVES[operation]}"):
        getattr(namespace, operation)(*([{}] * (len(arguments) - 1)))


def test_the_suggested_alternatives_exist(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"x": [1]}), tmp_path / "t.lance")
    objects = {"dataset": dataset, "lance": lance}
    for instead in ALTERNATIVES.values():
        for owner, path in re.findall(r"\b(dataset|lance)\.([\w.]+)\(", instead):
            found: Any = objects[owner]
            for name in path.split("."):
                found = getattr(found, name)
            assert callable(found)
        for operator in re.findall(r"Lance\w+Operator", instead):
            assert hasattr(operators, operator)


def test_the_conformance_page_lists_unsupported_operations() -> None:
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in alternatives() if line not in page] == []
