"""Validation of branch names, which become part of a path."""

import pytest
from lance_namespace.errors import ErrorCode

from airflow_provider_lancens.namespace.operations.branches import branch_name
from tests.conformance.codes import refused_with


@pytest.mark.parametrize("name", ["try-out", "team/try.out_2", "a/b/c", "v1.0"])
def test_a_branch_name_may_contain_slashes(name: str) -> None:
    assert branch_name(name) == name


@pytest.mark.parametrize("name", [None, "", "main"])
def test_the_main_branch_has_no_name(name: str | None) -> None:
    assert branch_name(name) is None


@pytest.mark.parametrize(
    "name", ["..", ".", "a/../../..", "/etc", "a//b", "a/", "a b", "x\0", "a\nb", "é", "tree\\x"]
)
def test_an_invalid_branch_name_is_refused(name: str) -> None:
    with refused_with(ErrorCode.INVALID_INPUT, "branch", repr(name)):
        branch_name(name)
